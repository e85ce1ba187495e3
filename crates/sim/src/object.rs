//! Accessors for Kubernetes objects as JSON.
//!
//! A field that is missing or of another type reads as absent, because the objects may be
//! written by users.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The string at a JSON pointer, unless it is empty.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// Whether the value at a JSON pointer is `true`.
pub(crate) fn is_true(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer) == Some(&Value::Bool(true))
}

/// The instant at a JSON pointer.
pub(crate) fn instant(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer)?.parse().ok()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name").unwrap_or_default()
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace").unwrap_or_default()
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid").unwrap_or_default()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    text(object, "/metadata/deletionTimestamp").is_some()
}

pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(key)?
        .as_str()
}

pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    list(object, "/metadata/finalizers")
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

pub(crate) fn owners(object: &Value) -> &[Value] {
    list(object, "/metadata/ownerReferences")
}

/// The controller reference of the object.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    owners(object)
        .iter()
        .find(|owner| is_true(owner, "/controller"))
}

/// The items at a JSON pointer; empty if there is no list.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The map at a JSON pointer; empty if there is none.
pub(crate) fn map(object: &Value, pointer: &str) -> Map<String, Value> {
    object
        .pointer(pointer)
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

/// An owner reference to `owner` that is not a controller reference.
pub(crate) fn plain_owner(owner: &Value) -> Value {
    json!({
        "apiVersion": text(owner, "/apiVersion"),
        "kind": text(owner, "/kind"),
        "name": name(owner),
        "uid": uid(owner),
    })
}

/// A controller reference to `owner`.
pub(crate) fn controlling_owner(owner: &Value) -> Value {
    let mut reference = plain_owner(owner);
    reference["controller"] = Value::Bool(true);
    reference["blockOwnerDeletion"] = Value::Bool(true);
    reference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_missing_or_of_another_type_read_as_absent() {
        let odd = json!({"metadata": {"name": 5, "finalizers": "x", "labels": []}});
        assert_eq!(name(&odd), "");
        assert_eq!(finalizers(&odd), Vec::<&str>::new());
        assert_eq!(label(&odd, "a"), None);
        assert_eq!(controller(&odd), None);
        assert!(!is_deleting(&odd));
    }
}
