//! Prunes fields that are not in the schema from objects of built-in kinds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::openapi::bytes;
use crate::openapi::shape::Shape;
use crate::path::Path;
use crate::resource::Resource;

/// Removes unknown fields and nulls; returns the paths of the unknown fields in document
/// order.
pub(crate) fn prune(resource: &Resource, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    at(Shape::of(resource), object, Path::Root, &mut unknown);
    unknown
}

fn at(shape: Shape<'_>, value: &mut Value, path: Path<'_>, unknown: &mut Vec<String>) {
    if !shape.is_known() {
        return;
    }
    match value {
        Value::Array(items) if shape.format() == Some("byte") => {
            let bytes = bytes(items).unwrap_or_default();
            *value = STANDARD.encode(bytes).into();
        }
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let path = Path::Field(&path, name);
                if !shape.knows(name) {
                    unknown.push(path.to_string());
                    return false;
                }
                let field = shape.field(name);
                at(field, value, path, unknown);
                if value.is_null()
                    && shape.is_map()
                    && let Some(zero) = zero(field)
                {
                    *value = zero;
                }
                !value.is_null()
            });
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                at(shape.items(), item, Path::Item(&path, index), unknown);
                if item.is_null()
                    && let Some(zero) = zero(shape.items())
                {
                    *item = zero;
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The value of a null in a map or a list: Go keeps the zero value there, unlike in the field
/// of a struct.
fn zero(shape: Shape<'_>) -> Option<Value> {
    match shape.kind() {
        _ if shape.name() == Some("Quantity") => Some("0".into()),
        Some("string") => Some("".into()),
        _ => None,
    }
}
