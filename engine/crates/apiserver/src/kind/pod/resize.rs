//! Writes to `resize`: the CPU and the memory of the containers of a pod (`ValidatePodResize` in
//! pkg/apis/core/validation).

use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::quality_of_service;
use crate::kind::field::{Errors, Field};
use crate::kind::{items, resource_name};
use crate::meta;

/// The lists whose containers are resized.
const LISTS: [&str; 2] = ["containers", "initContainers"];
/// The fields that a resize may change.
const FIELDS: [&str; 2] = ["resources", "resizePolicy"];

/// The old spec with the resources of the new one. If containers were added, removed or renamed,
/// the list is the new one, so that the validation rejects it.
pub(super) fn merged(spec: &Value, old: &Value) -> Value {
    let mut merged = old.clone();
    for list in LISTS {
        let names = |of: &Value| -> Vec<Value> {
            items(of, list).map(|(_, it)| it["name"].clone()).collect()
        };
        if names(spec) != names(old) {
            meta::copy_field(spec, &mut merged, list);
            continue;
        }
        for (index, container) in items(spec, list) {
            for field in FIELDS {
                meta::copy_field(container, &mut merged[list][index], field);
            }
        }
    }
    meta::copy_field(spec, &mut merged, "resources");
    merged
}

/// The validation errors of a resized pod, beyond those of its spec.
pub(super) fn errors(object: &Value, old: &Value, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    if old["spec"]["os"]["name"] == "windows" {
        errors.clear();
        errors.push(FieldError::forbidden("", "windows pods cannot be resized"));
        return;
    }
    let class = quality_of_service::class(object);
    if old["status"]["qosClass"] != class {
        let value = object["status"]["qosClass"].clone();
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", value, why));
    }
    if !same_containers(&spec, &old["spec"], errors) {
        return;
    }
    let before = errors.len();
    for list in LISTS {
        for (container, (_, old)) in
            spec.child(list).items().zip(items(&old["spec"], list))
        {
            removed(&container.child("resources"), &old["resources"], errors);
            if list == "initContainers" && old["restartPolicy"] != "Always" {
                if old["resources"] != container.value["resources"] {
                    let why = "resources for non-sidecar init containers are immutable";
                    errors.push(spec.forbidden(why));
                }
            } else if others(&container.value["resources"]) != others(&old["resources"]) {
                let why = "only cpu and memory resources are mutable";
                errors.push(spec.forbidden(why));
            }
        }
    }
    if errors.len() == before && object["spec"]["resources"] != old["spec"]["resources"] {
        let why = "resize of pods with pod-level resources is not supported here";
        errors.push(spec.child("resources").forbidden(why));
    }
}

/// Validates that the containers are the same, in the same order. Returns whether they are.
fn same_containers(spec: &Field<'_>, old: &Value, errors: &mut Errors) -> bool {
    let before = errors.len();
    for list in LISTS {
        let containers = spec.child(list);
        if containers.len() != items(old, list).count() {
            let why = format!("{list} may not be added or removed on resize");
            errors.push(containers.forbidden(why));
            continue;
        }
        for (container, (_, old)) in containers.items().zip(items(old, list)) {
            let name = container.child("name");
            if *name.value != old["name"] {
                let why = "containers may not be renamed or reordered on resize";
                let why = match list {
                    "containers" => why.to_owned(),
                    _ => why.replace("containers", list),
                };
                errors.push(name.forbidden(why));
            }
        }
    }
    errors.len() == before
}

/// Validates that no request and no limit was removed.
fn removed(resources: &Field<'_>, old: &Value, errors: &mut Errors) {
    for (field, what) in [("requests", "requests"), ("limits", "limits")] {
        let of = resources.child(field);
        let mut before = old[field].as_object().into_iter().flatten();
        if before.any(|(name, _)| of.value.get(name).is_none()) {
            errors.push(of.forbidden(format!("resource {what} cannot be removed")));
        }
    }
}

/// The resources of a container that a resize cannot change.
fn others(resources: &Value) -> Value {
    let mut kept = json!({});
    for list in ["limits", "requests"] {
        let amounts = resource_name::amounts(&resources[list]);
        let amounts = amounts.filter(|it| !matches!(it.0, "cpu" | "memory"));
        for (name, amount) in amounts {
            kept[list][name] = amount.to_string().into();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(container: &Value) -> Value {
        json!({"spec": {"containers": [container]}, "status": {"qosClass": "Burstable"}})
    }

    fn refused(container: &Value) -> Vec<String> {
        let old = json!({"name": "c", "image": "i",
            "resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}});
        let mut found = Errors::new();
        errors(&pod(container), &pod(&old), &mut found);
        found.into_iter().map(|it| it.to_string()).collect()
    }

    #[test]
    fn a_resize_changes_cpu_and_memory_only() {
        let requests = |requests: Value| json!({"name": "c", "image": "i", "resources": {"requests": requests}});
        let gpu = "example.com/gpu";
        assert!(refused(&requests(json!({"cpu": "2", gpu: "1"}))).is_empty());
        let more = refused(&requests(json!({"cpu": "1", gpu: "2"})));
        let only = "spec: Forbidden: only cpu and memory resources are mutable";
        assert_eq!(more, [only]);
        let fewer = refused(&requests(json!({gpu: "1"})));
        let path = "spec.containers[0].resources.requests";
        let expected = format!("{path}: Forbidden: resource requests cannot be removed");
        assert!(fewer.contains(&expected), "{fewer:?}");
    }

    #[test]
    fn only_the_resources_of_the_new_spec_are_kept() {
        let old = json!({"containers": [{"name": "c", "image": "i"}], "hostname": "h"});
        let new = json!({"containers": [{"name": "c", "image": "j",
            "resources": {"limits": {"cpu": "1"}}}], "hostname": "x"});
        let expected = json!({"containers": [{"name": "c", "image": "i",
            "resources": {"limits": {"cpu": "1"}}}], "hostname": "h"});
        assert_eq!(merged(&new, &old), expected);
    }
}
