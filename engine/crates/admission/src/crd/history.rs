//! Validation of a definition outside its spec, and of its immutable fields.

use serde_json::Value;

use super::definition::{ROOT, SPEC, flag, text};
use crate::FieldError;
use crate::quote::Json;

const APPROVAL: &str = "api-approved.kubernetes.io";

/// Validates the stored versions: those of `old`, and the storage version of the new
/// definition.
pub(super) fn stored_versions(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let status = ROOT.field("status");
    let path = status.field("storedVersions");
    let mut stored: Vec<String> = old.map(stored_before).unwrap_or_default();
    let now = versions(crd).find(|it| flag(it, "storage"));
    if let Some(now) = now.map(|it| text(it, "name"))
        && !stored.iter().any(|it| it == now)
    {
        stored.push(now.to_owned());
    }
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        return vec![FieldError::invalid_form(path, "null", detail)];
    }
    let mut errors = Vec::new();
    // Each stored version is matched once: a second version with its name is not matched.
    let mut missing: Vec<&String> = stored.iter().collect();
    for version in versions(crd) {
        let name = text(version, "name");
        let before = missing.len();
        missing.retain(|it| *it != name);
        if missing.len() == before && flag(version, "storage") {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(path, stored.clone().into(), detail));
        }
    }
    for (at, name) in stored.iter().enumerate() {
        if !versions(crd).any(|it| text(it, "name") == name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and \
                 must remain in spec.versions until a storage migration ensures no data \
                 remains persisted in {name} and removes {name} from status.storedVersions"
            );
            let name = name.as_str().into();
            errors.push(FieldError::invalid(path.index(at), name, detail));
        }
    }
    errors
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    let versions = crd.get("spec").and_then(|it| it.get("versions"));
    versions.and_then(Value::as_array).into_iter().flatten()
}

fn stored_before(old: &Value) -> Vec<String> {
    let listed = old.get("status").and_then(|it| it.get("storedVersions"));
    let listed: Vec<String> = listed
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect();
    if !listed.is_empty() {
        return listed;
    }
    let stored = versions(old).find(|it| flag(it, "storage"));
    stored
        .map(|it| text(it, "name").to_owned())
        .into_iter()
        .collect()
}

/// The annotation that API groups of the Kubernetes community require.
pub(super) fn approval(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let group = crd.get("spec").map_or("", |it| text(it, "group"));
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let state = Approval::of(crd);
    if !is_protected || old.is_some_and(|old| Approval::of(old) == state) {
        return None;
    }
    let metadata = ROOT.field("metadata");
    let path = metadata.field("annotations");
    let path = path.key(APPROVAL);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state {
        Approval::Approved | Approval::Bypassed => None,
        Approval::Missing => {
            let detail = format!(
                "protected groups must have approval annotation \"{APPROVAL}\", {see}"
            );
            Some(FieldError::required(path, detail))
        }
        Approval::Invalid => {
            let detail = format!(
                "protected groups must have approval annotation \"{APPROVAL}\" with either \
                 a URL or a reason starting with \"unapproved\", {see}"
            );
            Some(FieldError::invalid(path, annotation(crd).into(), detail))
        }
    }
}

#[derive(PartialEq)]
enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

fn annotation(crd: &Value) -> &str {
    let annotations = crd.get("metadata").and_then(|it| it.get("annotations"));
    annotations.map_or("", |it| text(it, APPROVAL))
}

impl Approval {
    fn of(crd: &Value) -> Self {
        let annotation = annotation(crd);
        let has_host = |url: &str| {
            url.split_once("://").is_some_and(|(scheme, rest)| {
                !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/')
            })
        };
        match annotation {
            "" => Self::Missing,
            it if it.starts_with("unapproved") => Self::Bypassed,
            it if has_host(it) => Self::Approved,
            _ => Self::Invalid,
        }
    }
}

/// Preserving unknown fields everywhere is only allowed if the old definition already did.
pub(super) fn preserving(crd: &Value, old: Option<&Value>) -> Option<FieldError> {
    let preserves = |crd: &Value| crd.get("spec").is_some_and(|it| flag(it, PRESERVE));
    (preserves(crd) && !old.is_some_and(preserves)).then(|| {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true \
                      in spec.versions[*].schema instead";
        FieldError::invalid(SPEC.field(PRESERVE), true.into(), detail)
    })
}

pub(super) const PRESERVE: &str = "preserveUnknownFields";

/// Immutable fields: `group` and the plural, and once the definition is established also the
/// scope and the kind.
pub(super) fn immutable(crd: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let null = Value::Null;
    let spec = |crd: &'_ Value| crd.get("spec").cloned().unwrap_or_default();
    let (new_spec, old_spec) = (spec(crd), spec(old));
    let names = |spec: &Value| spec.get("names").unwrap_or(&null).clone();
    let (new_names, old_names) = (names(&new_spec), names(&old_spec));
    let at_names = SPEC.field("names");
    let detail = "field is immutable";
    let is_established = is_established(old);
    let scope = text(&new_spec, "scope");
    if is_established && scope != text(&old_spec, "scope") {
        // The type of a scope is not Go's string, so Kubernetes prints the value as JSON.
        let shown = Json(&scope.into()).to_string();
        errors.push(FieldError::invalid_form(
            SPEC.field("scope"),
            &shown,
            detail,
        ));
    }
    let mut check = |path, (new, old): (&Value, &Value), name: &str| {
        let (new, old) = (text(new, name), text(old, name));
        if new != old {
            errors.push(FieldError::invalid(path, new.into(), detail));
        }
    };
    if is_established {
        check(at_names.field("kind"), (&new_names, &old_names), "kind");
    }
    check(SPEC.field("group"), (&new_spec, &old_spec), "group");
    check(at_names.field("plural"), (&new_names, &old_names), "plural");
    errors
}

pub(super) fn is_established(crd: &Value) -> bool {
    let conditions = crd.get("status").and_then(|it| it.get("conditions"));
    conditions
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|it| text(it, "type") == "Established" && text(it, "status") == "True")
}
