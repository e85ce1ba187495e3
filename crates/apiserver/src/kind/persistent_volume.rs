//! PersistentVolumes: stored and validated, with nobody who provisions or attaches them.

use fivespot_admission::{FieldError, name};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::pod_spec::volume_source;
use super::{BuiltinKind, Write, column, pod_spec, resource_name, rule, text, volume};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `persistentvolumes` of `v1`.
#[derive(Debug)]
pub(super) struct PersistentVolume;

/// The fields of a spec that say what a volume is made of, in the order of Kubernetes' checks.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

const RECLAIM: &str = "persistentVolumeReclaimPolicy defines what happens to a persistent volume \
     when released from its claim. Valid options are Retain (default for manually created \
     PersistentVolumes), Delete (default for dynamically provisioned PersistentVolumes), and Recycle \
     (deprecated). Recycle must be supported by the volume plugin underlying this PersistentVolume.";

impl BuiltinKind for PersistentVolume {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "PersistentVolume", "persistentvolumes")
            .in_the_cluster()
            .with_short_names(&["pv"])
            .without_generation()
            .with_subresources(&[Subresource::Status])
            .with_columns(columns())
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        for (field, word) in [
            ("persistentVolumeReclaimPolicy", "Retain"),
            ("volumeMode", "Filesystem"),
        ] {
            spec.entry(field).or_insert_with(|| json!(word));
        }
        if let Some(capacity) = spec.get_mut("capacity").and_then(Value::as_object_mut) {
            resource_name::canonical(capacity);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let status = json!({"phase": "Pending"});
        meta::fields(object).insert("status".to_owned(), status);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let spec = &write.object["spec"];
        let mut errors = spec_errors(spec);
        if let Some(old) = write.old {
            let old = &old["spec"];
            if SOURCES.iter().any(|it| spec[*it] != old[*it]) {
                let why = "spec.persistentvolumesource is immutable after creation";
                let path = "spec.persistentvolumesource";
                errors.push(FieldError::forbidden(path, why));
            }
            if spec["volumeMode"] != old["volumeMode"] {
                let said = spec["volumeMode"].clone();
                let why = "field is immutable";
                errors.push(FieldError::invalid("volumeMode", said, why));
            }
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let phase = if meta::is_deleting(object) {
            "Terminating"
        } else {
            text(status, "phase")
        };
        let claim = &spec["claimRef"];
        let claim = if claim.is_object() {
            format!("{}/{}", text(claim, "namespace"), text(claim, "name"))
        } else {
            String::new()
        };
        vec![
            column::name(object),
            volume::storage(&spec["capacity"]),
            volume::modes(&spec["accessModes"]),
            column::string(&spec["persistentVolumeReclaimPolicy"]),
            phase.into(),
            claim.into(),
            column::string(&spec["storageClassName"]),
            volume::or_unset(&spec["volumeAttributesClassName"]),
            column::string(&status["reason"]),
            column::age(object, now),
            volume::or_unset(&spec["volumeMode"]),
        ]
    }
}

fn columns() -> Vec<Column> {
    let more =
        "More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes";
    let column = |name: &str, text: &str| Column::new(name, "string", text);
    vec![
                column(
                    "Capacity",
                    &format!(
                        "capacity is the description of the persistent volume's resources and \
                         capacity. {more}#capacity"
                    ),
                ),
                column(
                    "Access Modes",
                    &format!(
                        "accessModes contains all ways the volume can be mounted. \
                         {more}#access-modes"
                    ),
                ),
                column("Reclaim Policy", &format!("{RECLAIM} {more}#reclaiming")),
                column(
                    "Status",
                    &format!(
                        "phase indicates if a volume is available, bound to a claim, or \
                         released by a claim. {more}#phase"
                    ),
                ),
                column(
                    "Claim",
                    &format!(
                        "claimRef is part of a bi-directional binding between PersistentVolume \
                         and PersistentVolumeClaim. Expected to be non-nil when bound. \
                         claim.VolumeName is the authoritative bind between PV and PVC. \
                         {more}#binding"
                    ),
                ),
                column("StorageClass", "StorageClass of the pv"),
                column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
                column(
                    "Reason",
                    "reason is a brief CamelCase string that describes any failure and is meant \
                     for machine parsing and tidy display in the CLI.",
                ),
                Column::age(),
                column(
                    "VolumeMode",
                    "volumeMode defines if a volume is intended to be used with a formatted \
                     filesystem or to remain in raw block state. Value of Filesystem is implied \
                     when not included in spec.",
                )
                .wide(),
            ]
}

fn spec_errors(spec: &Value) -> Vec<FieldError> {
    let mut errors = volume::mode_errors(spec);
    let (path, capacity) = ("spec.capacity", &spec["capacity"]);
    if column::count(capacity) == 0 {
        errors.push(FieldError::required(path, ""));
    }
    if capacity["storage"].is_null() || column::count(capacity) > 1 {
        let said = capacity.clone();
        errors.push(FieldError::not_supported(path, said, ["storage"]));
    }
    for (resource, amount) in resource_name::amounts(capacity) {
        if amount.signum() <= 0 {
            let at = format!("{path}[{resource}]");
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
        path: "spec".to_owned(),
        value: spec,
    };
    let affinity = at.child("nodeAffinity");
    if affinity.is_set() {
        node_affinity(&affinity.child("required"), &mut errors);
    }
    sources(&at, &mut errors);
    let (classes, path) = (name::dns_subdomain, "storageClassName");
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

/// What the volume is made of: one source, in the order of Kubernetes' checks.
fn sources(spec: &Field<'_>, errors: &mut Errors) {
    let set = SOURCES.iter().filter(|it| spec.child(it).is_set());
    let mut count = 0;
    for name in set {
        count += 1;
        // Kubernetes forgets to count a flexVolume among the others.
        if count > 1 && *name != "flexVolume" {
            let refused = if *name == "cephfs" { "cephFS" } else { name };
            let why = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(spec.path_of(refused), why));
        } else {
            source(name, spec, errors);
        }
    }
    if count == 0 {
        errors.push(spec.required("must specify a volume type"));
    }
    let root = spec.child("hostPath.path").text();
    let is_root = spec.child("hostPath").is_set() && is_root(root);
    let policy = spec.child("persistentVolumeReclaimPolicy");
    if is_root && policy.text() == "Recycle" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(policy.forbidden(why));
    }
}

/// One source. Those of clouds, whose drivers are gone, are not checked.
fn source(name: &str, spec: &Field<'_>, errors: &mut Errors) {
    let source = spec.child(name);
    match name {
        "hostPath" => volume_source::host_path(&source, errors),
        "nfs" => volume_source::nfs(&source, errors),
        "local" => {
            let path = source.child("path");
            if path.text().is_empty() {
                errors.push(path.required(""));
            } else {
                rule::path_without_backsteps(&path, errors);
            }
            let affinity = spec.child("nodeAffinity");
            if !affinity.is_set() {
                errors.push(affinity.required("Local volume requires node affinity"));
            }
        }
        "csi" => csi(&source, errors),
        "flexVolume" => volume_source::required(&source, &["driver"], errors),
        _ => {}
    }
}

fn csi(source: &Field<'_>, errors: &mut Errors) {
    volume_source::driver(&source.child("driver"), errors);
    volume_source::required(source, &["volumeHandle"], errors);
    for name in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = source.child(name);
        if secret.is_set() {
            missing_or(&secret.child("name"), rule::dns_subdomain, errors);
            missing_or(&secret.child("namespace"), rule::dns_label, errors);
        }
    }
}

/// A text that has to be there and to keep a rule.
fn missing_or(
    field: &Field<'_>,
    rule: impl Fn(&Field<'_>, &mut Errors),
    errors: &mut Errors,
) {
    if field.text().is_empty() {
        errors.push(field.required(""));
    } else {
        rule(field, errors);
    }
}

/// Whether a path means the root of a file system (`path.Clean`).
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    path.starts_with('/') && depth == 0
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
