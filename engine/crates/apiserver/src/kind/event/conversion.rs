//! Conversion between the versions of `Event`: `v1` and `events.k8s.io/v1`.

use serde_json::{Map, Value};

/// Fields of `v1` and the fields of `events.k8s.io/v1` with the same meaning.
const PAIRS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Converts an `Event` to `api_version` (`v1` or `events.k8s.io/v1`).
///
/// Cannot fail: unknown fields are kept, and an object that already has this version is returned
/// unchanged.
///
/// ```
/// use kubemu_apiserver::convert_event;
/// use serde_json::json;
///
/// let event = json!({"apiVersion": "v1", "kind": "Event", "message": "hello"});
/// let other = convert_event(event, "events.k8s.io/v1");
/// assert_eq!(other["note"], "hello");
/// assert_eq!(convert_event(other, "v1")["message"], "hello");
/// ```
#[must_use]
pub fn convert(event: Value, api_version: &str) -> Value {
    let Value::Object(fields) = event else {
        return event;
    };
    if fields.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
        return Value::Object(fields);
    }
    let to_core = api_version == "v1";
    let mut converted = Map::new();
    for (name, mut value) in fields {
        let renamed = PAIRS.iter().find_map(|&(core, events)| {
            let (from, to) = if to_core {
                (events, core)
            } else {
                (core, events)
            };
            (name == from).then_some(to)
        });
        if name == "apiVersion" {
            value = api_version.into();
        }
        converted.insert(renamed.map_or(name, str::to_owned), value);
    }
    Value::Object(converted)
}
