//! The OpenAPI v2 document: all groups and versions in the older form, for clients that do not
//! read OpenAPI v3.

use serde_json::{Map, Value, json};

use super::definitions::{self, PREFIX};
use super::document;
use crate::registry::Registry;

/// The prefix of a definition's name in a `$ref` of OpenAPI v2.
const OLDER_PREFIX: &str = "#/definitions/";

const KIND: &str = "x-kubernetes-group-version-kind";
const OPEN: &str = "x-kubernetes-preserve-unknown-fields";

/// The document of all resources in `registry`.
pub(super) fn of(registry: &Registry, release: &str) -> Value {
    let mut paths = Map::new();
    let mut all = Map::new();
    for group in registry.groups() {
        for version in registry.versions(group) {
            let mut newer = document::of(registry, (group, version), release);
            for (name, schema) in taken(&mut newer["components"]["schemas"]) {
                if !all.contains_key(&name) {
                    // A custom kind does not take the name of a built-in definition.
                    let own = definitions::find(&name).cloned().unwrap_or(schema);
                    all.insert(name, definition(own));
                }
            }
            for (path, mut item) in taken(&mut newer["paths"]) {
                convert_path(&mut item);
                paths.insert(path, item);
            }
        }
    }
    all.sort_keys();
    paths.sort_keys();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release},
        "paths": paths,
        "definitions": all,
    })
}

fn taken(value: &mut Value) -> Map<String, Value> {
    match value.take() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn definition(mut schema: Value) -> Value {
    if schema[OPEN] == true {
        // With properties, kubectl would refuse all others.
        return json!({"type": "object", KIND: schema[KIND]});
    }
    convert(&mut schema);
    schema
}

/// What OpenAPI v2 does not have, or kubectl cannot read; Kubernetes prunes the defaults.
const DROPPED: [&str; 6] = ["allOf", "anyOf", "default", "not", "nullable", "oneOf"];

/// Converts a schema as `ToStructuralOpenAPIV2` does (k8s.io/apiextensions-apiserver).
fn convert(schema: &mut Value) {
    let reference = match schema["allOf"].as_array().map(Vec::as_slice) {
        Some([one]) => one.get("$ref").cloned(),
        _ => None,
    };
    // Quantity and IntOrString; a custom schema has no types in `oneOf`.
    let one_of = schema["oneOf"].as_array();
    let text = one_of.is_some_and(|all| all.iter().any(|it| it["type"] == "string"));
    let nullable = schema["nullable"] == true;
    let open = schema[OPEN] == true;
    let Value::Object(fields) = schema else {
        return;
    };
    keep_required(fields);
    fields.retain(|key, _| {
        let untyped = nullable && key == "type";
        let closed = (nullable || open) && ["items", "properties"].contains(&&**key);
        !untyped && !closed && !DROPPED.contains(&&**key)
    });
    let array = fields.get("type").is_some_and(|it| it == "array");
    let object = fields.get("type").is_some_and(|it| it == "object");
    if array && !fields.contains_key("items") || open && object {
        fields.shift_remove("type");
    }
    if text {
        fields.insert("type".to_owned(), "string".into());
    }
    if let Some(reference) = reference {
        fields.insert("$ref".to_owned(), reference);
    }
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("$ref", Value::String(target)) => {
                *target = target.replacen(PREFIX, OLDER_PREFIX, 1);
            }
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(convert);
            }
            ("items" | "additionalProperties", value @ Value::Object(_)) => {
                convert(value);
            }
            _ => {}
        }
    }
}

/// Removes nullable properties from the required ones.
fn keep_required(fields: &mut Map<String, Value>) {
    let is_nullable = |schema: &Value| schema["nullable"] == true;
    let Some(Value::Array(mut required)) = fields.get_mut("required").map(Value::take)
    else {
        return;
    };
    required.retain(|name| {
        let property = name
            .as_str()
            .and_then(|it| fields.get("properties")?.get(it));
        !property.is_some_and(is_nullable)
    });
    if required.is_empty() || fields.get("additionalProperties").is_some_and(is_nullable)
    {
        fields.shift_remove("required");
    } else {
        fields.insert("required".to_owned(), required.into());
    }
}

/// Converts the operations of one path.
fn convert_path(item: &mut Value) {
    let Value::Object(fields) = item else { return };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("parameters", value) => convert_parameters(value),
            (_, operation @ Value::Object(_)) => convert_operation(operation),
            _ => {}
        }
    }
}

fn convert_operation(operation: &mut Value) {
    convert_parameters(&mut operation["parameters"]);
    let body = taken(&mut operation["requestBody"]);
    let mut produced = Vec::new();
    for response in operation["responses"].as_object_mut().into_iter().flatten() {
        let (media, schema) = content(&mut response.1["content"]);
        let description = response.1["description"].take();
        *response.1 = json!({"description": description});
        if let Some(schema) = schema {
            response.1["schema"] = schema;
            produced = media;
        }
    }
    operation["produces"] = produced.into();
    if let Some(mut sent) = body.get("content").cloned() {
        let (media, schema) = content(&mut sent);
        let required = body.get("required").is_some_and(|it| it == true);
        let parameter =
            json!({"name": "body", "in": "body", "required": required, "schema": schema});
        operation["consumes"] = media.into();
        match &mut operation["parameters"] {
            Value::Array(parameters) => parameters.push(parameter),
            none => *none = json!([parameter]),
        }
    }
    if let Value::Object(fields) = operation {
        fields.retain(|_, value| !value.is_null());
    }
}

/// The media types of a content, and its schema: the same for all of them.
fn content(content: &mut Value) -> (Vec<String>, Option<Value>) {
    let content = taken(content);
    let media = content.keys().cloned().collect();
    let schema = content.into_values().next().map(|mut it| {
        let mut schema = it["schema"].take();
        convert(&mut schema);
        schema
    });
    (media, schema)
}

/// Moves the type of each parameter from its schema into the parameter.
fn convert_parameters(parameters: &mut Value) {
    if parameters.is_null() {
        *parameters = json!([]);
    }
    for parameter in parameters.as_array_mut().into_iter().flatten() {
        let Value::Object(fields) = parameter else {
            continue;
        };
        if let Some(mut schema) = fields.shift_remove("schema") {
            fields.extend(taken(&mut schema));
        }
    }
}
