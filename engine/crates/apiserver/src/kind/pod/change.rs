//! The validation of updates of a pod (`ValidatePodUpdate` in pkg/apis/core/validation).

use kubemu_admission::FieldError;
use serde_json::Value;

use crate::kind::field::{Errors, Field};
use crate::kind::{items, pod_spec, rule};
use crate::meta;

/// The validation errors of a new spec against the old one.
pub(super) fn errors(field: &Field<'_>, old: &Value, errors: &mut Errors) {
    let spec = field.value;
    for list in ["containers", "initContainers"] {
        if items(spec, list).count() != items(old, list).count() {
            let why = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(format!("spec.{list}"), why));
            return;
        }
        for (index, container) in items(spec, list) {
            errors.extend(image_error(
                container,
                &format!("spec.{list}[{index}].image"),
            ));
        }
    }
    if !deadline(field, old, errors) {
        return;
    }
    if keeps_tolerations(spec, old) {
        pod_spec::tolerations(&field.child("tolerations"), errors);
    } else {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden("spec.tolerations", why));
    }
    for (index, gate) in items(spec, "schedulingGates") {
        if !items(old, "schedulingGates").any(|(_, it)| it["name"] == gate["name"]) {
            let name = gate["name"].as_str().unwrap_or_default();
            let path = format!("spec.schedulingGates[{index}].name");
            let why = format!(
                "only deletion is allowed, but found new scheduling gate '{name}'"
            );
            errors.push(FieldError::forbidden(path, why));
        }
    }
    if with_old_mutable_fields(spec, old) != *old {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
             `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` \
             (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
             (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden("spec", why));
    }
}

/// The error of a container's image, which is validated again when it is changed.
fn image_error(container: &Value, path: &str) -> Option<FieldError> {
    let image = container["image"].as_str().unwrap_or_default();
    if image.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    let why = "must not have leading or trailing whitespace";
    let padded = image.trim().len() != image.len();
    padded.then(|| FieldError::invalid(path, image.into(), why))
}

/// Validates the deadline, which may be set, and be shortened. Returns whether the rest is
/// validated too.
fn deadline(spec: &Field<'_>, old: &Value, errors: &mut Errors) -> bool {
    const FIELD: &str = "activeDeadlineSeconds";
    let (deadline, previous) = (spec.child(FIELD), old[FIELD].as_i64());
    let Some(seconds) = deadline.number() else {
        let why = "must not update from a positive integer to nil value";
        errors.extend(previous.map(|_| deadline.invalid(why)));
        return true;
    };
    let before = errors.len();
    rule::between(&deadline, 0..=i64::from(i32::MAX), errors);
    if errors.len() == before && previous.is_some_and(|it| it < seconds) {
        errors.push(deadline.invalid("must be less than or equal to previous value"));
    }
    errors.len() == before
}

/// Whether every toleration is kept, apart from its `tolerationSeconds`.
fn keeps_tolerations(spec: &Value, old: &Value) -> bool {
    let lasting = |it: &Value| {
        let mut toleration = it.clone();
        meta::fields(&mut toleration).shift_remove("tolerationSeconds");
        toleration
    };
    let all: Vec<Value> = items(spec, "tolerations")
        .map(|(_, it)| lasting(it))
        .collect();
    items(old, "tolerations").all(|(_, it)| all.contains(&lasting(it)))
}

/// The new spec with the old values of all mutable fields.
fn with_old_mutable_fields(spec: &Value, old: &Value) -> Value {
    let mut merged = spec.clone();
    let mut free = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    let grace = "terminationGracePeriodSeconds";
    if old[grace].as_i64().is_some_and(|it| it < 0) && spec[grace] == 1 {
        free.push(grace);
    }
    // Kubernetes' further rules for pods with scheduling gates are not checked.
    if items(old, "schedulingGates").next().is_some() {
        free.extend(["nodeSelector", "affinity"]);
    }
    for field in free {
        meta::copy_field(old, &mut merged, field);
    }
    for list in ["containers", "initContainers"] {
        let containers = merged.get_mut(list).and_then(Value::as_array_mut);
        for (container, (_, previous)) in
            containers.into_iter().flatten().zip(items(old, list))
        {
            meta::copy_field(previous, container, "image");
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> Value {
        json!({
            "containers": [{"name": "c", "image": "i:1"}],
            "restartPolicy": "Always",
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 5}],
        })
    }

    /// The paths of the errors if these fields of a pod's spec are changed.
    fn refused(changes: &Value) -> Vec<String> {
        let mut next = spec();
        json_patch::merge(&mut next, changes);
        let mut found = Errors::new();
        let field = Field {
            path: "spec".into(),
            value: &next,
        };
        errors(&field, &spec(), &mut found);
        found.into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn images_deadline_and_additional_tolerations_are_mutable() {
        let free = json!({
            "containers": [{"name": "c", "image": "i:2"}],
            "activeDeadlineSeconds": 60,
            "tolerations": [
                {"key": "k", "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 9},
                {"key": "l", "operator": "Exists"},
            ],
        });
        assert_eq!(refused(&free), Vec::<String>::new());
    }

    #[test]
    fn all_other_changes_are_rejected() {
        let rows = [
            (json!({"nodeName": "n"}), "spec"),
            (json!({"restartPolicy": "Never"}), "spec"),
            (json!({"terminationGracePeriodSeconds": 1}), "spec"),
            (
                json!({"containers": [{"name": "d", "image": "i:1"}]}),
                "spec",
            ),
            (json!({"containers": []}), "spec.containers"),
            (json!({"tolerations": [{"key": "l"}]}), "spec.tolerations"),
            (
                json!({"schedulingGates": [{"name": "g"}]}),
                "spec.schedulingGates[0].name",
            ),
        ];
        for (changes, path) in rows {
            assert_eq!(refused(&changes), [path], "{changes}");
        }
    }

    #[test]
    fn a_deadline_can_only_be_shortened() {
        let at = |seconds: Value| json!({"spec": {"activeDeadlineSeconds": seconds}});
        let paths = |next: Value| {
            let (object, mut errors) = (at(next), Errors::new());
            let spec = Field::of(&object, "spec");
            deadline(&spec, &at(60.into())["spec"], &mut errors);
            errors.into_iter().map(|it| it.path).collect::<Vec<_>>()
        };
        assert_eq!(paths(30.into()), Vec::<String>::new());
        let expected = ["spec.activeDeadlineSeconds"];
        assert_eq!(paths(90.into()), expected);
        assert_eq!(paths(Value::Null), expected);
        assert_eq!(paths((-1).into()), expected);
    }
}
