//! PersistentVolumeClaims: stored and validated, with nobody who binds them.

use fivespot_admission::{FieldError, Quantity};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::field::Field;
use super::{BuiltinKind, Write, column, pod_spec, resource_name, text, volume};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `persistentvolumeclaims` of `v1`.
#[derive(Debug)]
pub(super) struct PersistentVolumeClaim;

impl BuiltinKind for PersistentVolumeClaim {
    fn resource(&self) -> Resource {
        let more =
            "More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes";
        let column = |name: &str, text: &str| Column::new(name, "string", text);
        Resource::new(
            "",
            "v1",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
        )
        .with_short_names(&["pvc"])
        .without_generation()
        .with_subresources(&[Subresource::Status])
        .with_columns(vec![
            column(
                "Status",
                "phase represents the current phase of PersistentVolumeClaim.",
            ),
            column(
                "Volume",
                "volumeName is the binding reference to the PersistentVolume backing this claim.",
            ),
            column(
                "Capacity",
                "capacity represents the actual resources of the underlying volume.",
            ),
            column(
                "Access Modes",
                &format!(
                    "accessModes contains the actual access modes the volume backing the PVC \
                     has. {more}#access-modes-1"
                ),
            ),
            column("StorageClass", "StorageClass of the pvc"),
            column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
            Column::age(),
            column(
                "VolumeMode",
                "volumeMode defines what type of volume is required by the claim. Value of \
                 Filesystem is implied when not included in claim spec.",
            )
            .wide(),
        ])
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        spec.entry("volumeMode")
            .or_insert_with(|| json!("Filesystem"));
        for list in ["requests", "limits"] {
            let amounts = spec
                .get_mut("resources")
                .and_then(|it| it.get_mut(list)?.as_object_mut());
            if let Some(amounts) = amounts {
                resource_name::canonical(amounts);
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let status = json!({"phase": "Pending"});
        meta::fields(object).insert("status".to_owned(), status);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        pod_spec::claim_errors(&Field::of(write.object, "spec"), &mut errors);
        if let Some(old) = write.old {
            errors.extend(update_errors(write.object, old));
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
        let empty = || Value::from("");
        let is_bound = !text(spec, "volumeName").is_empty();
        let (capacity, modes) = if is_bound {
            let modes = volume::modes(&status["accessModes"]);
            (volume::storage(&status["capacity"]), modes)
        } else {
            (empty(), empty())
        };
        vec![
            column::name(object),
            phase.into(),
            column::string(&spec["volumeName"]),
            capacity,
            modes,
            column::string(&spec["storageClassName"]),
            volume::or_unset(&spec["volumeAttributesClassName"]),
            column::age(object, now),
            volume::or_unset(&spec["volumeMode"]),
        ]
    }
}

fn requested(object: &Value) -> Option<Quantity> {
    resource_name::quantity(&object["spec"]["resources"]["requests"]["storage"])
}

/// What an update may not change (`ValidatePersistentVolumeClaimUpdate`). Kubernetes shows the
/// difference behind the first sentence.
fn update_errors(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_bound = text(&object["status"], "phase") == "Bound";
    let has_volume = !text(&old["spec"], "volumeName").is_empty();
    let fixed = |object: &Value| -> Map<String, Value> {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        if !has_volume {
            spec.shift_remove("volumeName");
        }
        // A class may be set once where there was none.
        if old["spec"]["storageClassName"].is_null() {
            spec.shift_remove("storageClassName");
        }
        if is_bound {
            spec.shift_remove("volumeAttributesClassName");
            let requests = spec
                .get_mut("resources")
                .and_then(|it| it.get_mut("requests")?.as_object_mut());
            requests.map(|it| it.shift_remove("storage"));
        }
        spec
    };
    if fixed(object) != fixed(old) {
        let why = "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden("spec", why));
    }
    let capacity = resource_name::quantity(&old["status"]["capacity"]["storage"]);
    let capacity = capacity.unwrap_or_else(|| Quantity::count(0));
    if let (Some(now), Some(before)) = (requested(object), requested(old))
        && now < before
        && now <= capacity
    {
        let path = "spec.resources.requests.storage";
        let why = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden(path, why));
    }
    let field = "volumeMode";
    if object["spec"][field] != old["spec"][field] {
        let said = object["spec"][field].clone();
        errors.push(FieldError::invalid(field, said, "field is immutable"));
    }
    errors
}
