//! Checks whether a configuration fits its schema well enough to be applied.

use std::collections::BTreeSet;

use serde_json::Value;

use super::walk::element;
use crate::openapi::schema::ListType;
use crate::openapi::shape::Shape;

/// The errors of `config`, each with its path, with the messages of Kubernetes' structured
/// merge diff.
pub(super) fn check(config: &Value, shape: Shape<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    collect(config, shape, "", &mut wrong);
    wrong
}

fn collect(value: &Value, shape: Shape<'_>, path: &str, wrong: &mut Vec<String>) {
    if let Some(text) = mismatch(value, shape) {
        wrong.push(format!("{path}: {text}"));
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let inner = format!("{path}.{key}");
                // Structured merge diff treats a struct without fields as a map of arbitrary
                // values.
                if shape.knows(key) || shape.has_no_fields() {
                    collect(value, shape.field(key), &inner, wrong);
                } else {
                    // Kubernetes checks no further fields of this object.
                    wrong.push(format!("{inner}: field not declared in schema"));
                    return;
                }
            }
        }
        Value::Array(entries) => collect_entries(entries, shape, path, wrong),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn collect_entries(
    entries: &[Value],
    shape: Shape<'_>,
    path: &str,
    wrong: &mut Vec<String>,
) {
    let list = shape.list_type();
    let mut seen = BTreeSet::new();
    for (at, entry) in entries.iter().enumerate() {
        let mut inner = format!("{path}[{at}]");
        if *list != ListType::Atomic {
            match element(entry, list, shape.items()) {
                Err(text) => {
                    wrong.push(format!("{path}: element {at}: {text}"));
                    return;
                }
                Ok(place) => {
                    inner = format!("{path}{place}");
                    if seen.contains(&place) {
                        wrong.push(format!("{path}: duplicate entries for key {place}"));
                    }
                    seen.insert(place);
                }
            }
        }
        collect(entry, shape.items(), &inner, wrong);
    }
}

fn mismatch(value: &Value, shape: Shape<'_>) -> Option<String> {
    if value.is_null() {
        return None;
    }
    if shape.name() == Some("Quantity") && (value.is_object() || value.is_array()) {
        return Some(format!("expected any scalar, got {}", go(value)));
    }
    match shape.kind()? {
        "object" if !value.is_object() => {
            Some(format!("expected map, got {}", go(value)))
        }
        "array" if !value.is_array() => Some(format!("expected list, got {}", go(value))),
        // A text with another format than this one is any scalar for structured merge diff.
        "string" if shape.format().is_some_and(|it| it != "byte") => {
            let is_scalar = !value.is_object() && !value.is_array();
            (!is_scalar).then(|| format!("expected any scalar, got {}", go(value)))
        }
        "string" if !value.is_string() => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_inner(value)
        )),
        "integer" | "number" if !value.is_number() => Some(format!(
            "expected numeric (int or float), got {}",
            go_type(value)
        )),
        "boolean" if !value.is_boolean() => {
            Some(format!("expected boolean, got {}", go(value)))
        }
        _ => None,
    }
}

/// A value as Go's `%v` prints the wrapper that structured merge diff puts around it.
fn go(value: &Value) -> String {
    format!("&{{{}}}", go_plain(value))
}

fn go_plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_plain(value)))
                .collect();
            fields.sort_unstable();
            format!("map[{}]", fields.join(" "))
        }
        Value::Null => "<nil>".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A value as Go's `%#v` prints it.
fn go_inner(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_inner).collect();
            format!("{}{{{}}}", go_type(value), items.join(", "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("{key:?}:{}", go_inner(value)))
                .collect();
            fields.sort_unstable();
            format!("{}{{{}}}", go_type(value), fields.join(", "))
        }
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
