//! Kubernetes' error for a patch whose result cannot be decoded as an object; it quotes the
//! part that it cannot decode.

use kubemu_admission::FieldError;
use serde_json::{Map, Value};

use super::{Kind, json};
use crate::openapi::go_text;
use crate::openapi::shape::Shape;
use crate::resource::Resource;
use crate::status::{Cause, Details, Reason, Status};

/// 422 for the result of `patch`, which cannot be decoded for the reason `why`.
pub(super) fn status(
    (kind, resource): (Kind, &Resource),
    patch: &Value,
    (old, patched): (&Value, &Value),
    why: &str,
) -> Status {
    let written = text((kind, resource), patch, (old, patched));
    let quoted = written.unwrap_or_else(|| go_value(patch));
    let error = FieldError::invalid("patch", quoted.into(), why);
    let message = format!(" \"\" is invalid: {error}");
    Status::new(422, Reason::Invalid, message).with_details(Details {
        causes: vec![Cause::from(error.cause())],
        ..Details::default()
    })
}

/// The text of the result of a patch; `None` for a strategic merge patch, whose result is not written.
pub(super) fn text(
    (kind, resource): (Kind, &Resource),
    patch: &Value,
    (old, patched): (&Value, &Value),
) -> Option<String> {
    // Go decodes custom objects to maps.
    let shape = if resource.custom {
        Shape::UNKNOWN
    } else {
        Shape::of(resource)
    };
    match kind {
        Kind::Strategic => None,
        Kind::Merge => Some(merged(shape, patched, (patch, old))),
        Kind::Json => {
            let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
            operated(shape, old, operations)
        }
    }
}

/// The text of a value after a merge patch. Kubernetes' library sorts the keys of the objects that
/// it has read, which are those that the patch has.
fn merged(shape: Shape<'_>, value: &Value, (patch, old): (&Value, &Value)) -> String {
    let Value::Object(fields) = value else {
        // An object is replaced with another value without reading that.
        let is_unread = old.is_object();
        return if is_unread {
            go_text::plain(value)
        } else {
            go_text::sorted(value)
        };
    };
    if !old.is_object() {
        return go_text::sorted(value);
    }
    go_text::in_order(fields, |key, it| match patch.get(key) {
        None => go_text::json(shape.field(key), it),
        Some(patch) => {
            let old = old.get(key).unwrap_or_default();
            merged(shape.field(key), it, (patch, old))
        }
    })
}

/// Marks an object whose fields Kubernetes' library has read.
const READ: &str = "\0";

/// The text of an object after the operations of a JSON patch. Kubernetes' library sorts the keys of
/// the objects on the way to the places of the operations, wherever these objects are later.
/// `None` if an operation does not apply.
fn operated(shape: Shape<'_>, old: &Value, operations: &[Value]) -> Option<String> {
    let old: Value = serde_json::from_str(&go_text::json(shape, old)).ok()?;
    let mut value = json::replay(&old, operations, |value, operation| {
        let text = |part: &str| operation.get(part).and_then(Value::as_str);
        let (kind, from) = (text("op"), text("from").unwrap_or_default());
        if matches!(kind, Some("move" | "copy")) {
            mark_read(value, from);
        }
        if kind == Some("copy")
            && let Some(copied) = value.pointer_mut(from)
        {
            sort_read(copied);
        }
        mark_read(value, text("path").unwrap_or_default());
    })?;
    sort_read(&mut value);
    Some(go_text::plain(&value))
}

/// Marks the objects on the way to a place.
fn mark_read(value: &mut Value, path: &str) {
    let mut at = value;
    for step in path.split('/').skip(1) {
        if let Value::Object(fields) = at {
            fields.insert(READ.to_owned(), Value::Null);
        }
        let name = step.replace("~1", "/").replace("~0", "~");
        let inner = match at {
            Value::Object(fields) => fields.get_mut(&name),
            Value::Array(items) => {
                name.parse().ok().and_then(|it: usize| items.get_mut(it))
            }
            _ => None,
        };
        let Some(inner) = inner else { return };
        at = inner;
    }
}

/// Sorts the keys of the marked objects, and removes the marks.
fn sort_read(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.shift_remove(READ).is_some() {
                fields.sort_keys();
            }
            fields.values_mut().for_each(sort_read);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_read),
        _ => {}
    }
}

/// A value as Go prints its maps and slices.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => go_map(fields),
    }
}

fn go_map(fields: &Map<String, Value>) -> String {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    let fields = fields
        .into_iter()
        .map(|(key, it)| format!("{key}:{}", go_value(it)));
    format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
}
