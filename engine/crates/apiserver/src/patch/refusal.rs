//! Kubernetes' error for a patch whose result cannot be decoded as an object; it quotes the
//! part that it cannot decode.

use kubemu_admission::FieldError;
use serde_json::{Map, Value};

use super::Kind;
use crate::resource::Resource;
use crate::status::{Cause, Details, Reason, Status};

/// Go's order of the fields of `ObjectMeta` and of the entries of `managedFields`, which are
/// printed in that order if the patch does not touch them.
const ORDER: [&str; 20] = [
    "manager",
    "operation",
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "apiVersion",
    "time",
    "fieldsType",
    "fieldsV1",
    "subresource",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
];

/// 422 for the result of `patch`, which cannot be decoded for the reason `why`.
pub(super) fn status(
    (kind, resource): (Kind, &Resource),
    patch: &Value,
    (old, patched): (&Value, &Value),
    why: &str,
) -> Status {
    let quoted = match kind {
        Kind::Strategic => go_value(patch),
        Kind::Json | Kind::Merge => text(resource, Some(old), patched),
    };
    let error = FieldError::invalid("patch", quoted.into(), why);
    let message = format!(" \"\" is invalid: {error}");
    Status::new(422, Reason::Invalid, message).with_details(Details {
        causes: vec![Cause::from(error.cause())],
        ..Details::default()
    })
}

/// The text of a patched value: the keys of changed objects are sorted, all others are printed
/// as Go encodes objects.
pub(super) fn text(resource: &Resource, old: Option<&Value>, patched: &Value) -> String {
    let Value::Object(fields) = patched else {
        return match patched {
            Value::Array(items) if resource.custom => {
                let items = items.iter().map(|it| text(resource, None, it));
                format!("[{}]", items.collect::<Vec<_>>().join(","))
            }
            _ => untouched(patched),
        };
    };
    if !resource.custom && old == Some(patched) {
        return untouched(patched);
    }
    let below = |key: &str, value: &Value| {
        let previous = old.and_then(|it| it.get(key));
        text(resource, previous, value)
    };
    let mut keys: Vec<_> = fields.iter().collect();
    keys.sort_by_key(|(key, _)| *key);
    object(keys.into_iter().map(|(key, it)| (key, below(key, it))))
}

fn untouched(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let rank = |key: &str| ORDER.iter().position(|it| *it == key);
            let mut fields: Vec<_> = fields.iter().collect();
            if fields.iter().all(|(key, _)| is_metadata(key)) {
                fields.sort_by_key(|(key, _)| rank(key).unwrap_or(ORDER.len()));
            }
            object(fields.into_iter().map(|(key, it)| (key, untouched(it))))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(untouched).collect();
            format!("[{}]", items.join(","))
        }
        _ => escaped(&value.to_string()),
    }
}

fn is_metadata(key: &str) -> bool {
    ORDER.contains(&key) || matches!(key, "finalizers" | "managedFields")
}

fn object<'a>(fields: impl Iterator<Item = (&'a String, String)>) -> String {
    let fields = fields.map(|(key, text)| {
        let key = escaped(&Value::from(key.as_str()).to_string());
        format!("{key}:{text}")
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Go escapes HTML characters.
fn escaped(json: &str) -> String {
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
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
