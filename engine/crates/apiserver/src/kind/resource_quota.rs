//! ResourceQuotas. The plugin ResourceQuota and the controller of the same name enforce them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::{BuiltinKind, Write, column, items, resource_name, text};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `resourcequotas` of `v1`.
#[derive(Debug)]
pub(super) struct ResourceQuota;

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
const REQUEST: &str =
    "Request represents a minimum amount of cpu/memory that a container may consume.";
const LIMIT: &str = "Limits control the maximum amount of cpu/memory that a container may use \
     independent of contention on the node.";

impl BuiltinKind for ResourceQuota {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "ResourceQuota", "resourcequotas")
            .returned_when_deleted()
            .with_short_names(&["quota"])
            .without_generation()
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![
                Column::new("Request", "string", REQUEST),
                Column::new("Limit", "string", LIMIT),
                Column::age(),
            ])
    }

    fn default(&self, object: &mut Value) {
        for list in ["/spec/hard", "/status/hard", "/status/used"] {
            let amounts = object.pointer_mut(list).and_then(Value::as_object_mut);
            if let Some(amounts) = amounts {
                resource_name::canonical(amounts);
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        meta::fields(object).insert("status".to_owned(), json!({}));
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let spec = &write.object["spec"];
        let mut errors = hard_errors(&spec["hard"], "spec.hard");
        errors.extend(scope_errors(spec));
        for list in ["hard", "used"] {
            let path = format!("status.{list}");
            errors.extend(hard_errors(&write.object["status"][list], &path));
        }
        if let Some(old) = write.old {
            let scopes = |object: &Value| -> BTreeSet<String> {
                let all = items(&object["spec"], "scopes");
                all.filter_map(|(_, it)| it.as_str().map(str::to_owned))
                    .collect()
            };
            if scopes(old) != scopes(write.object) {
                let value = spec["scopes"].clone();
                let why = "field is immutable";
                errors.push(FieldError::invalid("spec.scopes", value, why));
            }
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let (hard, used) = (&object["status"]["hard"], &object["status"]["used"]);
        let mut resources: Vec<_> = resource_name::amounts(hard).collect();
        resources.sort_by_key(|(resource, _)| *resource);
        let listed = |of_limits: bool| {
            let chosen = resources
                .iter()
                .filter(|(resource, _)| resource.starts_with("limits.") == of_limits);
            let shown = chosen.map(|(resource, hard)| {
                let used = resource_name::quantity(&used[*resource]);
                let used = used.map_or_else(|| "0".to_owned(), |it| it.to_string());
                format!("{resource}: {used}/{hard}")
            });
            Value::from(shown.collect::<Vec<_>>().join(", "))
        };
        vec![
            column::name(object),
            listed(false),
            listed(true),
            column::age(object, now),
        ]
    }
}

fn hard_errors(list: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (resource, amount) in resource_name::amounts(list) {
        let at = format!("{path}[{resource}]");
        errors.extend(resource_name::name_errors(resource, &at));
        if !resource.contains('/') && !resource_name::is_standard_of_quota(resource) {
            let why = "must be a standard resource for quota";
            errors.push(FieldError::invalid(at.clone(), resource.into(), why));
        }
        errors.extend(resource_name::amount_errors(resource, &amount, &at));
    }
    errors
}

/// Whether a quota of `resource` can have a scope (`IsResourceQuotaScopeValidForResource`).
fn scope_fits(scope: &str, resource: &str) -> bool {
    let compute = [
        "cpu",
        "memory",
        "limits.cpu",
        "limits.memory",
        "requests.cpu",
        "requests.memory",
    ];
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            ["persistentvolumeclaims", "requests.storage"].contains(&resource)
        }
        scope if SCOPES.contains(&scope) => {
            resource == "pods" || compute.contains(&resource)
        }
        _ => true,
    }
}

fn scope_errors(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let hard = spec["hard"].as_object().into_iter().flatten();
    let mut limited: Vec<&str> = hard
        .map(|(resource, _)| resource.as_str())
        .filter(|it| resource_name::is_standard_of_quota(it))
        .collect();
    limited.sort_unstable();
    let misfits =
        |scope: &str| limited.iter().filter(|it| !scope_fits(scope, it)).count();
    let path = "spec.scopes";
    let value = || spec["scopes"].clone();
    let scopes: Vec<&str> = items(spec, "scopes")
        .filter_map(|(_, it)| it.as_str())
        .collect();
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            errors.push(FieldError::invalid(path, value(), "unsupported scope"));
        }
        for _ in 0..misfits(scope) {
            let why = "unsupported scope applied to resource";
            errors.push(FieldError::invalid(path, value(), why));
        }
    }
    errors.extend(conflicts(&scopes, path, &value()));
    let selector = &spec["scopeSelector"];
    let path = "spec.scopeSelector.matchExpressions";
    let mut selected = Vec::new();
    for (_, requirement) in items(selector, "matchExpressions") {
        let scope = text(requirement, "scopeName");
        if !SCOPES.contains(&scope) {
            let at = format!("{path}.scopeName");
            errors.push(FieldError::invalid(at, scope.into(), "unsupported scope"));
        }
        for _ in 0..misfits(scope) {
            let why = "unsupported scope applied to resource";
            errors.push(FieldError::invalid(path, selector.clone(), why));
        }
        errors.extend(requirement_errors(requirement, path));
        selected.push(scope);
    }
    errors.extend(conflicts(&selected, path, &value()));
    errors
}

fn conflicts(scopes: &[&str], path: &str, value: &Value) -> Vec<FieldError> {
    let pairs = [
        ["BestEffort", "NotBestEffort"],
        ["Terminating", "NotTerminating"],
    ];
    let both = pairs
        .iter()
        .filter(|it| it.iter().all(|one| scopes.contains(one)));
    both.map(|_| FieldError::invalid(path, value.clone(), "conflicting scopes"))
        .collect()
}

fn requirement_errors(requirement: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (scope, operator) = (
        text(requirement, "scopeName"),
        text(requirement, "operator"),
    );
    let by_name = matches!(scope, "PriorityClass" | "VolumeAttributesClass");
    let at = || format!("{path}.operator");
    if SCOPES.contains(&scope) && !by_name && operator != "Exists" {
        let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
             ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
             ResourceQuotaScopeNotBestEffort or \
             ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.push(FieldError::invalid(at(), operator.into(), why));
    }
    let count = column::count(&requirement["values"]);
    let values = format!("{path}.values");
    match operator {
        "In" | "NotIn" if count == 0 => {
            let why = "must be at least one value when `operator` is 'In' or 'NotIn' for \
                 scope selector";
            errors.push(FieldError::required(values, why));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for \
                 scope selector";
            let value = requirement["values"].clone();
            errors.push(FieldError::invalid(values, value, why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => {
            let why = "not a valid selector operator";
            errors.push(FieldError::invalid(at(), operator.into(), why));
        }
    }
    errors
}
