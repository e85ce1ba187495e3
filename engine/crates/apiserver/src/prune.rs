//! Makes objects of built-in kinds those that Kubernetes would decode and encode: without fields that
//! are not in the schema, and with quantities in its form.

use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::kind::resource_name::quantity;
use crate::openapi::shape::Shape;
use crate::openapi::strictness::bytes;
use crate::path::Path;
use crate::resource::Resource;
use crate::strict::Duplicate;

/// The total size, in bytes, of the strict decoding errors that are kept: more than those that
/// Kubernetes reports. Their paths can be longer than the object by far, as each of some hundred
/// thousand unknown fields can be below one key of a MiB.
const LIMIT: usize = 8 * 1024 * 1024;

/// Removes unknown fields and nulls, and writes quantities as Kubernetes does. Returns the strict
/// decoding errors for the unknown fields and for `duplicates`, in document order, up to a total of
/// [`LIMIT`]. Duplicate keys inside of an unknown field do not count.
pub(crate) fn prune(
    resource: &Resource,
    object: &mut Value,
    duplicates: &[Duplicate],
) -> Vec<String> {
    let mut errors = Errors {
        found: Vec::new(),
        room: LIMIT,
    };
    let after = duplicates.iter().map(|it| (&*it.after, it)).collect();
    let root = Place {
        path: Path::Root,
        after,
    };
    at(Shape::of(resource), object, &root, &mut errors);
    errors.found
}

/// The strict decoding errors so far.
#[derive(Default)]
struct Errors {
    found: Vec<String>,
    /// How many more bytes are kept.
    room: usize,
}

impl Errors {
    fn add(&mut self, error: impl Display) {
        if self.room > 0 {
            let error = error.to_string();
            self.room = self.room.saturating_sub(error.len());
            self.found.push(error);
        }
    }
}

/// The place of a value.
struct Place<'a, 'd> {
    path: Path<'a>,
    /// The duplicate keys that are reported after this value or a value in it, with the rest of the
    /// path after which that is. The path itself may be too long to be written for each value.
    after: Vec<(&'d str, &'d Duplicate)>,
}

impl<'d> Place<'_, 'd> {
    fn field<'b>(&'b self, name: &'b str) -> Place<'b, 'd> {
        let is_root = matches!(self.path, Path::Root);
        let rest = |rest: &'d str| {
            let rest = if is_root {
                Some(rest)
            } else {
                rest.strip_prefix('.')
            };
            rest?.strip_prefix(name)
        };
        self.below(Path::Field(&self.path, name), rest)
    }

    fn item(&self, index: usize) -> Place<'_, 'd> {
        let rest = |rest: &'d str| rest.strip_prefix(&*format!("[{index}]"));
        self.below(Path::Item(&self.path, index), rest)
    }

    fn below<'b>(
        &'b self,
        path: Path<'b>,
        rest: impl Fn(&'d str) -> Option<&'d str>,
    ) -> Place<'b, 'd> {
        let after = self.after.iter();
        Place {
            path,
            after: after.filter_map(|it| Some((rest(it.0)?, it.1))).collect(),
        }
    }

    /// The duplicate keys of known fields that follow the value.
    fn add_duplicates(&self, shape: Shape<'_>, errors: &mut Errors) {
        for (rest, duplicate) in &self.after {
            if rest.is_empty() && shape.knows(&duplicate.key) {
                errors.add(duplicate);
            }
        }
    }
}

fn at(shape: Shape<'_>, value: &mut Value, place: &Place<'_, '_>, errors: &mut Errors) {
    if !shape.is_known() {
        return;
    }
    if value.is_object()
        && let Some(schema) = shape.schema_alternative()
    {
        // Go decodes it by a method of its type, which does not report unknown fields.
        at(schema, value, place, &mut Errors::default());
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
                let inner = place.field(name);
                if !shape.knows(name) {
                    errors.add(format_args!("unknown field \"{}\"", inner.path));
                    inner.add_duplicates(shape, errors);
                    return false;
                }
                let field = shape.field(name);
                at(field, value, &inner, errors);
                inner.add_duplicates(shape, errors);
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
                at(shape.items(), item, &place.item(index), errors);
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
