//! The structural schema: types, defaults and bounds of every field, and what `kubectl explain`
//! says about them.
//!
//! Every string and every list is bounded, the passed-on provider specs and the keys of maps
//! excepted, so that every rule has a finite cost. Fields of the rules 1 to 13 carry no pattern,
//! no least length and no enum, and leave room for 64 characters at least, so that a user reads
//! the rule's message and not the schema's.

mod spec;
mod status;

use serde_json::{Map, Value, json};

use crate::scheduled_machine::TaintEffect;

/// The longest name of a Kubernetes object.
const MAX_NAME: u32 = 253;
/// The longest label value, label name or namespace.
const MAX_LABEL: u32 = 63;
/// Room for an RFC 3339 instant, or for a uid.
const MAX_SHORT: u32 = 64;

/// The schema of the whole object.
pub(crate) fn root() -> Value {
    let string =
        |description: &str| json!({"type": "string", "description": description});
    let properties = [
        ("apiVersion", string("Group and version of this object.")),
        ("kind", string("Kind of this object.")),
        ("metadata", json!({"type": "object"})),
        ("spec", spec::spec()),
        ("status", status::status()),
    ];
    object(
        "A machine that joins a Cluster API cluster and leaves it on a schedule.",
        &["spec"],
        properties,
    )
}

fn object<const N: usize>(
    description: &str,
    required: &[&str],
    properties: [(&str, Value); N],
) -> Value {
    let properties: Map<String, Value> = properties
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    let mut schema = json!({"type": "object", "description": description});
    if let Some(schema) = schema.as_object_mut() {
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    schema
}

fn string(description: &str, max_length: u32) -> Value {
    json!({"type": "string", "description": description, "maxLength": max_length})
}

fn boolean(description: &str, default: Value) -> Value {
    json!({"type": "boolean", "description": description, "default": default})
}

fn list(description: &str, max_items: u32, items: Value) -> Value {
    json!({
        "type": "array",
        "description": description,
        "maxItems": max_items,
        "x-kubernetes-list-type": "atomic",
        "items": items,
    })
}

fn list_map(description: &str, max_items: u32, keys: &[&str], items: Value) -> Value {
    json!({
        "type": "array",
        "description": description,
        "maxItems": max_items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": keys,
        "items": items,
    })
}

fn string_map(description: &str, max_value: u32) -> Value {
    json!({
        "type": "object",
        "description": description,
        "default": {},
        "maxProperties": 64,
        "additionalProperties": {"type": "string", "maxLength": max_value},
    })
}

fn with(mut schema: Value, keyword: &str, value: Value) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(keyword.to_owned(), value);
    }
    schema
}

/// A taint, as it is asked for and as it is recorded.
fn taint() -> Value {
    let effects = TaintEffect::ALL.map(TaintEffect::as_str);
    object(
        "A taint. Key and effect are its identity, the value may change.",
        &["key", "effect"],
        [
            (
                "key",
                string("A qualified name, such as example.com/dedicated.", MAX_NAME),
            ),
            (
                "value",
                with(
                    string("The value; empty if absent.", MAX_LABEL),
                    "default",
                    json!(""),
                ),
            ),
            (
                "effect",
                json!({
                    "type": "string",
                    "description": "What happens to pods that do not tolerate the taint.",
                    "enum": effects,
                    "maxLength": MAX_SHORT,
                }),
            ),
        ],
    )
}
