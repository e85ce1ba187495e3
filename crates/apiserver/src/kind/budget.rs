//! Disruption budgets: what is checked.

use fivespot_admission::FieldError;
use serde_json::Value;

/// What is wrong with a budget (pkg/apis/policy/validation).
pub(super) fn errors(object: &Value) -> Vec<FieldError> {
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
