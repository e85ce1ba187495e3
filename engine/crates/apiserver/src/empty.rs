//! Empty fields of built-in kinds.
//!
//! Kubernetes decodes such objects into Go structs and encodes them from there. Some empty
//! fields are omitted even if the client sent them, and others are written even if it did not.
//! The generated table lists both, by definition.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::meta;
use crate::openapi::definitions::OBJECT_META;
use crate::openapi::shape::Shape;
use crate::resource::Resource;

/// One struct.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Struct {
    /// Fields that are always written, with their zero values.
    written: Map<String, Value>,
    /// Fields that are omitted if empty (`omitempty`).
    omitted: BTreeSet<String>,
}

static TABLE: LazyLock<HashMap<String, Struct>> = LazyLock::new(|| {
    // The file is generated and covered by a test; if it cannot be read, empty fields stay as
    // they are.
    serde_json::from_str(include_str!("../schema/empty.json")).unwrap_or_default()
});

/// Lists that are kept if empty: their defaults are only set if the list is missing, or an empty one
/// resets the managers.
const LISTS_KEPT_IF_EMPTY: [(&str, &str); 2] = [
    ("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies"),
    (OBJECT_META, "managedFields"),
];

/// Omits and adds empty fields as Kubernetes does. Does nothing to custom objects.
pub(crate) fn normalize(shape: Shape<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let shape = shape.schema_alternative().unwrap_or(shape);
            let definition = shape.definition().unwrap_or_default();
            if let Some(known) = TABLE.get(definition) {
                fields.retain(|name, value| {
                    let retained = value.is_array()
                        && LISTS_KEPT_IF_EMPTY.contains(&(definition, name));
                    !is_empty(value) || retained || !known.omitted.contains(name)
                });
                for (name, zero) in &known.written {
                    fields.entry(name).or_insert_with(|| zero.clone());
                }
            }
            for (name, value) in fields {
                normalize(shape.field(name), value);
            }
        }
        Value::Array(items) => {
            let shape = shape.items();
            for item in items {
                normalize(shape, item);
            }
        }
        Value::String(text) => normalize_instant(shape, text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces empty lists with null, as they are read back from protobuf, which cannot tell them from
/// missing ones. Kubernetes stores in it all but custom objects, definitions and API services.
pub(crate) fn lose_lists(shape: Shape<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let of_own_group = |it: &str| it.starts_with("io.k8s.api.");
            if shape.definition().is_some_and(|it| !of_own_group(it)) {
                return;
            }
            for (name, value) in fields {
                lose_lists(shape.field(name), value);
            }
        }
        Value::Array(items) if items.is_empty() && shape.kind() == Some("array") => {
            *value = Value::Null;
        }
        Value::Array(items) => {
            let shape = shape.items();
            for item in items {
                lose_lists(shape, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The zero value of a field of a struct, if it is a string, a number or a boolean.
pub(crate) fn zero(definition: &str, field: &str) -> Option<&'static Value> {
    let found = TABLE.get(definition)?.written.get(field)?;
    let is_simple = found.is_string() || found.is_number() || found.is_boolean();
    is_simple.then_some(found)
}

/// Times are stored in UTC, in whole seconds or in microseconds.
fn normalize_instant(shape: Shape<'_>, text: &mut String) {
    let digits = match shape.name() {
        Some("Time") => 0,
        Some("MicroTime") => 6,
        _ => return,
    };
    if let Ok(instant) = text.parse::<Timestamp>() {
        *text = if digits == 0 {
            meta::time(instant)
        } else {
            format!("{instant:.6}")
        };
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Number(it) => it.as_f64() == Some(0.0),
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
    }
}

/// An empty object of the kind.
pub(crate) fn object(resource: &Resource) -> Value {
    let mut object = json!({"apiVersion": resource.api_version(), "kind": resource.kind});
    normalize(Shape::of(resource), &mut object);
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(kind: &str, mut object: Value) -> Value {
        normalize(Shape::of_kind("", "v1", kind), &mut object);
        object
    }

    #[test]
    fn structs_are_written_even_if_not_sent() {
        let pod = normalized("Pod", json!({"spec": {"containers": [{"name": "c"}]}}));
        let expected = json!({"metadata": {}, "status": {},
            "spec": {"containers": [{"name": "c", "resources": {}}]}});
        assert_eq!(pod, expected);
    }

    #[test]
    fn an_empty_field_is_omitted_where_go_omits_it() {
        let map =
            normalized("ConfigMap", json!({"data": {}, "metadata": {"labels": {}}}));
        assert_eq!(map, json!({"metadata": {}}));
        let event = normalized("Event", json!({"count": 0, "message": ""}));
        assert_eq!(event["eventTime"], Value::Null);
        assert_eq!(event["reportingComponent"], "");
        assert_eq!(event.get("count").or_else(|| event.get("message")), None);
    }

    #[test]
    fn a_time_is_stored_in_utc_with_the_precision_of_its_type() {
        let times = json!({"eventTime": "2020-01-01T02:00:00.1234567+02:00",
            "firstTimestamp": "2020-01-01T02:00:00.9+02:00"});
        let event = normalized("Event", times);
        assert_eq!(event["eventTime"], "2020-01-01T00:00:00.123456Z");
        assert_eq!(event["firstTimestamp"], "2020-01-01T00:00:00Z");
    }

    #[test]
    fn empty_values_of_a_map_are_kept() {
        let map = json!({"metadata": {}, "data": {"a": ""}});
        assert_eq!(normalized("ConfigMap", map.clone()), map);
    }
}
