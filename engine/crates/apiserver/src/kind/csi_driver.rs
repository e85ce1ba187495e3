//! CSIDrivers: what a storage driver supports.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, Write, column, rule};
use crate::meta;
use crate::resource::{Column, Resource};

/// `csidrivers` of `storage.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct CsiDriver;

/// The shortest lifetime of a requested token in seconds.
const MIN_LIFETIME: i64 = 600;
/// The longest lifetime of a requested token in seconds.
const MAX_LIFETIME: i64 = 1 << 32;
/// The shortest time between two updates of a node's allocatable volumes in seconds.
const MIN_UPDATE_PERIOD: i64 = 10;

impl BuiltinKind for CsiDriver {
    fn resource(&self) -> Resource {
        let column = |name: &str, kind: &str, field: &str| {
            column::described(name, kind, "storage.v1.CSIDriverSpec", field)
        };
        Resource::new("storage.k8s.io", "v1", "CSIDriver", "csidrivers")
            .cluster_scoped()
            .returned_when_deleted()
            .without_generation()
            .require_resource_version()
            .with_columns(vec![
                column("AttachRequired", "boolean", "attachRequired"),
                column("PodInfoOnMount", "boolean", "podInfoOnMount"),
                column("StorageCapacity", "boolean", "storageCapacity"),
                column("TokenRequests", "string", "tokenRequests"),
                column("RequiresRepublish", "boolean", "requiresRepublish"),
                column("Modes", "string", "volumeLifecycleModes"),
                Column::age(),
            ])
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        let defaults = [
            ("attachRequired", json!(true)),
            ("podInfoOnMount", json!(false)),
            ("storageCapacity", json!(false)),
            ("fsGroupPolicy", json!("ReadWriteOnceWithFSType")),
            ("requiresRepublish", json!(false)),
            ("seLinuxMount", json!(false)),
        ];
        for (field, value) in defaults {
            if spec.get(field).is_none_or(Value::is_null) {
                spec.insert(field.to_owned(), value);
            }
        }
        let modes = spec.get("volumeLifecycleModes");
        if modes.is_none_or(|it| column::count(it) == 0) {
            let modes = json!(["Persistent"]);
            spec.insert("volumeLifecycleModes".to_owned(), modes);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        drop_gated(object);
    }

    /// Counts the changes of the spec. A new object has no generation.
    fn prepare_update(&self, object: &mut Value, old: &Value) {
        drop_gated(object);
        if object["spec"] != old["spec"] {
            meta::set(object, "generation", meta::generation(old) + 1);
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let spec = Field::of(write.object, "spec");
        let mut errors = Errors::new();
        let policies = ["File", "None", "ReadWriteOnceWithFSType"];
        rule::one_of_if_set(&spec.child("fsGroupPolicy"), &policies, &mut errors);
        token_requests(&spec.child("tokenRequests"), &mut errors);
        let modes = spec.child("volumeLifecycleModes");
        for mode in modes.items() {
            let mode = mode.at(modes.path.clone());
            rule::one_of_if_set(&mode, &["Persistent", "Ephemeral"], &mut errors);
        }
        let period = spec.child("nodeAllocatableUpdatePeriodSeconds");
        if period.number().is_some_and(|it| it < MIN_UPDATE_PERIOD) {
            let why = "must be greater than or equal to 10 seconds";
            errors.push(period.invalid(why));
        }
        let in_secrets = spec.child("serviceAccountTokenInSecrets");
        if in_secrets.is_set() && spec.child("tokenRequests").len() == 0 {
            let why = "serviceAccountTokenInSecrets is set but no tokenRequests are \
                       specified";
            errors.push(in_secrets.invalid(why));
        }
        if let Some(old) = write.old {
            let old = Field::of(old, "spec");
            // Kubernetes misspells the path of this field.
            let attach = spec.child("attachRequired").at("spec.attachedRequired");
            rule::immutable(&attach, &old.child("attachRequired"), &mut errors);
            rule::immutable(&modes, &old.child("volumeLifecycleModes"), &mut errors);
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        let spec = &write.object["spec"];
        let requests = &spec["tokenRequests"];
        let is_old = write
            .old
            .is_some_and(|it| it["spec"]["tokenRequests"] == *requests);
        let is_open = spec["serviceAccountTokenInSecrets"].is_null();
        if column::count(requests) == 0 || is_old || !is_open {
            return Vec::new();
        }
        let warning = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI \
                       driver, set to true to prevent possible logging of tokens in volume \
                       attributes";
        vec![warning.to_owned()]
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        let is_true = |field: &str| Value::from(spec[field] == true);
        let requests = column::list(&spec["tokenRequests"]).iter();
        let audiences: Vec<&str> = requests
            .map(|it| it["audience"].as_str().unwrap_or_default())
            .collect();
        let requests = if spec["tokenRequests"].is_null() {
            "<unset>".to_owned()
        } else {
            audiences.join(",")
        };
        let modes = column::list(&spec["volumeLifecycleModes"]).iter();
        let modes: Vec<&str> = modes.filter_map(Value::as_str).collect();
        let modes = if modes.is_empty() {
            "<none>".to_owned()
        } else {
            modes.join(",")
        };
        vec![
            column::name(object),
            is_true("attachRequired"),
            is_true("podInfoOnMount"),
            is_true("storageCapacity"),
            requests.into(),
            is_true("requiresRepublish"),
            modes.into(),
            column::age(object, now),
        ]
    }
}

/// Drops the field whose feature gate `VolumeLimitScaling` is off.
fn drop_gated(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove("preventPodSchedulingIfMissing");
    }
}

/// Validates that every audience is requested once, for a reasonable time.
fn token_requests(field: &Field<'_>, errors: &mut Errors) {
    let mut audiences = BTreeSet::new();
    for request in field.items() {
        let audience = request.child("audience");
        if !audiences.insert(audience.text()) {
            let value = audience.text().into();
            errors.push(FieldError::duplicate(audience.path, value));
            continue;
        }
        let lifetime = request.child("expirationSeconds");
        let seconds = lifetime.number();
        if seconds.is_some_and(|it| it < MIN_LIFETIME) {
            let why = "may not specify a duration less than 10 minutes";
            errors.push(lifetime.invalid(why));
        }
        if seconds.is_some_and(|it| it > MAX_LIFETIME) {
            let why = "may not specify a duration larger than 2^32 seconds";
            errors.push(lifetime.invalid(why));
        }
    }
}
