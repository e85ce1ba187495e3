//! Persistent volume claims of ephemeral volumes (`ValidatePersistentVolumeClaimSpec`).

use kubemu_admission::{FieldError, name};

use crate::kind::field::{Errors, Field};
use crate::kind::{resource_name, rule};

const MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Validates the claim template of an ephemeral volume.
pub(super) fn template(field: &Field<'_>, errors: &mut Errors) {
    if field.is_set() {
        self::errors(&field.child("spec"), false, errors);
    } else {
        errors.push(field.required(""));
    }
}

/// Validates the spec of a claim. If `had_group`, the API group of its data source was set before
/// and is not checked.
pub(in crate::kind) fn errors(spec: &Field<'_>, had_group: bool, errors: &mut Errors) {
    let modes = spec.child("accessModes");
    if modes.len() == 0 {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    rule::selector(&spec.child("selector"), errors);
    let all: Vec<&str> = modes.items().map(|it| it.text()).collect();
    for mode in all.iter().filter(|it| !MODES.contains(it)) {
        let (path, known) = (modes.path.clone(), MODES.iter().copied());
        errors.push(FieldError::not_supported(path, (*mode).into(), known));
    }
    let alone = "ReadWriteOncePod";
    let others = all.iter().any(|it| *it != alone && MODES.contains(it));
    if all.contains(&alone) && others {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(modes.forbidden(why));
    }
    storage(spec, errors);
    for class in ["storageClassName", "volumeAttributesClassName"] {
        rule::text_if_set(&spec.child(class), name::dns_subdomain, errors);
    }
    let known = ["Block", "Filesystem"];
    rule::one_of_if_set(&spec.child("volumeMode"), &known, errors);
    for name in ["dataSource", "dataSourceRef"] {
        let source = spec.child(name);
        if source.is_set() {
            data_source(&source, had_group, errors);
        }
    }
    same_source(spec, errors);
}

/// The error if both data source fields are set and differ. Kubernetes shows the path of
/// `dataSource` as the value of the spec.
fn same_source(spec: &Field<'_>, errors: &mut Errors) {
    let (local, any) = (spec.child("dataSource"), spec.child("dataSourceRef"));
    if !local.is_set() || !any.is_set() {
        return;
    }
    let names = ["apiGroup", "kind", "name"];
    let why = if !any.child("namespace").text().is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if names.iter().any(|it| local.value[*it] != any.value[*it]) {
        "must match dataSourceRef"
    } else {
        return;
    };
    errors.push(FieldError::invalid(
        spec.path.clone(),
        local.path.to_string().into(),
        why,
    ));
}

/// Validates a data source: another claim, or an object of an API group.
fn data_source(source: &Field<'_>, had_group: bool, errors: &mut Errors) {
    for name in ["name", "kind"] {
        let field = source.child(name);
        if field.text().is_empty() {
            errors.push(field.required(""));
        }
    }
    let (group, kind) = (source.child("apiGroup"), source.child("kind").text());
    if group.text().is_empty() && kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        let path = source.path.clone();
        errors.push(FieldError::invalid(path, kind.into(), why));
    }
    if !had_group {
        rule::text_if_set(&group, name::dns_subdomain, errors);
    }
    let namespace = source.child("namespace");
    rule::text_if_set(&namespace, name::dns_label, errors);
}

fn storage(spec: &Field<'_>, errors: &mut Errors) {
    let path = spec.path_of("resources[storage]");
    let requested = spec.child("resources.requests.storage");
    match resource_name::quantity(requested.value) {
        None => errors.push(FieldError::required(path, "")),
        Some(amount) if amount.signum() <= 0 => {
            let actual = amount.to_string().into();
            let why = "must be greater than zero";
            errors.push(FieldError::invalid(path, actual, why));
        }
        Some(_) => {}
    }
}
