//! Reads and writes an object's `metadata`, which may be absent or malformed.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// A string field of `metadata`; empty if absent.
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

/// The resourceVersion; empty if absent.
pub(crate) fn version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

/// Whether the object has a deletion timestamp.
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

/// Removes empty lists and maps, as Kubernetes does: it decodes metadata into fields that are
/// omitted if empty.
pub(crate) fn drop_empty(object: &mut Value) {
    let fields = ["labels", "annotations", "finalizers", "ownerReferences"];
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

/// Keeps the finalizers for which `keep` returns true; an empty list is removed.
pub(crate) fn retain_finalizers(object: &mut Value, keep: impl Fn(&str) -> bool) {
    let remaining: Vec<Value> = finalizers(object)
        .filter(|it| keep(it))
        .map(Value::from)
        .collect();
    if remaining.is_empty() {
        clear(object, "finalizers");
    } else {
        set(object, "finalizers", remaining);
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

/// The generation; 0 if absent.
pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"]
        .as_i64()
        .unwrap_or_default()
}

/// `metadata` for writing, created if absent; a value that is not a JSON object is replaced by
/// one.
pub(crate) fn edit(object: &mut Value) -> &mut Map<String, Value> {
    field(fields(object), "metadata")
}

/// The fields of a JSON object; any other value is replaced by an empty object.
pub(crate) fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("the value is an object"),
    }
}

/// The JSON object in a field, created if absent.
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

/// Copies a key of `metadata` from one object to another; removes it if it is absent.
pub(crate) fn copy(from: &Value, to: &mut Value, key: &str) {
    match from["metadata"].get(key) {
        Some(value) => set(to, key, value.clone()),
        None => clear(to, key),
    }
}

/// Copies a top-level field from one object to another; removes it if it is absent.
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

/// A time as Kubernetes writes it: UTC, whole seconds.
pub(crate) fn time(at: Timestamp) -> String {
    let whole = Timestamp::from_second(at.as_second());
    whole.unwrap_or(at).to_string()
}

/// A value as JSON text.
pub(crate) fn json(value: &Value) -> Bytes {
    // A JSON value has string keys only and can therefore always be encoded.
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Removes the fields that clients cannot set (`WipeObjectMetaSystemFields`).
pub(crate) fn clear_system_fields(object: &mut Value) {
    let system = [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ];
    for key in system {
        clear(object, key);
    }
}

/// Group and version of an owner reference.
pub(crate) fn group_and_version(owner: &Value) -> (&str, &str) {
    let api_version = owner["apiVersion"].as_str().unwrap_or_default();
    api_version.rsplit_once('/').unwrap_or(("", api_version))
}
