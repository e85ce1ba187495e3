//! Makes objects of built-in kinds those that Kubernetes would decode and encode: without fields that
//! are not in the schema, and with quantities in its form.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::kind::resource_name::quantity;
use crate::openapi::shape::Shape;
use crate::openapi::strictness::bytes;
use crate::path::Path;
use crate::resource::Resource;
use crate::strict::Duplicate;

/// Removes unknown fields and nulls, and writes quantities as Kubernetes does. Returns the strict
/// decoding errors for the unknown fields and for `duplicates`, in document order. Duplicate keys
/// inside of an unknown field do not count.
pub(crate) fn prune(
    resource: &Resource,
    object: &mut Value,
    duplicates: &[Duplicate],
) -> Vec<String> {
    let mut after: HashMap<&str, Vec<&Duplicate>> = HashMap::new();
    for duplicate in duplicates {
        after.entry(&duplicate.after).or_default().push(duplicate);
    }
    let mut errors = Errors {
        after,
        found: Vec::new(),
    };
    at(Shape::of(resource), object, Path::Root, &mut errors);
    errors.found
}

/// The strict decoding errors so far.
#[derive(Default)]
struct Errors<'a> {
    /// The duplicate keys, by the path of the key after which they are reported.
    after: HashMap<&'a str, Vec<&'a Duplicate>>,
    found: Vec<String>,
}

impl Errors<'_> {
    /// Adds the duplicate keys that follow the field at `path` of an object.
    fn add_duplicates(&mut self, path: Path<'_>, shape: Shape<'_>) {
        if self.after.is_empty() {
            return;
        }
        let following = self.after.get(path.to_string().as_str());
        let known = following.into_iter().flatten();
        let known = known.filter(|it| shape.knows(&it.key));
        self.found.extend(known.map(ToString::to_string));
    }
}

fn at(shape: Shape<'_>, value: &mut Value, path: Path<'_>, errors: &mut Errors<'_>) {
    if !shape.is_known() {
        return;
    }
    if value.is_object()
        && let Some(schema) = shape.schema_alternative()
    {
        // Go decodes it by a method of its type, which does not report unknown fields.
        at(schema, value, path, &mut Errors::default());
        return;
    }
    match value {
        // Go keeps the text of an opaque struct, with its nulls.
        Value::Object(_) if shape.opaque_struct().is_some() && !shape.has_no_fields() => {
        }
        Value::Array(items) if shape.format() == Some("byte") => {
            let bytes = bytes(items).unwrap_or_default();
            *value = STANDARD.encode(bytes).into();
        }
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let path = Path::Field(&path, name);
                if !shape.knows(name) {
                    errors.found.push(format!("unknown field \"{path}\""));
                    errors.add_duplicates(path, shape);
                    return false;
                }
                let field = shape.field(name);
                at(field, value, path, errors);
                errors.add_duplicates(path, shape);
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
                at(shape.items(), item, Path::Item(&path, index), errors);
                if item.is_null()
                    && let Some(zero) = zero(shape.items())
                {
                    *item = zero;
                }
            }
        }
        Value::Number(_) | Value::String(_) if shape.name() == Some("Quantity") => {
            if let Some(amount) = quantity(value) {
                *value = amount.to_string().into();
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
        Some("boolean") => Some(false.into()),
        Some("integer" | "number") => Some(0.into()),
        // Of a struct; a map stays null.
        Some("object") if !shape.is_map() => Some(Map::new().into()),
        _ => None,
    }
}
