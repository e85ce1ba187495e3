//! JSON merge patches.

use serde_json::{Map, Value};

/// The JSON merge patch (RFC 7386) that turns `stored` into `wanted`. `None` if they are equal.
///
/// A null in `wanted` removes the member, as no merge patch can set one.
///
/// # Example
/// ```
/// use fivespot_plan::merge_patch::difference;
/// use serde_json::json;
/// let patch = difference(&json!({"a": 1, "b": [1]}), json!({"a": 1, "b": [2]}));
/// assert_eq!(patch, Some(json!({"b": [2]})));
/// ```
pub fn difference(stored: &Value, wanted: Value) -> Option<Value> {
    if *stored == wanted {
        return None;
    }
    let (old, new) = match (stored, wanted) {
        (Value::Object(old), Value::Object(new)) => (old, new),
        (_, wanted) => return Some(wanted),
    };
    let removed = old.keys().filter(|field| !new.contains_key(*field));
    let mut patch: Map<String, Value> =
        removed.map(|field| (field.clone(), Value::Null)).collect();
    for (field, value) in new {
        let before = old.get(&field).unwrap_or(&Value::Null);
        if let Some(change) = difference(before, value) {
            patch.insert(field, change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}
