//! Leases.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::{BuiltinKind, FinalizerRule, Write, column};
use crate::resource::{Column, Resource};

/// `leases` of `coordination.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct Lease;

const HOLDER: &str = "holderIdentity contains the identity of the holder of a current lease. If \
     Coordinated Leader Election is used, the holder identity must be equal to the elected \
     LeaseCandidate.metadata.name field.";

impl BuiltinKind for Lease {
    fn resource(&self) -> Resource {
        Resource::new("coordination.k8s.io", "v1", "Lease", "leases")
            .without_generation()
            .allow_create_on_update()
            .require_resource_version()
            .with_columns(vec![Column::new("Holder", "string", HOLDER), Column::age()])
    }

    /// Leases accept every qualified finalizer.
    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn prepare_create(&self, object: &mut Value) {
        drop_gated(object);
    }

    fn prepare_update(&self, object: &mut Value, _old: &Value) {
        drop_gated(object);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = &write.object["spec"];
        let duration = &spec["leaseDurationSeconds"];
        if duration.as_i64().is_some_and(|it| it <= 0) {
            let (path, why) = ("spec.leaseDurationSeconds", "must be greater than 0");
            errors.push(FieldError::invalid(path, duration.clone(), why));
        }
        let transitions = &spec["leaseTransitions"];
        if transitions.as_i64().is_some_and(|it| it < 0) {
            let why = "must be greater than or equal to 0";
            let path = "spec.leaseTransitions";
            errors.push(FieldError::invalid(path, transitions.clone(), why));
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            column::string(&object["spec"]["holderIdentity"]),
            column::age(object, now),
        ]
    }
}

/// Drops the fields of coordinated leader election, whose feature gate is off. A client that sends
/// them is recorded as their manager all the same.
fn drop_gated(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove("strategy");
        spec.shift_remove("preferredHolder");
    }
}
