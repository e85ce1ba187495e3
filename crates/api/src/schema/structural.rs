//! The form that Kubernetes requires of a schema: one type per node, no null, no references.

use serde_json::{Map, Value, json};

use super::bound::MAX_SHORT;

/// The keywords in the order in which they are written; others follow.
const ORDER: [&str; 18] = [
    "type",
    "format",
    "description",
    "enum",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "required",
    "properties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "items",
    "default",
    "minimum",
    "maximum",
    "maxProperties",
    "additionalProperties",
];

/// Converts a schema of `schemars` to the form that Kubernetes requires.
pub(super) fn of(schema: Value) -> Value {
    let Value::Object(schema) = schema else {
        return schema;
    };
    let mut schema = without_null(schema);
    schema.shift_remove("title");
    one_line(&mut schema);
    enum_from_one_of(&mut schema);
    types(&mut schema);
    defaults(&mut schema);
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(keyword) {
            *inner = of(inner.take());
        }
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, property) in properties.into_iter().flatten() {
        *property = of(property.take());
    }
    Value::Object(ordered(schema))
}

/// Removes `null`, which `schemars` adds to optional fields as a type or as an alternative.
fn without_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(types)) = schema.get("type") {
        let only = types.iter().find(|one| *one != "null").cloned();
        schema.insert("type".to_owned(), only.unwrap_or_default());
    }
    let Some(Value::Array(alternatives)) = schema.shift_remove("anyOf") else {
        return schema;
    };
    let mut alternatives = alternatives.into_iter();
    let only = alternatives.find(|one| one["type"] != "null");
    let Some(Value::Object(mut only)) = only else {
        return schema;
    };
    // The description of the field overwrites that of its type.
    only.extend(schema);
    only
}

/// Joins the lines of a description; comments are wrapped.
fn one_line(schema: &mut Map<String, Value>) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

/// Converts an enum with documented variants, which `schemars` renders as `oneOf`, to `enum`.
fn enum_from_one_of(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(variants)) = schema.shift_remove("oneOf") {
        let values: Vec<_> = variants.iter().map(|one| one["const"].clone()).collect();
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), Value::Array(values));
    }
}

/// Sets what follows from the type: the format of numbers, the bound of short strings, the kind
/// of a list.
fn types(schema: &mut Map<String, Value>) {
    let format = schema.get("format").and_then(Value::as_str);
    if format == Some("uint8") {
        schema.insert("format".to_owned(), json!("int32"));
    } else if format == Some("date-time") || schema.contains_key("enum") {
        schema.insert("maxLength".to_owned(), json!(MAX_SHORT));
    }
    if schema.get("type").is_some_and(|kind| kind == "array") {
        let is_map = schema.contains_key("x-kubernetes-list-map-keys");
        let kind = if is_map { "map" } else { "atomic" };
        schema.insert("x-kubernetes-list-type".to_owned(), json!(kind));
    }
}

/// Removes a `null` default. An object's default is empty, because its fields have their own.
fn defaults(schema: &mut Map<String, Value>) {
    match schema.get_mut("default") {
        Some(Value::Null) => drop(schema.shift_remove("default")),
        Some(Value::Object(default)) => default.clear(),
        _ => {}
    }
}

fn ordered(mut schema: Map<String, Value>) -> Map<String, Value> {
    let mut ordered = Map::new();
    for keyword in ORDER {
        ordered.extend(schema.shift_remove_entry(keyword));
    }
    ordered.extend(schema);
    ordered
}
