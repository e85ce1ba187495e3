//! Resources, cells and validation of roles and bindings (pkg/apis/rbac).

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{Write, column, items, rule, text};
use crate::resource::{Column, Resource};

const GROUP: &str = "rbac.authorization.k8s.io";
const ROLE: &str = "RoleRef can reference a Role in the current namespace or a ClusterRole in the \
     global namespace. If the RoleRef cannot be resolved, the Authorizer must return an error.";

/// The scope of a role or a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoleScope {
    Namespace,
    Cluster,
}

/// The resource of a role.
pub(super) fn role_resource(kind: &str, plural: &str) -> Resource {
    Resource::new(GROUP, "v1", kind, plural)
        .without_generation()
        .allow_create_on_update()
        .with_columns(vec![Column::created_at()])
}

/// Sets an empty list of rules to null.
pub(super) fn without_empty_rules(object: &mut Value) {
    if object.get("rules").is_some_and(|it| column::count(it) == 0) {
        object["rules"] = Value::Null;
    }
}

/// The errors of the selectors of an aggregated role.
pub(super) fn aggregation_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let rule = Field::of(object, "aggregationRule");
    if !rule.is_set() {
        return errors;
    }
    let selectors = rule.child("clusterRoleSelectors");
    if selectors.len() == 0 {
        let why =
            "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(selectors.required(why));
    }
    for selector in selectors.items() {
        rule::selector(&selector, &mut errors);
        if !rule::is_readable(&selector) {
            let path = selector.path.clone();
            let why = "invalid label selector.";
            errors.push(FieldError::invalid(path, Value::Null, why));
        }
    }
    errors
}

/// The cells of a role.
pub(super) fn role_cells(object: &Value) -> Vec<Value> {
    let created = object["metadata"]["creationTimestamp"].clone();
    vec![column::name(object), created]
}

/// The errors of the rules of a role.
pub(super) fn role_errors(object: &Value, scope: RoleScope) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in items(object, "rules") {
        let path = |field: &str| format!("rules[{index}].{field}");
        let none = |field: &str| rule[field].as_array().is_none_or(Vec::is_empty);
        if none("verbs") {
            let why = "verbs must contain at least one value";
            errors.push(FieldError::required(path("verbs"), why));
        }
        if !none("nonResourceURLs") {
            let value = rule["nonResourceURLs"].clone();
            let at = path("nonResourceURLs");
            if scope == RoleScope::Namespace {
                let why = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(at, value, why));
            } else if !none("apiGroups") || !none("resources") || !none("resourceNames") {
                let why =
                    "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(at, value, why));
            }
            continue;
        }
        if none("apiGroups") {
            let why = "resource rules must supply at least one api group";
            errors.push(FieldError::required(path("apiGroups"), why));
        }
        if none("resources") {
            let why = "resource rules must supply at least one resource";
            errors.push(FieldError::required(path("resources"), why));
        }
    }
    errors
}

/// The resource of a binding.
pub(super) fn binding_resource(kind: &str, plural: &str) -> Resource {
    Resource::new(GROUP, "v1", kind, plural)
        .without_generation()
        .allow_create_on_update()
        .with_columns(vec![
            Column::new("Role", "string", ROLE),
            Column::age(),
            Column::new("Users", "string", "Users in the roleBinding").wide(),
            Column::new("Groups", "string", "Groups in the roleBinding").wide(),
            Column::new(
                "ServiceAccounts",
                "string",
                "ServiceAccounts in the roleBinding",
            )
            .wide(),
        ])
}

/// Defaults the API groups of the role and the subjects.
pub(super) fn default_binding(object: &mut Value) {
    if let Some(role) = object.get_mut("roleRef").and_then(Value::as_object_mut) {
        let group = role.entry("apiGroup").or_insert_with(|| "".into());
        if group == "" {
            *group = GROUP.into();
        }
    }
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        if matches!(subject["kind"].as_str(), Some("User" | "Group"))
            && let Some(fields) = subject.as_object_mut()
        {
            fields.entry("apiGroup").or_insert_with(|| GROUP.into());
        }
    }
}

/// The cells of a binding.
pub(super) fn binding_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = &object["roleRef"];
    let (kind, name) = (text(role, "kind"), text(role, "name"));
    let subjects = |kind: &str| {
        let named: Vec<_> = column::list(&object["subjects"])
            .iter()
            .filter(|it| it["kind"] == kind)
            .map(|it| {
                let name = text(it, "name");
                match it["namespace"].as_str() {
                    Some(namespace) if kind == "ServiceAccount" => {
                        format!("{namespace}/{name}")
                    }
                    _ => name.to_owned(),
                }
            })
            .collect();
        Value::from(named.join(", "))
    };
    vec![
        column::name(object),
        format!("{kind}/{name}").into(),
        column::age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

/// The validation errors of a binding: of its role, which is immutable, and of its subjects.
pub(super) fn binding_errors(write: &Write<'_>, scope: RoleScope) -> Vec<FieldError> {
    let Write { object, old, .. } = *write;
    let mut errors = Vec::new();
    let role = &object["roleRef"];
    let word = |key: &str| text(role, key);
    // An absent group is defaulted, and an empty one is valid.
    if !matches!(word("apiGroup"), "" | GROUP) {
        let group = word("apiGroup").into();
        errors.push(FieldError::not_supported(
            "roleRef.apiGroup",
            group,
            [GROUP],
        ));
    }
    let kinds: &[&str] = if scope == RoleScope::Namespace {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.contains(&word("kind")) {
        let kind = word("kind").into();
        let known = kinds.iter().copied();
        errors.push(FieldError::not_supported("roleRef.kind", kind, known));
    }
    if word("name").is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for wrong in name::path_segment(word("name")) {
        let name = word("name").into();
        errors.push(FieldError::invalid("roleRef.name", name, wrong));
    }
    for (index, one) in items(object, "subjects") {
        errors.extend(subject(one, &format!("subjects[{index}]")));
        let is_nowhere =
            text(one, "kind") == "ServiceAccount" && text(one, "namespace").is_empty();
        if scope == RoleScope::Cluster && is_nowhere {
            let path = format!("subjects[{index}].namespace");
            errors.push(FieldError::required(path, ""));
        }
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        let shown = json!({
            "APIGroup": word("apiGroup"), "Kind": word("kind"), "Name": word("name"),
        });
        errors.push(FieldError::invalid(
            "roleRef",
            shown,
            "cannot change roleRef",
        ));
    }
    errors
}

fn subject(subject: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (kind, named) = (text(subject, "kind"), text(subject, "name"));
    if named.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let group = if kind == "ServiceAccount" { "" } else { GROUP };
    match kind {
        "ServiceAccount" if !named.is_empty() => {
            for wrong in name::dns_subdomain(named) {
                let at = format!("{path}.name");
                errors.push(FieldError::invalid(at, named.into(), wrong));
            }
        }
        "ServiceAccount" | "User" | "Group" => {}
        _ => {
            let known = ["ServiceAccount", "User", "Group"];
            let at = format!("{path}.kind");
            errors.push(FieldError::not_supported(at, kind.into(), known));
            return errors;
        }
    }
    if text(subject, "apiGroup") != group {
        let value = subject["apiGroup"].clone();
        let at = format!("{path}.apiGroup");
        errors.push(FieldError::not_supported(at, value, [group]));
    }
    errors
}
