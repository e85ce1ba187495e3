//! The smallest value that a schema probably admits.

use serde_json::{Map, Value, json};

use super::sample;

/// How deep values are generated.
const MAX_DEPTH: usize = 32;
/// How many items or entries are generated for a lower bound.
const MAX_ITEMS: u64 = 64;

/// The smallest value of a schema: only what is required. The value may violate rules, and bounds
/// that contradict each other.
pub(super) fn minimal(schema: &Value, depth: usize) -> Value {
    if let Some(default) = schema.get("default").filter(|it| !it.is_null()) {
        return default.clone();
    }
    let mut allowed = schema["enum"].as_array().into_iter().flatten();
    if let Some(first) = allowed.find(|it| !it.is_null()) {
        return first.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return bounded(schema);
    }
    match schema["type"].as_str().unwrap_or_default() {
        "object" | "" => object(schema, depth),
        "array" => array(schema, depth),
        "string" => sample::texts_of(schema)
            .into_iter()
            .next()
            .unwrap_or_default()
            .into(),
        "boolean" => false.into(),
        _ => bounded(schema),
    }
}

fn object(schema: &Value, depth: usize) -> Value {
    let mut fields = Map::new();
    if depth > MAX_DEPTH {
        return Value::Object(fields);
    }
    if schema["x-kubernetes-embedded-resource"] == true {
        fields.insert("apiVersion".to_owned(), "v1".into());
        fields.insert("kind".to_owned(), "Thing".into());
        fields.insert("metadata".to_owned(), json!({"name": "a"}));
    }
    for name in required(schema) {
        let value = match &schema["properties"][name] {
            Value::Null => minimal(&schema["additionalProperties"], depth + 1),
            field => minimal(field, depth + 1),
        };
        fields.entry(name).or_insert(value);
    }
    let each = &schema["additionalProperties"];
    let wanted = schema["minProperties"].as_u64().unwrap_or_default();
    for number in 0..wanted.min(MAX_ITEMS) {
        if (fields.len() as u64) < wanted && each.is_object() {
            fields.insert(format!("a{number}"), minimal(each, depth + 1));
        }
    }
    Value::Object(fields)
}

/// The required fields, also those of the first branch of each choice.
pub(super) fn required(schema: &Value) -> Vec<&str> {
    let branch = |name: &str| schema[name].as_array().and_then(|it| it.first());
    let all_of = schema["allOf"].as_array().into_iter().flatten();
    let branches = branch("anyOf").into_iter().chain(branch("oneOf"));
    let nodes = std::iter::once(schema).chain(branches).chain(all_of);
    let lists = nodes.filter_map(|it| it["required"].as_array());
    lists.flatten().filter_map(Value::as_str).collect()
}

fn array(schema: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return json!([]);
    }
    let wanted = schema["minItems"].as_u64().unwrap_or_default();
    items(schema, wanted.min(MAX_ITEMS), depth)
}

/// A list of different items.
pub(super) fn items(schema: &Value, count: u64, depth: usize) -> Value {
    let one = minimal(&schema["items"], depth + 1);
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    let keys: Vec<&str> = keys
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let numbered = |number: u64| {
        let mut item = one.clone();
        if number > 0 {
            distinguish(&mut item, &keys, number);
        }
        item
    };
    (0..count).map(numbered).collect()
}

/// Makes an item differ from the others.
pub(super) fn distinguish(item: &mut Value, keys: &[&str], number: u64) {
    match item {
        Value::String(text) => {
            let mut letters = String::new();
            let mut rest = number;
            while rest > 0 {
                letters.push(char::from(b'a' + (rest % 26) as u8));
                rest /= 26;
            }
            text.push_str(&letters);
        }
        Value::Number(value) => {
            let value = value.as_i64().unwrap_or_default();
            *item = value.saturating_add_unsigned(number).into();
        }
        Value::Object(fields) => {
            for key in keys {
                if let Some(field) = fields.get_mut(*key) {
                    distinguish(field, &[], number);
                }
            }
        }
        _ => {}
    }
}

/// The number nearest to zero within the bounds.
fn bounded(schema: &Value) -> Value {
    let step = schema["multipleOf"].as_f64().filter(|it| *it > 0.0);
    let (least, most) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
    let step_or_one = step.unwrap_or(1.0);
    let mut number = 0.0;
    if let Some(least) = least.filter(|it| *it >= 0.0) {
        number = (least / step_or_one).ceil() * step_or_one;
        if schema["exclusiveMinimum"] == true && number <= least {
            number += step_or_one;
        }
    } else if let Some(most) = most.filter(|it| *it <= 0.0) {
        number = (most / step_or_one).floor() * step_or_one;
        if schema["exclusiveMaximum"] == true && number >= most {
            number -= step_or_one;
        }
    }
    sample::number(number)
}
