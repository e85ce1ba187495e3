//! Reading and writing an object's `metadata`, which may be absent or malformed.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// A text of `metadata`; empty when absent.
pub(crate) fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"][key].as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// The resource version; empty when absent.
pub(crate) fn version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

/// Whether deletion has been asked for.
pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    object["metadata"]["labels"].as_object()
}

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let all = object["metadata"]["finalizers"].as_array();
    all.into_iter().flatten().filter_map(Value::as_str)
}

pub(crate) fn has_finalizer(object: &Value, name: &str) -> bool {
    finalizers(object).any(|it| it == name)
}

/// Lists and maps that are empty are not kept, whoever wrote them: the real server reads
/// metadata into fields that are left out when empty.
pub(crate) fn drop_empty(object: &mut Value) {
    let fields = [
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "managedFields",
    ];
    for field in fields {
        let empty = match &object["metadata"][field] {
            Value::Object(map) => map.is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => false,
        };
        if empty {
            clear(object, field);
        }
    }
}

/// Keeps the finalizers that pass; an empty list disappears.
pub(crate) fn retain_finalizers(object: &mut Value, keep: impl Fn(&str) -> bool) {
    let left: Vec<Value> = finalizers(object)
        .filter(|it| keep(it))
        .map(Value::from)
        .collect();
    if left.is_empty() {
        clear(object, "finalizers");
    } else {
        set(object, "finalizers", left);
    }
}

pub(crate) fn add_finalizer(object: &mut Value, name: &str) {
    if !has_finalizer(object, name) {
        let mut all: Vec<Value> = finalizers(object).map(Value::from).collect();
        all.push(name.into());
        set(object, "finalizers", all);
    }
}

/// The owner references.
pub(crate) fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The generation; 0 when absent.
pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"]
        .as_i64()
        .unwrap_or_default()
}

/// `metadata` to write to. Makes one where there is none; an object that is not even a
/// JSON object becomes one.
pub(crate) fn edit(object: &mut Value) -> &mut Map<String, Value> {
    field(fields(object), "metadata")
}

/// The fields of a JSON object; anything else is replaced by an empty one.
pub(crate) fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("an object was put here"),
    }
}

/// The JSON object in a field, made if there is none.
pub(crate) fn field<'a>(
    map: &'a mut Map<String, Value>,
    key: &str,
) -> &'a mut Map<String, Value> {
    fields(map.entry(key).or_insert_with(|| Value::Object(Map::new())))
}

pub(crate) fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    edit(object).insert(key.to_owned(), value.into());
}

pub(crate) fn clear(object: &mut Value, key: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove(key);
    }
}

/// Copies a key of `metadata` from one object to another, or its absence.
pub(crate) fn copy(from: &Value, to: &mut Value, key: &str) {
    match from["metadata"].get(key) {
        Some(value) => set(to, key, value.clone()),
        None => clear(to, key),
    }
}

/// Copies a top-level field from one object to another, or its absence.
pub(crate) fn copy_field(from: &Value, to: &mut Value, key: &str) {
    let fields = fields(to);
    match from.get(key) {
        Some(value) => {
            fields.insert(key.to_owned(), value.clone());
        }
        None => {
            fields.shift_remove(key);
        }
    }
}

/// An instant as Kubernetes writes it: UTC, whole seconds.
pub(crate) fn time(at: Timestamp) -> String {
    let whole = Timestamp::from_second(at.as_second());
    whole.unwrap_or(at).to_string()
}

/// A value as JSON text.
pub(crate) fn json(value: &Value) -> Bytes {
    // A JSON value has string keys only and so always has a text.
    serde_json::to_vec(value).unwrap_or_default().into()
}
