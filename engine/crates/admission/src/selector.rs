//! Label selectors, in the form of API objects.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field::Path;
use crate::{FieldError, name};

/// A compiled `metav1.LabelSelector`.
///
/// ```
/// use kubemu_admission::selector::Selector;
/// use serde_json::json;
///
/// let selector = Selector::compile(
///     Some(&json!({"matchExpressions": [
///         {"key": "env", "operator": "NotIn", "values": ["prod"]},
///     ]})),
///     "spec.selector",
/// )
/// .expect("it is well formed");
/// assert!(selector.matches(None));
/// assert!(!selector.matches(Some(&json!({"env": "prod"}))));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Compiles the JSON of a label selector; null and absent select everything.
    ///
    /// # Errors
    /// Malformed keys, values and operators, with paths that start at `path`.
    pub fn compile(
        selector: Option<&Value>,
        path: &str,
    ) -> Result<Self, Vec<FieldError>> {
        let root = Path::Root;
        let path = root.field(path);
        let mut compiled = Self::default();
        let mut errors = Vec::new();
        let Some(selector) = selector else {
            return Ok(compiled);
        };
        let at = path.field("matchLabels");
        let labels = selector.get("matchLabels").and_then(Value::as_object);
        for (key, value) in labels.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            refuse(&mut errors, at, key, name::label_key(key));
            refuse(&mut errors, at, value, name::label_value(value));
            compiled.requirements.push(Requirement {
                key: key.clone(),
                operator: Operator::In([value.to_owned()].into()),
            });
        }
        let at = path.field("matchExpressions");
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        for (index, expression) in expressions.into_iter().flatten().enumerate() {
            let requirement =
                Requirement::compile(expression, at.index(index), &mut errors);
            compiled.requirements.extend(requirement);
        }
        if errors.is_empty() {
            Ok(compiled)
        } else {
            Err(errors)
        }
    }

    /// Whether `labels`, a JSON object of strings, are selected. Absent labels are treated as
    /// empty.
    pub fn matches(&self, labels: Option<&Value>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.matches(labels))
    }

    /// Whether every object is selected.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl Requirement {
    fn compile(
        expression: &Value,
        path: Path<'_>,
        errors: &mut Vec<FieldError>,
    ) -> Option<Self> {
        let text =
            |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or("");
        let values = expression.get("values").and_then(Value::as_array);
        let values: Vec<&str> = values
            .into_iter()
            .flatten()
            .map(|value| value.as_str().unwrap_or_default())
            .collect();
        let set = || values.iter().map(|value| (*value).to_owned()).collect();
        let at = path.field("values");
        let operator = match text("operator") {
            "In" => Some(Operator::In(set())),
            "NotIn" => Some(Operator::NotIn(set())),
            "Exists" => Some(Operator::Exists),
            "DoesNotExist" => Some(Operator::DoesNotExist),
            other => {
                let path = path.field("operator");
                let detail = "not a valid selector operator";
                let error = FieldError::invalid(path, other.into(), detail);
                errors.push(error.of_named_type());
                None
            }
        };
        let wants_values = matches!(operator, Some(Operator::In(_) | Operator::NotIn(_)));
        if wants_values && values.is_empty() {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(at, detail));
        } else if operator.is_some() && !wants_values && !values.is_empty() {
            let detail =
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(at, detail));
        }
        let key = text("key");
        refuse(errors, path.field("key"), key, name::label_key(key));
        for (index, value) in values.iter().enumerate() {
            refuse(errors, at.index(index), value, name::label_value(value));
        }
        Some(Self {
            key: key.to_owned(),
            operator: operator?,
        })
    }

    fn matches(&self, labels: Option<&Value>) -> bool {
        let value = labels
            .and_then(|labels| labels.get(&self.key))
            .and_then(Value::as_str);
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

fn refuse(
    errors: &mut Vec<FieldError>,
    path: Path<'_>,
    value: &str,
    details: Vec<String>,
) {
    let wrong = details
        .into_iter()
        .map(|detail| FieldError::invalid(path, value.into(), detail));
    errors.extend(wrong);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selects(selector: &Value, labels: &Value) -> bool {
        let selector = Selector::compile(Some(selector), "s").unwrap();
        selector.matches(Some(labels))
    }

    #[test]
    fn every_requirement_must_match() {
        let selector = json!({"matchLabels": {"a": "1"}, "matchExpressions": [
            {"key": "b", "operator": "In", "values": ["x", "y"]},
            {"key": "c", "operator": "DoesNotExist"},
            {"key": "a", "operator": "Exists"},
        ]});
        assert!(selects(&selector, &json!({"a": "1", "b": "y"})));
        assert!(!selects(&selector, &json!({"a": "2", "b": "y"})));
        assert!(!selects(&selector, &json!({"a": "1", "b": "z"})));
        assert!(!selects(&selector, &json!({"a": "1", "b": "y", "c": ""})));
    }

    #[test]
    fn an_empty_selector_selects_everything() {
        assert!(selects(&json!({}), &json!({})));
        assert!(Selector::compile(None, "s").unwrap().is_empty());
    }

    #[test]
    fn a_malformed_selector_is_rejected_with_the_path_of_each_error() {
        let selector = json!({"matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["x"]},
            {"key": "a", "operator": "Near", "values": ["x"]},
        ]});
        let errors = Selector::compile(Some(&selector), "s").unwrap_err();
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(texts.join("\n"), @r#"
        s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'
        s.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'
        s.matchExpressions[2].operator: Invalid value: "Near": not a valid selector operator
        "#);
    }
}
