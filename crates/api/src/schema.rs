//! The structural schema: types, defaults and bounds of every field, and what `kubectl explain`
//! says about them.
//!
//! Every string and every list is bounded, the passed-on provider specs and the keys of maps
//! excepted, so that every rule has a finite cost. Fields of the rules 1 to 13 carry no pattern,
//! no least length and no enum, and leave room for 64 characters at least, so that a user reads
//! the rule's message and not the schema's.

mod schedule;
mod schedule_calendar;
mod schedule_override;
mod spec;
mod status;
mod usage;

use serde_json::{Map, Value, json};

use crate::scheduled_machine::TaintEffect;

pub(crate) use schedule_calendar::schedule_calendar;
pub(crate) use schedule_override::schedule_override;

/// The longest name of a Kubernetes object.
pub(crate) const MAX_NAME: u32 = 253;
/// The longest label value, label name or namespace.
const MAX_LABEL: u32 = 63;
/// Room for an RFC 3339 instant, or for a uid.
const MAX_SHORT: u32 = 64;

/// The schema of a whole ScheduledMachine.
pub(crate) fn root() -> Value {
    whole(
        "A machine that is added to a Cluster API cluster and removed from it on a schedule.",
        [("spec", spec::spec()), ("status", status::status())],
    )
}

/// The schema of a whole object that has these parts.
fn whole<const N: usize>(description: &str, parts: [(&str, Value); N]) -> Value {
    let mut whole = object(
        description,
        &["spec"],
        [
            (
                "apiVersion",
                string("Group and version of this object.", MAX_NAME),
            ),
            ("kind", string("Kind of this object.", MAX_LABEL)),
            ("metadata", json!({"type": "object"})),
        ],
    );
    for (name, part) in parts {
        whole["properties"][name] = part;
    }
    whole
}

/// One of some words.
fn choice(description: &str, words: &[&str]) -> Value {
    json!({
        "type": "string",
        "description": description,
        "enum": words,
        "maxLength": MAX_SHORT,
    })
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

fn list_map(description: &str, max_items: usize, keys: &[&str], items: Value) -> Value {
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::root;
    use crate::resource::RESOURCES;
    use crate::rules::RULES;

    /// Every node of the schema with its path, those passed on untouched excepted.
    fn nodes<'s>(schema: &'s Value, path: &str, found: &mut Vec<(String, &'s Value)>) {
        found.push((path.to_owned(), schema));
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let dot = if path.is_empty() { "" } else { "." };
            nodes(property, &format!("{path}{dot}{name}"), found);
        }
        if let Some(items) = schema.get("items") {
            nodes(items, &format!("{path}[]"), found);
        }
        if let Some(values) = schema.get("additionalProperties") {
            nodes(values, &format!("{path}{{}}"), found);
        }
    }

    #[test]
    fn every_string_list_and_map_is_bounded_and_every_field_explained() {
        let roots = RESOURCES.each_ref().map(|resource| (resource.schema)());
        let mut all = Vec::new();
        for root in &roots {
            nodes(root, "", &mut all);
        }
        for (path, node) in &all {
            let bound = match node["type"].as_str().unwrap() {
                "string" => "maxLength",
                "array" => "maxItems",
                _ if node.get("additionalProperties").is_some() => "maxProperties",
                _ => "type",
            };
            assert!(node.get(bound).is_some(), "{path} has no {bound}");
            let is_named =
                !path.ends_with(']') && !path.ends_with('}') && path != "metadata";
            assert!(!is_named || node.get("description").is_some(), "{path}");
        }
    }

    #[test]
    fn fields_of_the_first_thirteen_rules_leave_the_word_to_the_rule() {
        let root = root();
        let mut all = Vec::new();
        nodes(&root, "", &mut all);
        for rule in &RULES[..13] {
            let (_, node) = all.iter().find(|(path, _)| path == rule.path).unwrap();
            for keyword in ["pattern", "minLength", "enum"] {
                assert!(node.get(keyword).is_none(), "{} has a {keyword}", rule.path);
            }
            let most = node["maxLength"].as_u64().unwrap_or(64);
            assert!(most >= 64, "{}", rule.path);
        }
    }
}
