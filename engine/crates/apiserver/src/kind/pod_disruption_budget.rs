//! PodDisruptionBudgets. The disruption controller updates their status.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, FinalizerRule, NameRule, Write, column, rule, workload};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `poddisruptionbudgets` of `policy/v1`.
#[derive(Debug)]
pub(super) struct PodDisruptionBudget;

impl BuiltinKind for PodDisruptionBudget {
    fn resource(&self) -> Resource {
        Resource::new(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
        )
        .with_short_names(&["pdb"])
        .require_resource_version()
        .with_subresources(&[Subresource::Status])
        .with_columns(vec![
            Column::new(
                "Min Available",
                "string",
                "The minimum number of pods that must be available.",
            ),
            Column::new(
                "Max Unavailable",
                "string",
                "The maximum number of pods that may be unavailable.",
            ),
            Column::new(
                "Allowed Disruptions",
                "integer",
                "Calculated number of pods that may be disrupted at this time.",
            ),
            Column::age(),
        ])
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn validates_metadata(&self) -> bool {
        false
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn prepare_create(&self, object: &mut Value) {
        let status = json!({
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0,
            "expectedPods": 0,
        });
        meta::fields(object).insert("status".to_owned(), status);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        if !write.is_spec_unchanged() {
            return errors(write.object);
        }
        let mut errors = Errors::new();
        let numbers = [
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
        ];
        let status = Field::of(write.object, "status");
        rule::conditions(&status.child("conditions"), &mut errors);
        workload::counts(&status, &numbers, &mut errors);
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        let allowed = object["status"]["disruptionsAllowed"].as_i64();
        vec![
            column::name(object),
            bound(&spec["minAvailable"]),
            bound(&spec["maxUnavailable"]),
            allowed.unwrap_or(0).into(),
            column::age(object, now),
        ]
    }
}

/// An int-or-string bound of a budget.
fn bound(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        Value::Number(number) => number.to_string().into(),
        _ => "N/A".into(),
    }
}

/// The validation errors of a budget (pkg/apis/policy/validation).
fn errors(object: &Value) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = Errors::new();
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        // In the order of the fields of the Go type.
        let or_null = |field: &str| spec.get(field).unwrap_or(&Value::Null).clone();
        let (selector, policy) =
            (or_null("selector"), or_null("unhealthyPodEvictionPolicy"));
        let why = format!(
            "{{\"MinAvailable\":{least},\"Selector\":{selector},\"MaxUnavailable\":{most},\
             \"UnhealthyPodEvictionPolicy\":{policy}}}: minAvailable and maxUnavailable cannot \
             be both set"
        );
        errors.push(FieldError::invalid("spec", Value::Null, why).without_value());
    }
    let spec = Field::of(object, "spec");
    for field in ["minAvailable", "maxUnavailable"] {
        let field = spec.child(field);
        if field.is_set() {
            rule::int_or_percent(&field, &mut errors);
            rule::at_most_100_percent(&field, &mut errors);
        }
    }
    rule::selector(&spec.child("selector"), &mut errors);
    let policy = spec.child("unhealthyPodEvictionPolicy");
    rule::one_of_if_set(&policy, &["AlwaysAllow", "IfHealthyBudget"], &mut errors);
    errors
}
