//! Go structs of Kubernetes in error messages: every field, in the order of the Go type, with its
//! zero value if it is not set.

use kubemu_admission::FieldError;
use serde_json::{Map, Value};

use super::field::Field;
use crate::openapi::go_text;
use crate::openapi::shape::Shape;

/// A struct of a definition of `io.k8s.api`, such as `core.v1.NodeAddress`.
pub(super) fn text(value: &Value, definition: &str) -> String {
    go_text::converted(shape(definition), value)
}

fn shape(definition: &str) -> Shape<'static> {
    Shape::defined(&format!("io.k8s.api.{definition}"))
}

/// The `invalid` error of a struct that is shown as this string.
pub(super) fn invalid(field: &Field<'_>, shown: &str, why: &str) -> FieldError {
    let detail = if why.is_empty() {
        shown.to_owned()
    } else {
        format!("{shown}: {why}")
    };
    field.at(field.path.clone()).invalid(detail).without_value()
}

/// The `duplicate` error of a struct that is shown as this string.
pub(super) fn duplicate(field: &Field<'_>, shown: &str) -> FieldError {
    field.duplicate().without_value().because(shown.to_owned())
}

/// The `invalid` error of the field of that name of an object of a definition.
pub(super) fn invalid_field(
    field: &Field<'_>,
    (object, definition, name): (&Value, &str, &str),
    why: &str,
) -> FieldError {
    if field.value.is_string() {
        return field.invalid(why);
    }
    let shown = go_text::converted_or_zero(shape(definition), name, object);
    invalid(field, &shown, why)
}

/// The `not_supported` error of a struct that is shown as this string.
pub(super) fn not_supported(
    field: &Field<'_>,
    shown: &str,
    known: &[&str],
) -> FieldError {
    let error = field.not_supported(known).without_value();
    let detail = format!("{shown}: {}", error.detail);
    error.because(detail)
}

/// A label selector as a Go struct.
pub(super) fn selector(value: &Value) -> String {
    let mut shown = Map::new();
    let part = |name: &str| value.get(name).filter(|it| !it.is_null()).cloned();
    if let Some(Value::Object(mut labels)) = part("matchLabels") {
        labels.sort_keys();
        if !labels.is_empty() {
            shown.insert("matchLabels".to_owned(), labels.into());
        }
    }
    if let Some(Value::Array(expressions)) = part("matchExpressions") {
        let all = expressions.iter().map(expression).collect::<Vec<_>>();
        if !all.is_empty() {
            shown.insert("matchExpressions".to_owned(), all.into());
        }
    }
    if value.is_null() {
        return "null".to_owned();
    }
    Value::Object(shown).to_string()
}

fn expression(value: &Value) -> Value {
    let names = ["key", "operator", "values"];
    let actual = names.iter().filter_map(|name| {
        let value = value.get(name)?.clone();
        let is_empty = value.as_array().is_some_and(Vec::is_empty);
        (!is_empty).then(|| ((*name).to_owned(), value))
    });
    Value::Object(actual.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_is_shown_with_its_labels_first() {
        let value = json!({"matchExpressions": [{"operator": "In", "key": "a"}],
            "matchLabels": {"b": "1", "a": "2"}});
        let expected = r#"{"matchLabels":{"a":"2","b":"1"},"matchExpressions":[{"key":"a","operator":"In"}]}"#;
        assert_eq!(selector(&value), expected);
        assert_eq!(selector(&json!({"matchLabels": {}})), "{}");
    }
}
