//! What Kubernetes says of a strategically merged object whose fields have wrong types: it
//! is turned into a Go object without a detour over JSON, and so the words are others
//! (k8s.io/apimachinery/pkg/runtime/converter.go).

use serde_json::Value;

use crate::openapi::format;
use crate::openapi::shape::Shape;

/// The first field that has another type than its schema gives it.
pub(super) fn error(shape: Shape<'_>, value: &Value) -> Option<String> {
    if !shape.is_known() || value.is_null() {
        return None;
    }
    if let Value::String(text) = value
        && shape.kind() == Some("string")
    {
        return format::error(shape, text);
    }
    match (shape.kind(), value) {
        (Some("object"), Value::Object(fields)) => fields
            .iter()
            .find_map(|(key, it)| error(shape.field(key), it)),
        (Some("array"), Value::Array(items)) => {
            items.iter().find_map(|it| error(shape.items(), it))
        }
        (Some("object"), _) if shape.is_map() => {
            Some(format!("cannot restore map from {}", go_kind(value)))
        }
        (Some("object"), _) => {
            Some(format!("cannot restore struct from: {}", go_kind(value)))
        }
        (Some("array"), _) => {
            Some(format!("cannot restore slice from {}", go_kind(value)))
        }
        (Some("string"), Value::Number(_)) if shape.format() == Some("int-or-string") => {
            None
        }
        (None, _)
        | (Some("boolean"), Value::Bool(_))
        | (Some("integer" | "number"), Value::Number(_)) => None,
        (Some(wanted), _) => {
            let wanted = match (wanted, shape.format()) {
                ("boolean", _) => "bool",
                ("integer", Some(format)) => format,
                ("integer", None) => "int64",
                ("number", _) => "float64",
                (other, _) => other,
            };
            Some(format!("cannot convert {} to {wanted}", go_type(value)))
        }
    }
}

/// The kind of a decoded value in Go's reflection.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// The type of a decoded value in Go.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        _ => go_kind(value),
    }
}
