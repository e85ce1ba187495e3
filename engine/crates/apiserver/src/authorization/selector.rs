//! Validation of the selectors of an access review (pkg/apis/authorization/validation).

use kubemu_admission::{FieldError, name};
use serde_json::Value;

use crate::selector::{Fields, Labels};

const AT: &str = "spec.resourceAttributes";

/// The validation errors of the selectors of a review.
pub(super) fn errors(spec: &Value) -> Vec<FieldError> {
    let attributes = &spec["resourceAttributes"];
    let mut errors = Vec::new();
    for kind in ["fieldSelector", "labelSelector"] {
        let selector = &attributes[kind];
        if selector.is_object() {
            selector_errors(selector, kind, &mut errors);
        }
    }
    errors
}

fn selector_errors(selector: &Value, kind: &str, errors: &mut Vec<FieldError>) {
    let at = format!("{AT}.{kind}");
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let requirements = selector["requirements"].as_array();
    let requirements = requirements.map(Vec::as_slice).unwrap_or_default();
    match (raw.is_empty(), requirements.is_empty()) {
        (false, false) => {
            let why = "may not specified at the same time as requirements";
            let path = format!("{at}.rawSelector");
            errors.push(FieldError::invalid(path, raw.into(), why));
        }
        (true, true) => {
            let why = format!(
                "when {at} is specified, requirements or rawSelector is required"
            );
            errors.push(FieldError::required(format!("{at}.requirements"), why));
        }
        _ => {}
    }
    for (index, requirement) in requirements.iter().enumerate() {
        let at = format!("{at}.requirements[{index}]");
        requirement_errors(requirement, &at, kind == "labelSelector", errors);
    }
}

/// Unknown operators are accepted: clients may be newer than the server.
fn requirement_errors(
    requirement: &Value,
    at: &str,
    is_of_labels: bool,
    errors: &mut Vec<FieldError>,
) {
    let key = requirement["key"].as_str().unwrap_or_default();
    let values = requirement["values"].as_array();
    let values = values.map(Vec::as_slice).unwrap_or_default();
    let path = format!("{at}.values");
    if !is_of_labels && key.is_empty() {
        errors.push(FieldError::required(
            format!("{at}.key"),
            "must be specified",
        ));
    }
    match requirement["operator"].as_str() {
        Some("In" | "NotIn") if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(path.as_str(), why));
        }
        Some("Exists" | "DoesNotExist") if !values.is_empty() => {
            let why =
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(path.as_str(), why));
        }
        _ => {}
    }
    if !is_of_labels {
        return;
    }
    for wrong in name::label_key(key) {
        errors.push(FieldError::invalid(format!("{at}.key"), key.into(), wrong));
    }
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        for wrong in name::label_value(value) {
            let path = format!("{path}[{index}]");
            errors.push(FieldError::invalid(path, value.into(), wrong));
        }
    }
}

/// What the status of a review says about selectors that the server does not understand; it answers
/// without these parts. Empty if it understands all.
pub(super) fn evaluation_error(spec: &Value) -> String {
    let mut errors = Vec::new();
    for kind in ["fieldSelector", "labelSelector"] {
        let selector = &spec["resourceAttributes"][kind];
        let is_of_labels = kind == "labelSelector";
        let requirements = selector["requirements"].as_array();
        let requirements = requirements.map(Vec::as_slice).unwrap_or_default();
        let is_known = |it: &&Value| is_understood(it, is_of_labels);
        let known = requirements.iter().filter(is_known).count();
        let raw = selector["rawSelector"].as_str().unwrap_or_default();
        let is_read = known == requirements.len()
            && if is_of_labels {
                Labels::parse(raw).is_ok()
            } else {
                Fields::is_well_formed(raw)
            };
        if !is_read {
            let partially = if known > 0 { "partially " } else { "" };
            errors.push(format!("{AT}.{kind} {partially}ignored due to parse error"));
        }
    }
    errors.join("; ")
}

/// Whether the server understands a valid requirement.
fn is_understood(requirement: &Value, is_of_labels: bool) -> bool {
    match requirement["operator"].as_str() {
        Some("In" | "NotIn") => {
            is_of_labels || requirement["values"].as_array().map(Vec::len) == Some(1)
        }
        Some("Exists" | "DoesNotExist") => is_of_labels,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(attributes: Value) -> Vec<String> {
        let errors = errors(&json!({"resourceAttributes": attributes}));
        let paths = errors.into_iter().map(|it| it.path);
        paths.map(|it| it.replace(AT, "")).collect()
    }

    #[test]
    fn a_selector_has_requirements_or_is_raw() {
        let both = json!({"rawSelector": "a=b", "requirements": [{"key": "a"}]});
        assert_eq!(
            paths(json!({"fieldSelector": both})),
            [".fieldSelector.rawSelector"]
        );
        assert_eq!(
            paths(json!({"labelSelector": {}})),
            [".labelSelector.requirements"]
        );
        assert_eq!(
            paths(json!({"labelSelector": {"rawSelector": "a"}})),
            [""; 0]
        );
    }

    #[test]
    fn what_is_not_understood_in_a_selector_is_named_in_the_status() {
        let said = |kind: &str, selector: Value| {
            let said = evaluation_error(&json!({"resourceAttributes": {kind: selector}}));
            said.replace(&format!("{AT}.{kind} "), "")
        };
        let of = |operators: &[&str]| -> Value {
            let requirements = operators
                .iter()
                .map(|it| json!({"key": "a", "operator": it, "values": ["b"]}));
            json!({"requirements": requirements.collect::<Value>()})
        };
        let (whole, part) = (
            "ignored due to parse error",
            "partially ignored due to parse error",
        );
        for kind in ["fieldSelector", "labelSelector"] {
            assert_eq!(said(kind, of(&["In", "NotIn"])), "");
            assert_eq!(said(kind, of(&["odd"])), whole);
            assert_eq!(said(kind, of(&["In", "odd"])), part);
            assert_eq!(said(kind, json!({"rawSelector": "a=b,c!=d"})), "");
            assert_eq!(said(kind, Value::Null), "");
        }
        assert_eq!(said("labelSelector", json!({"rawSelector": "a in"})), whole);
        assert_eq!(said("fieldSelector", json!({"rawSelector": "a"})), whole);
        assert_eq!(said("labelSelector", of(&["Exists"])), "");
        assert_eq!(said("fieldSelector", of(&["Exists"])), whole);
    }

    #[test]
    fn a_requirement_has_a_key_and_the_values_of_its_operator() {
        let of = |requirement: Value| json!({"requirements": [requirement]});
        let at = |kind: &str, field: &str| format!(".{kind}.requirements[0].{field}");
        let field = |it| paths(json!({"fieldSelector": of(it)}));
        let label = |it| paths(json!({"labelSelector": of(it)}));
        let none = json!({"key": "a", "operator": "In"});
        assert_eq!(field(none.clone()), [at("fieldSelector", "values")]);
        assert_eq!(label(none), [at("labelSelector", "values")]);
        let some = json!({"key": "", "operator": "Exists", "values": ["a b"]});
        let expected = ["key", "values"].map(|it| at("fieldSelector", it));
        assert_eq!(field(some.clone()), expected);
        let expected = ["values", "key", "key", "values[0]"];
        assert_eq!(label(some), expected.map(|it| at("labelSelector", it)));
        assert_eq!(field(json!({"key": "a", "operator": "Odd"})), [""; 0]);
    }
}
