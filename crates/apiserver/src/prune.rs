//! Brings objects of built-in kinds into the form in which Go writes them.

use serde_json::{Map, Value};

use crate::openapi::shape::Shape;
use crate::resource::Resource;

/// Times that Go writes as null where they are not set: their fields are no pointers.
const TIMES: &[(&str, &[&str])] = &[
    (
        "NodeCondition",
        &["lastHeartbeatTime", "lastTransitionTime"],
    ),
    ("PodCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("CustomResourceDefinitionCondition", &["lastTransitionTime"]),
];

/// Removes unknown fields, nulls, and optional lists and maps that are empty; fills in what
/// Go writes of a field that was not set. Returns the paths of the unknown fields in the
/// order of the document.
pub(crate) fn prune(resource: &Resource, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    at(Shape::of(resource), object, "", &mut unknown);
    unknown
}

fn at(shape: Shape<'_>, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    if !shape.is_known() {
        return;
    }
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let path = join(path, name);
                if !shape.knows(name) {
                    unknown.push(path);
                    return false;
                }
                let field = shape.field(name);
                at(field, value, &path, unknown);
                !value.is_null()
                    && (is_always_written(shape, name) || !is_empty(field, value))
            });
            fill(shape, fields);
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                at(shape.items(), item, &format!("{path}[{index}]"), unknown);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether Go writes the field even where there is nothing in it.
fn is_always_written(shape: Shape<'_>, field: &str) -> bool {
    let rules = matches!(shape.name(), Some("Role" | "ClusterRole")) && field == "rules";
    rules || shape.requires(field)
}

/// Whether this is a list or a map with nothing in it; a struct is never left out, nor is
/// what may be any JSON.
fn is_empty(shape: Shape<'_>, value: &Value) -> bool {
    match value {
        Value::Array(items) => shape.kind() == Some("array") && items.is_empty(),
        Value::Object(fields) => shape.is_map() && fields.is_empty(),
        _ => false,
    }
}

fn fill(shape: Shape<'_>, fields: &mut Map<String, Value>) {
    let times = TIMES
        .iter()
        .find(|(name, _)| shape.name() == Some(*name))
        .map(|(_, times)| *times);
    for time in times.into_iter().flatten() {
        fields.entry(*time).or_insert(Value::Null);
    }
    for flag in shape.required_flags() {
        fields.entry(flag).or_insert(Value::Bool(false));
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
