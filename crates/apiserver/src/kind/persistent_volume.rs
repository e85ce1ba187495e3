//! PersistentVolumes: stored and validated, with nobody who provisions or attaches them.

use fivespot_admission::FieldError;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{BuiltinKind, Write, column, resource_name, text, volume};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `persistentvolumes` of `v1`.
#[derive(Debug)]
pub(super) struct PersistentVolume;

/// The fields of a spec that say what a volume is made of.
const SOURCES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
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
    let mut errors = volume::mode_errors(spec, "");
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
    let sources: Vec<&str> = SOURCES
        .into_iter()
        .filter(|it| spec[*it].is_object())
        .collect();
    if sources.is_empty() {
        errors.push(FieldError::required("spec", "must specify a volume type"));
    }
    for source in sources.iter().skip(1) {
        let why = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(format!("spec.{source}"), why));
    }
    errors.extend(volume::volume_mode_errors(spec));
    errors
}
