//! The behavior annotation of an autoscaler in `autoscaling/v1`, which has the field names of a Go
//! type.

use serde_json::{Value, json};

const DIRECTIONS: [(&str, &str); 2] =
    [("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown")];
const RULES: [(&str, &str); 4] = [
    ("StabilizationWindowSeconds", "stabilizationWindowSeconds"),
    ("SelectPolicy", "selectPolicy"),
    ("Policies", "policies"),
    ("Tolerance", "tolerance"),
];
const POLICY: [(&str, &str); 3] = [
    ("Type", "type"),
    ("Value", "value"),
    ("PeriodSeconds", "periodSeconds"),
];

/// An object with renamed fields. Absent fields are null if `is_complete`, else omitted.
fn renamed<'a>(
    value: &Value,
    names: impl Iterator<Item = (&'a str, &'a str)>,
    is_complete: bool,
    inner: impl Fn(&Value) -> Value,
) -> Value {
    let mut converted = json!({});
    for (from, to) in names {
        let found = value.get(from).unwrap_or(&Value::Null);
        if is_complete || !found.is_null() {
            converted[to] = inner(found);
        }
    }
    converted
}

/// The annotation for a behavior of the latest version.
pub(super) fn written(behavior: &Value) -> Value {
    let back = |names: &'static [(&str, &str)]| {
        names.iter().map(|(own, latest)| (*latest, *own))
    };
    let policies = |found: &Value| match found {
        Value::Array(all) => all
            .iter()
            .map(|it| renamed(it, back(&POLICY), true, Value::clone))
            .collect(),
        other => other.clone(),
    };
    renamed(behavior, back(&DIRECTIONS), true, |rules| match rules {
        Value::Null => Value::Null,
        rules => renamed(rules, back(&RULES), true, policies),
    })
}

/// The behavior of the latest version from its annotation.
pub(super) fn read(behavior: &Value) -> Value {
    let policies = |found: &Value| match found {
        Value::Array(all) => all
            .iter()
            .map(|it| renamed(it, POLICY.into_iter(), false, Value::clone))
            .collect(),
        other => other.clone(),
    };
    renamed(behavior, DIRECTIONS.into_iter(), false, |rules| {
        renamed(rules, RULES.into_iter(), false, policies)
    })
}
