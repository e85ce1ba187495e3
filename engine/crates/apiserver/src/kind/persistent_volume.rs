//! PersistentVolumes: validated and stored; no controller provisions or attaches them.

mod change;
mod source;
mod validation;

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::Field;
use super::pod_spec::default::fill;
use super::{BuiltinKind, Write, column, pod_spec, resource_name, text, volume};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// The finalizer of volumes.
pub(crate) const OF_VOLUME: &str = "kubernetes.io/pv-protection";

/// `persistentvolumes` of `v1`.
#[derive(Debug)]
pub(super) struct PersistentVolume;

const RECLAIM: &str = "persistentVolumeReclaimPolicy defines what happens to a persistent volume \
     when released from its claim. Valid options are Retain (default for manually created \
     PersistentVolumes), Delete (default for dynamically provisioned PersistentVolumes), and Recycle \
     (deprecated). Recycle must be supported by the volume plugin underlying this PersistentVolume.";

impl BuiltinKind for PersistentVolume {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "PersistentVolume", "persistentvolumes")
            .cluster_scoped()
            .returned_when_deleted()
            .with_short_names(&["pv"])
            .without_generation()
            .with_subresources(&[Subresource::Status])
            .with_columns(columns())
    }

    fn revalidates_name(&self) -> bool {
        true
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
        source::default(spec);
        let status = meta::field(meta::fields(object), "status");
        fill(status, "phase", "Pending");
    }

    fn prepare_create(&self, object: &mut Value) {
        let now = object["metadata"]["creationTimestamp"].clone();
        let status = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        meta::fields(object).insert("status".to_owned(), status);
    }

    fn prepare_subresource(
        &self,
        _subresource: &str,
        object: &mut Value,
        old: &Value,
        now: &str,
    ) {
        const TIME: &str = "lastPhaseTransitionTime";
        let same_phase = object["status"]["phase"] == old["status"]["phase"];
        let (value, previous) = (&object["status"][TIME], &old["status"][TIME]);
        let since = match (same_phase, value.is_null()) {
            (true, true) => previous.clone(),
            (false, true) => now.into(),
            (false, false) if value == previous => now.into(),
            _ => return,
        };
        if !since.is_null() {
            let status = meta::field(meta::fields(object), "status");
            status.insert(TIME.to_owned(), since);
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        if write.subresource == "status" {
            return Vec::new();
        }
        let mut errors = validation::errors(write.object);
        if let Some(old) = write.old {
            change::errors(&write.object["spec"], &old["spec"], &mut errors);
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        warnings(write.object)
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

/// The deprecated annotation for the field `mountOptions`.
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

/// The warnings for a volume (pkg/api/persistentvolume).
fn warnings(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let deprecated = [
        (
            "volume.beta.kubernetes.io/storage-class",
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            MOUNT_OPTIONS,
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ];
    for (key, why) in deprecated {
        if object["metadata"]["annotations"].get(key).is_some() {
            found.push(format!("metadata.annotations[{key}]: {why}"));
        }
    }
    let spec = &object["spec"];
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        found.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
             Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms =
        Field::of(object, "spec").child("nodeAffinity.required.nodeSelectorTerms");
    for term in terms.items() {
        pod_spec::warning::node::term(&term, false, &mut found);
    }
    let gone = [
        ("cephfs", "cephfs", "v1.28", "v1.31"),
        (
            "photonPersistentDisk",
            "photonPersistentDisk",
            "v1.11",
            "v1.16",
        ),
        ("scaleIO", "scaleIO", "v1.16", "v1.22"),
        ("storageos", "storageOS", "v1.22", "v1.25"),
        ("glusterfs", "glusterfs", "v1.25", "v1.26"),
        ("rbd", "rbd", "v1.28", "v1.31"),
    ];
    for (name, shown, deprecated, gone) in gone {
        if !spec[name].is_null() {
            found.push(format!(
                "spec.{shown}: deprecated in {deprecated}, non-functional in {gone}+"
            ));
        }
    }
    found
}
