//! What the cells of several kinds are made of (pkg/printers/internalversion in Kubernetes).

use jiff::Timestamp;
use serde_json::Value;

use crate::table::human_duration;

/// How long ago the object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    since(&object["metadata"]["creationTimestamp"], now).into()
}

/// How long ago an instant was; `<unknown>` for none.
pub(super) fn since(instant: &Value, now: Timestamp) -> String {
    let since = instant.as_str().and_then(|it| it.parse().ok());
    since.map_or_else(|| "<unknown>".to_owned(), |it| human_duration(it, now))
}

/// The name of the object.
pub(super) fn name(object: &Value) -> Value {
    string(&object["metadata"]["name"])
}

/// A text; empty where it is absent.
pub(super) fn string(value: &Value) -> Value {
    value.as_str().unwrap_or_default().into()
}

/// How many entries a list or a map has.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The entries of a list; none where there is no list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Labels as `kubectl` prints them; `<none>` for none.
pub(super) fn labels(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten();
    let mut pairs: Vec<String> = pairs
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    pairs.sort();
    if pairs.is_empty() {
        return "<none>".into();
    }
    pairs.join(",").into()
}

/// A label selector; of one by expressions its labels alone are shown.
pub(super) fn selector(selector: &Value) -> Value {
    labels(&selector["matchLabels"])
}
