//! What becomes of the empty fields of a built-in kind.
//!
//! Kubernetes reads such objects into Go's structs and writes them from there. Of what is
//! empty some fields are left out, whoever said them, and others are written although
//! nobody did. The generated table says which, by definition.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::meta;
use crate::openapi::shape::Shape;
use crate::resource::Resource;

/// One struct.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Struct {
    /// Fields that are always there, with what they are when nothing was said.
    written: Map<String, Value>,
    /// Fields that are left out when they are empty.
    omitted: BTreeSet<String>,
}

static TABLE: LazyLock<HashMap<String, Struct>> = LazyLock::new(|| {
    // The file is generated and covered by a test; an unreadable one leaves empty fields as
    // they come.
    serde_json::from_str(include_str!("../schema/empty.json")).unwrap_or_default()
});

/// Lists that are kept when they are empty, because defaults are filled in only where there is
/// none.
const KEPT: [(&str, &str); 1] =
    [("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies")];

/// Leaves out and fills in what Kubernetes does. Does nothing to custom objects.
pub(crate) fn normalize(shape: Shape<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let definition = shape.definition().unwrap_or_default();
            if let Some(known) = TABLE.get(definition) {
                fields.retain(|name, value| {
                    let kept = value.is_array() && KEPT.contains(&(definition, name));
                    !is_empty(value) || kept || !known.omitted.contains(name)
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

/// What a field of a struct is when nothing was said, where that is a text, a number or a truth
/// value.
pub(crate) fn zero(definition: &str, field: &str) -> Option<&'static Value> {
    let found = TABLE.get(definition)?.written.get(field)?;
    let is_simple = found.is_string() || found.is_number() || found.is_boolean();
    is_simple.then_some(found)
}

/// Instants are kept in UTC, in whole seconds or in microseconds.
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

/// An object of the kind of which nothing was said.
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
    fn structs_are_written_although_nobody_said_them() {
        let pod = normalized("Pod", json!({"spec": {"containers": [{"name": "c"}]}}));
        let expected = json!({"metadata": {}, "status": {},
            "spec": {"containers": [{"name": "c", "resources": {}}]}});
        assert_eq!(pod, expected);
    }

    #[test]
    fn an_empty_field_is_left_out_where_go_leaves_it_out() {
        let map =
            normalized("ConfigMap", json!({"data": {}, "metadata": {"labels": {}}}));
        assert_eq!(map, json!({"metadata": {}}));
        let event = normalized("Event", json!({"count": 0, "message": ""}));
        assert_eq!(event["eventTime"], Value::Null);
        assert_eq!(event["reportingComponent"], "");
        assert_eq!(event.get("count").or_else(|| event.get("message")), None);
    }

    #[test]
    fn an_instant_is_kept_in_utc_and_as_exactly_as_its_type() {
        let times = json!({"eventTime": "2020-01-01T02:00:00.1234567+02:00",
            "firstTimestamp": "2020-01-01T02:00:00.9+02:00"});
        let event = normalized("Event", times);
        assert_eq!(event["eventTime"], "2020-01-01T00:00:00.123456Z");
        assert_eq!(event["firstTimestamp"], "2020-01-01T00:00:00Z");
    }

    #[test]
    fn what_a_map_holds_is_kept_however_empty() {
        let map = json!({"metadata": {}, "data": {"a": ""}});
        assert_eq!(normalized("ConfigMap", map.clone()), map);
    }
}
