//! PodDisruptionBudgets. The disruption controller counts them.

use fivespot_admission::FieldError;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{BuiltinKind, Write, column};
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
        .replaced_at_a_version()
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

    fn prepare_create(&self, object: &mut Value) {
        let status = json!({
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0,
            "expectedPods": 0,
        });
        meta::fields(object).insert("status".to_owned(), status);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        if write.keeps_spec() {
            return Vec::new();
        }
        errors(write.object)
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

/// What is wrong with a budget (pkg/apis/policy/validation).
fn errors(object: &Value) -> Vec<FieldError> {
    let spec = &object["spec"];
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        // In the order of the fields of Kubernetes' type.
        let or_null = |field: &str| spec.get(field).unwrap_or(&Value::Null).clone();
        let (selector, policy) =
            (or_null("selector"), or_null("unhealthyPodEvictionPolicy"));
        let why = format!(
            "{{\"MinAvailable\":{least},\"Selector\":{selector},\"MaxUnavailable\":{most},\
             \"UnhealthyPodEvictionPolicy\":{policy}}}: minAvailable and maxUnavailable cannot \
             be both set"
        );
        return vec![FieldError::invalid("spec", Value::Null, why).without_value()];
    }
    let fields = [("minAvailable", least), ("maxUnavailable", most)];
    let wrong = fields.into_iter().filter_map(|(field, value)| {
        let why = amount_error(value)?;
        let path = format!("spec.{field}");
        Some(FieldError::invalid(path, value.clone(), why))
    });
    let mut errors: Vec<_> = wrong.collect();
    let expressions = spec["selector"]["matchExpressions"].as_array();
    for (index, it) in expressions.into_iter().flatten().enumerate() {
        let operator = it["operator"].as_str().unwrap_or_default();
        if !["In", "NotIn", "Exists", "DoesNotExist"].contains(&operator) {
            let path = format!("spec.selector.matchExpressions[{index}].operator");
            let why = "not a valid selector operator";
            errors.push(FieldError::invalid(path, operator.into(), why));
        }
    }
    errors
}

/// What is wrong with a number of pods, or a share of them.
fn amount_error(value: &Value) -> Option<&'static str> {
    if let Some(number) = value.as_i64() {
        return (number < 0).then_some("must be greater than or equal to 0");
    }
    let share = value.as_str()?.strip_suffix('%').unwrap_or("none");
    match share.parse::<u32>() {
        Ok(share) if share > 100 => Some("must not be greater than 100%"),
        Ok(_) => None,
        Err(_) => Some(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. \
             '1%',  or '93%', regex used for validation is '[0-9]+%')",
        ),
    }
}
