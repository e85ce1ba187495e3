//! Kubernetes' error for a patch whose result cannot be decoded as an object; it quotes the
//! part that it cannot decode.

use kubemu_admission::FieldError;
use serde_json::{Map, Value};

use super::Kind;
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
            Some(operated(shape, patched, (operations, "")))
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

/// The text of a value at a path after the operations of a JSON patch. Kubernetes' library sorts
/// the keys of the objects on the way to the places of the operations.
fn operated(
    shape: Shape<'_>,
    value: &Value,
    (operations, at): (&[Value], &str),
) -> String {
    // The library reads no other part of an operation than its kind has.
    let paths = |part: &str, kinds: &[&str]| -> Vec<&str> {
        let read = operations.iter();
        let read = read.filter(|it| kinds.iter().any(|kind| it["op"] == *kind));
        read.filter_map(|it| it.get(part)?.as_str()).collect()
    };
    let reached = paths(
        "path",
        &["add", "remove", "replace", "move", "copy", "test"],
    );
    let taken = paths("from", &["move", "copy"]);
    let set = paths("path", &["add", "replace", "move", "copy"]);
    let is_below = |path: &&str| {
        let below = path.strip_prefix(at);
        below.is_some_and(|it| it.starts_with('/'))
    };
    if !reached.iter().chain(&taken).any(is_below) {
        return if set.contains(&at) {
            go_text::plain(value)
        } else {
            go_text::json(shape, value)
        };
    }
    let step =
        |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => go_text::in_order(fields, |key, it| {
            operated(shape.field(key), it, (operations, &step(key)))
        }),
        Value::Array(items) => {
            let end = step("-");
            let appended = set.iter().filter(|it| **it == end).count();
            let kept = items.len().saturating_sub(appended);
            let items = items.iter().enumerate().map(|(index, it)| {
                if index >= kept {
                    return go_text::plain(it);
                }
                let at = step(&index.to_string());
                operated(shape.items(), it, (operations, &at))
            });
            go_text::list(items)
        }
        _ => go_text::plain(value),
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
