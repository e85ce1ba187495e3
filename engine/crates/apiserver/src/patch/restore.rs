//! Kubernetes' errors for a strategically merged object whose fields have wrong types. It is
//! converted directly to a Go object, not through JSON, so that the messages differ
//! (k8s.io/apimachinery/pkg/runtime/converter.go).

use serde_json::Value;

use crate::json_type;
use crate::openapi::format;
use crate::openapi::go_type;
use crate::openapi::shape::Shape;
use crate::openapi::strictness::value_error;

/// The error for the first field, in Go's order, whose type differs from its schema.
pub(crate) fn error(shape: Shape<'_>, value: &Value) -> Option<String> {
    error_of(shape, value, None)
}

/// The error for a value whose type has that name in Go, if OpenAPI does not have it.
fn error_of(shape: Shape<'_>, value: &Value, named: Option<&str>) -> Option<String> {
    if !shape.is_known() || value.is_null() {
        return None;
    }
    if shape.name() == Some("Quantity") || shape.format() == Some("int-or-string") {
        // These types decode themselves, from JSON.
        return value_error(shape, value);
    }
    if shape.format() == Some("date-time") && !value.is_string() {
        // So do times.
        let kind = json_type::go_kind(value);
        let into = "into Go value of type string";
        return Some(format!("json: cannot unmarshal {kind} {into}"));
    }
    match (shape.kind(), value) {
        (Some("string"), Value::Array(items)) if shape.format() == Some("byte") => {
            let item = |it| simple(("integer", Some("uint8")), Some("uint8"), it);
            // A null is a zero there.
            items.iter().filter(|it| !it.is_null()).find_map(item)
        }
        (Some("string"), Value::Bool(_) | Value::Number(_) | Value::Object(_))
            if shape.format() == Some("byte") =>
        {
            Some(format!("cannot restore slice from {}", go_kind(value)))
        }
        (Some("string"), Value::String(text)) => {
            let wrong = format::error(shape, text)?;
            let bytes = shape.format() == Some("byte");
            let prefix = if bytes {
                "error decoding from json: "
            } else {
                ""
            };
            Some(format!("{prefix}{wrong}"))
        }
        (Some("object"), Value::Object(fields)) => {
            let definition = shape.definition().unwrap_or_default();
            let found = fields.iter().filter_map(|(key, it)| {
                let named = go_type::named(definition, key, 0);
                let error = error_of(shape.field(key), it, named)?;
                let place = go_type::place(definition, key);
                Some((place.unwrap_or(usize::MAX), error))
            });
            found.min_by_key(|it| it.0).map(|it| it.1)
        }
        (Some("array"), Value::Array(items)) => {
            let named = named.and_then(|it| it.strip_prefix("[]"));
            items
                .iter()
                .find_map(|it| error_of(shape.items(), it, named))
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
        (Some(expected), _) => simple((expected, named), shape.format(), value),
        (None, _) => None,
    }
}

/// Truncates numbers to the bits of their fields, as Go's conversion does.
pub(crate) fn truncate_numbers(shape: Shape<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, it) in fields {
                truncate_numbers(shape.field(key), it);
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|it| truncate_numbers(shape.items(), it)),
        Value::Number(number) if shape.format() == Some("int32") => {
            const ALL: i64 = 1 << 32;
            if let Some(whole) = number.as_i64() {
                let low = whole.rem_euclid(ALL);
                let truncate_numbers = if low < ALL / 2 { low } else { low - ALL };
                *value = truncate_numbers.into();
            }
        }
        _ => {}
    }
}

/// The error for a value in place of a scalar of that type and name. Go converts numbers, and would
/// convert an integer to a character.
fn simple(
    (expected, named): (&str, Option<&str>),
    format: Option<&str>,
    value: &Value,
) -> Option<String> {
    let number = value.as_f64();
    let expected = match expected {
        "boolean" => "bool",
        "integer" => format.unwrap_or("int64"),
        "number" => "float64",
        other => other,
    };
    let fits = match expected {
        "bool" => value.is_boolean(),
        "float64" => number.is_some(),
        "string" => value.is_string(),
        _ => number.is_some_and(|it| it.fract() == 0.0),
    };
    let whole = value.as_i64().is_some();
    if fits {
        return None;
    }
    let converts = if expected == "string" {
        whole
    } else {
        number.is_some() && expected != "bool"
    };
    Some(if converts {
        let expected = named.unwrap_or(expected);
        format!("cannot convert {} to {expected}", go_kind(value))
    } else {
        format!("unrecognized type: {expected}")
    })
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
