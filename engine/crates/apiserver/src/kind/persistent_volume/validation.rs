//! The validation of persistent volumes (pkg/apis/core/validation).

use kubemu_admission::FieldError;
use kubemu_admission::name::dns_subdomain;
use serde_json::Value;

use super::{MOUNT_OPTIONS, source};
use crate::kind::field::{Errors, Field};
use crate::kind::{column, pod_spec, resource_name, rule, text, volume};
use crate::meta;

/// Sources that support mount options.
const MOUNTED: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

/// The validation errors of a volume on create and update (`ValidatePersistentVolume`).
pub(super) fn errors(object: &Value) -> Errors {
    let mut errors = spec_errors(&object["spec"], meta::name(object));
    mount_options(object, &mut errors);
    errors
}

fn spec_errors(spec: &Value, name: &str) -> Errors {
    let mut errors = volume::mode_errors(spec);
    let (path, capacity) = ("spec.capacity", &spec["capacity"]);
    if column::count(capacity) == 0 {
        errors.push(FieldError::required(path, ""));
    }
    if capacity["storage"].is_null() || column::count(capacity) > 1 {
        let actual = capacity.clone();
        errors.push(FieldError::not_supported(path, actual, ["storage"]));
    }
    for (resource, amount) in resource_name::amounts(capacity) {
        let at = format!("{path}[{resource}]");
        if amount.value() < 0 {
            let why = "must be a valid resource quantity";
            errors.push(FieldError::invalid(&*at, amount.value().into(), why));
        }
        if amount.signum() <= 0 {
            let why = "must be greater than zero";
            errors.push(FieldError::invalid(at, amount.to_string().into(), why));
        }
    }
    let (field, known) = (
        "persistentVolumeReclaimPolicy",
        ["Delete", "Recycle", "Retain"],
    );
    let policy = text(spec, field);
    if !known.contains(&policy) {
        let at = format!("spec.{field}");
        errors.push(FieldError::not_supported(at, policy.into(), known));
    }
    let at = Field {
        path: "spec".into(),
        value: spec,
    };
    let affinity = at.child("nodeAffinity");
    if affinity.is_set() {
        node_affinity(&affinity.child("required"), &mut errors);
    }
    source::errors(&at, name, &mut errors);
    let (classes, path) = (dns_subdomain, "storageClassName");
    rule::text_if_set(&at.child(path), classes, &mut errors);
    errors.extend(volume::volume_mode_errors(spec));
    attributes_class(&at, &mut errors);
    errors
}

fn node_affinity(required: &Field<'_>, errors: &mut Errors) {
    if required.is_set() {
        pod_spec::node_selector(required, errors);
    } else {
        errors.push(required.required("must specify required node constraints"));
    }
}

fn attributes_class(spec: &Field<'_>, errors: &mut Errors) {
    let class = spec.child("volumeAttributesClassName");
    if !class.is_set() {
        return;
    }
    if class.text().is_empty() {
        errors.push(class.required("an empty string is disallowed"));
    } else {
        rule::dns_subdomain(&class, errors);
    }
    let csi = spec.child("csi");
    if !csi.is_set() {
        let why = "has to be specified when using volumeAttributesClassName";
        errors.push(csi.required(why));
    }
}

/// The error for mount options in the annotation of a volume that does not support them.
fn mount_options(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let is_set = object["metadata"]["annotations"]
        .get(MOUNT_OPTIONS)
        .is_some();
    if is_set && MOUNTED.iter().all(|it| spec[*it].is_null()) {
        let path = format!("metadata.annotations.{MOUNT_OPTIONS}");
        let why = "may not specify mount options for this volume type";
        errors.push(FieldError::forbidden(path, why));
    }
}
