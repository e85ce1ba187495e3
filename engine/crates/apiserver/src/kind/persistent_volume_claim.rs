//! PersistentVolumeClaims: validated and stored; no controller binds them.

mod change;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Map, Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, Write, column, pod_spec, resource_name, text, volume};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// The finalizer of claims.
pub(crate) const OF_CLAIM: &str = "kubernetes.io/pvc-protection";

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
        .returned_when_deleted()
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
        let status = meta::field(meta::fields(object), "status");
        status.entry("phase").or_insert_with(|| json!("Pending"));
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
        fill_sources(object, None);
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        fill_sources(object, Some(old));
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if write.subresource == "status" {
            status_errors(write.object, &mut errors);
            return errors;
        }
        let spec = Field::of(write.object, "spec");
        let had_group = write.old.is_some_and(|old| {
            let has = |name: &str| !old["spec"][name]["apiGroup"].is_null();
            has("dataSource") || has("dataSourceRef")
        });
        pod_spec::claim_errors(&spec, had_group, &mut errors);
        if let Some(old) = write.old {
            errors.extend(change::errors(write.object, old));
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        let mut found = Vec::new();
        let key = CLASS;
        if write.object["metadata"]["annotations"].get(key).is_some() {
            found.push(format!(
                "metadata.annotations[{key}]: deprecated since v1.8; use \"storageClassName\" \
                 attribute instead"
            ));
        }
        found.extend(fractions("spec", &write.object["spec"]));
        found
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

/// The warnings for amounts in the spec of a claim at this path that are not a whole number of bytes.
pub(super) fn fractions(path: &str, spec: &Value) -> impl Iterator<Item = String> {
    ["requests", "limits"].into_iter().filter_map(move |list| {
        let amount = resource_name::quantity(&spec["resources"][list]["storage"])?;
        (amount.milli_value() % 1000 != 0).then(|| {
            format!(
                "{path}.resources.{list}[storage]: fractional byte value \"{amount}\" is \
                 invalid, must be an integer"
            )
        })
    })
}

/// The deprecated annotation for the field `storageClassName`.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Sets both data source fields to the same value (`EnforceDataSourceBackwardsCompatibility` and
/// `NormalizeDataSources`).
fn fill_sources(object: &mut Value, old: Option<&Value>) {
    const LOCAL: &str = "dataSource";
    const ANY: &str = "dataSourceRef";
    let spec = meta::field(meta::fields(object), "spec");
    let field = |spec: &Map<String, Value>, name: &str| spec.get(name).cloned();
    let other_namespace = |it: &Value| !text(it, "namespace").is_empty();
    let previous = |name: &str| old.is_some_and(|old| !old["spec"][name].is_null());
    // The feature gate for data sources of other namespaces is off.
    if field(spec, ANY).is_some_and(|it| other_namespace(&it)) && !previous(ANY) {
        spec.shift_remove(ANY);
    }
    let in_use = previous(LOCAL) || previous(ANY);
    if !in_use && field(spec, ANY).is_none_or(|it| it.is_null()) {
        let is_known = field(spec, LOCAL).is_some_and(|it| {
            let of = (text(&it, "apiGroup"), text(&it, "kind"));
            of == ("", "PersistentVolumeClaim")
                || of == ("snapshot.storage.k8s.io", "VolumeSnapshot")
        });
        if !is_known {
            spec.shift_remove(LOCAL);
        }
    }
    match (field(spec, LOCAL), field(spec, ANY)) {
        (Some(local), None) => {
            spec.insert(ANY.to_owned(), local);
        }
        (None, Some(mut any)) if !other_namespace(&any) => {
            any.as_object_mut().map(|it| it.shift_remove("namespace"));
            spec.insert(LOCAL.to_owned(), any);
        }
        _ => {}
    }
}

/// The validation errors of the status of a claim (`ValidatePersistentVolumeClaimStatusUpdate`).
fn status_errors(object: &Value, errors: &mut Errors) {
    const STATES: &[&str] = &[
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let status = Field::of(object, "status");
    for (_, amount) in status.child("capacity").entries() {
        basic_amount(&amount, errors);
    }
    let states = status.child("allocatedResourceStatuses");
    for (resource, state) in states.entries() {
        resource_key(resource, &states, errors);
        if !STATES.contains(&state.text()) {
            let mut known = STATES.to_vec();
            known.sort_unstable();
            let path = states.path.clone();
            errors.push(FieldError::not_supported(path, resource.into(), known));
        }
    }
    let amounts = status.child("allocatedResources");
    for (resource, amount) in amounts.entries() {
        let before = errors.len();
        resource_key(resource, &amounts, errors);
        if errors.len() == before {
            basic_amount(&amount, errors);
        }
    }
}

fn basic_amount(field: &Field<'_>, errors: &mut Errors) {
    if let Some(amount) = resource_name::quantity(field.value)
        && amount.value() < 0
    {
        let why = "must be a valid resource quantity";
        let path = field.path.clone();
        errors.push(FieldError::invalid(path, amount.value().into(), why));
    }
}

/// Validates the name of a resource of a claim: `storage`, or a name outside Kubernetes' domain.
fn resource_key(resource: &str, list: &Field<'_>, errors: &mut Errors) {
    let path = || list.path.clone();
    let wrong = name::label_key(resource);
    if !wrong.is_empty() {
        let each = |it| FieldError::invalid(path(), resource.into(), it);
        errors.extend(wrong.into_iter().map(each));
    } else if resource_name::is_native(resource) && resource != "storage" {
        errors.push(FieldError::not_supported(
            path(),
            resource.into(),
            ["storage"],
        ));
    }
}
