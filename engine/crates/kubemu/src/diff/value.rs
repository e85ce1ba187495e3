//! The values that are tried at one place: those at the bounds of what the two schemas and the rules
//! about it distinguish.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::expression::Mentions;
use super::minimal::{distinguish, items, minimal, required};
use super::sample;

/// How many values are tried at one place.
const MAX_VALUES: usize = 160;
/// The most items or entries that are generated.
const MAX_ITEMS: u64 = 10_000;

/// The values, without duplicates.
#[derive(Default)]
struct Pool(Vec<Value>);

impl Pool {
    fn add(&mut self, value: impl Into<Value>) {
        let value = value.into();
        if self.0.len() < MAX_VALUES && !self.0.contains(&value) {
            self.0.push(value);
        }
    }
}

/// The values to try at a place with these schemas, about which rules have these `mentions`.
pub(super) fn values(schemas: &[&Value], mentions: &Mentions) -> Vec<Value> {
    let mut pool = Pool::default();
    let nodes = with_branches(schemas);
    for schema in schemas {
        pool.add(minimal(schema, 0));
    }
    of_mentions(&nodes, mentions, &mut pool);
    for node in &nodes {
        of_node(node, &nodes, &mut pool);
    }
    let are_typed = schemas.iter().all(|it| it["type"] == schemas[0]["type"]);
    let is_changed = |name: &str| {
        schemas
            .iter()
            .any(|it| it.get(name) != schemas[0].get(name))
    };
    if is_changed("format") {
        for text in sample::of_any_format() {
            pool.add(text);
        }
    }
    if !are_typed || is_changed("x-kubernetes-int-or-string") || is_changed("nullable") {
        for value in [
            json!(1),
            json!("1"),
            json!(1.5),
            json!(true),
            json!([]),
            json!({}),
            Value::Null,
        ] {
            pool.add(value);
        }
    }
    pool.0
}

/// The schemas, and the branches of their choices, which constrain the same value.
fn with_branches<'a>(schemas: &[&'a Value]) -> Vec<&'a Value> {
    let mut all: Vec<&Value> = schemas.to_vec();
    let mut at = 0;
    while let Some(node) = all.get(at).copied() {
        at += 1;
        let lists = ["allOf", "anyOf", "oneOf"].map(|name| node[name].as_array());
        let branches = lists.into_iter().flatten().flatten();
        let not = node.get("not");
        if all.len() < MAX_VALUES {
            all.extend(branches.chain(not));
        }
    }
    all
}

fn of_node(node: &Value, nodes: &[&Value], pool: &mut Pool) {
    for value in node["enum"].as_array().into_iter().flatten() {
        pool.add(value.clone());
        if let Value::String(text) = value {
            pool.add(format!("{text}x"));
        }
    }
    let types = |name: &str| nodes.iter().any(|it| it["type"] == name);
    if types("string") || node["x-kubernetes-int-or-string"] == true {
        texts(node, nodes, pool);
    }
    if types("boolean") {
        pool.add(true);
        pool.add(false);
    }
    if types("integer") || types("number") || node["x-kubernetes-int-or-string"] == true {
        numbers(node, types("number"), pool);
    }
    if types("array") && node["items"].is_object() {
        lists(node, pool);
    }
    if types("object") || node["type"].is_null() && node["properties"].is_object() {
        objects(node, nodes, pool);
    }
    if node["x-kubernetes-preserve-unknown-fields"] == true && node["type"].is_null() {
        for value in [json!({"a": 1}), json!(1), json!("a"), json!([])] {
            pool.add(value);
        }
    }
}

fn texts(node: &Value, nodes: &[&Value], pool: &mut Pool) {
    for text in sample::texts_of(node) {
        pool.add(text);
    }
    for bound in ["minLength", "maxLength"] {
        let Some(length) = sample::length(node, bound) else {
            continue;
        };
        let lengths = [Some(length), length.checked_add(1), length.checked_sub(1)];
        for length in lengths.into_iter().flatten() {
            let patterns = nodes.iter().filter_map(|it| it["pattern"].as_str());
            for pattern in patterns.map(Some).chain([None]) {
                if let Some(text) = sample::of_length(pattern, length) {
                    pool.add(text);
                }
            }
            // Lengths are counted in characters.
            if length < 1000 {
                pool.add("é".repeat(length));
            }
        }
    }
}

fn numbers(node: &Value, with_fractions: bool, pool: &mut Pool) {
    for number in [0, 1, -1, 2, 10] {
        pool.add(number);
    }
    if with_fractions {
        pool.add(0.5);
    }
    let step = node["multipleOf"].as_f64();
    if let Some(step) = step {
        for times in [1.0, 2.0, 3.0, 5.0, 7.0] {
            pool.add(sample::number(step * times));
        }
        pool.add(sample::number(step + 1.0));
    }
    let bounds = ["minimum", "maximum"].map(|name| node[name].as_f64());
    for bound in bounds.into_iter().flatten() {
        let step = step.unwrap_or(1.0);
        for number in [bound, bound + step, bound - step] {
            pool.add(sample::number(number));
        }
        if with_fractions {
            pool.add(sample::number(bound + 0.5));
            pool.add(sample::number(bound - 0.5));
        }
    }
    let beyond = match node["format"].as_str() {
        Some("int32" | "int64" | "float" | "double") => [
            json!(i64::from(i32::MAX) + 1),
            json!(i64::from(i32::MIN) - 1),
            json!(1e39),
            json!(1e19),
        ],
        _ => return,
    };
    for value in beyond {
        pool.add(value);
    }
}

fn lists(node: &Value, pool: &mut Pool) {
    for count in counts(node, "Items") {
        pool.add(items(node, count, 0));
    }
    let one = minimal(&node["items"], 0);
    pool.add(json!([one]));
    pool.add(json!([one, one]));
    // The same keys, and another value.
    let keys = node["x-kubernetes-list-map-keys"].as_array();
    let is_key = |name: &str| keys.is_some_and(|it| it.iter().any(|key| key == name));
    if let Some(fields) = node["items"]["properties"].as_object() {
        for (name, field) in fields.iter().filter(|it| !is_key(it.0)).take(4) {
            let mut other = one.clone();
            let mut value = minimal(field, 0);
            distinguish(&mut value, &[], 1);
            other[name.as_str()] = value;
            pool.add(json!([one, other]));
        }
    }
    pool.add(items(node, 2, 0));
    pool.add(json!([Value::Null]));
}

fn objects(node: &Value, nodes: &[&Value], pool: &mut Pool) {
    // A branch of a choice has names, and the node itself has their schemas.
    let whole = minimal(nodes.first().copied().unwrap_or(node), 0);
    let schema_of = |name: &str| {
        let mut schemas = nodes.iter().map(|it| &it["properties"][name]);
        schemas
            .find(|it| it.get("type").is_some())
            .unwrap_or(&Value::Null)
    };
    let mut with_all = whole.clone();
    for name in required(node) {
        with_all[name] = minimal(schema_of(name), 0);
        let mut without = whole.clone();
        if let Value::Object(fields) = &mut without {
            fields.shift_remove(name);
        }
        pool.add(without);
    }
    pool.add(with_all);
    let fields = node["properties"].as_object();
    for (name, field) in fields.into_iter().flatten().take(60) {
        let mut with = whole.clone();
        with[name.as_str()] = minimal(field, 0);
        pool.add(with);
    }
    let each = &node["additionalProperties"];
    let value = |number: u64| match each {
        Value::Object(_) => minimal(each, 0),
        _ => number.into(),
    };
    let mut with_unknown = whole.clone();
    with_unknown["unknown"] = value(1);
    pool.add(with_unknown);
    for count in counts(node, "Properties") {
        let mut all = Map::new();
        match fields {
            Some(fields) => all.extend(
                fields
                    .iter()
                    .take(usize::try_from(count).unwrap_or(usize::MAX))
                    .map(|(name, field)| (name.clone(), minimal(field, 0))),
            ),
            None => all.extend((0..count).map(|it| (format!("a{it}"), value(it)))),
        }
        pool.add(Value::Object(all));
    }
    if node["x-kubernetes-embedded-resource"] == true {
        let namespaced = json!({"name": "a", "namespace": "Not_a_name"});
        for metadata in [json!({}), json!({"name": "Not_a_name"}), namespaced] {
            let mut other = whole.clone();
            other["metadata"] = metadata;
            pool.add(other);
        }
    }
    pool.add(json!({}));
}

/// The numbers of items or entries at the bounds.
fn counts(node: &Value, of: &str) -> Vec<u64> {
    let bound = |side: &str| node[format!("{side}{of}")].as_u64();
    let bounds = [bound("min"), bound("max")].into_iter().flatten();
    let near = |it: u64| [Some(it), it.checked_add(1), it.checked_sub(1)];
    let near = bounds.flat_map(near).flatten();
    near.filter(|it| *it <= MAX_ITEMS).collect()
}

/// Values near the literals of rules, of the types that the place has.
fn of_mentions(nodes: &[&Value], mentions: &Mentions, pool: &mut Pool) {
    if mentions.is_empty() {
        return;
    }
    let types = |name: &str| {
        let is =
            |it: &&&Value| it["type"] == name || it["x-kubernetes-int-or-string"] == true;
        nodes.iter().any(|it| is(&it))
    };
    let near = mentions
        .whole
        .iter()
        .flat_map(|it| [*it, it.saturating_add(1), it.saturating_sub(1)]);
    let near: Vec<i64> = near.collect();
    if types("integer") || types("number") {
        for number in &near {
            pool.add(*number);
        }
    }
    if types("number") {
        for fraction in mentions.fractions() {
            for number in [fraction, fraction + 0.5, fraction - 0.5] {
                pool.add(sample::number(number));
            }
        }
    }
    let counts = near.iter().filter_map(|it| u64::try_from(*it).ok());
    let counts: Vec<u64> = counts.filter(|it| *it <= MAX_ITEMS).collect();
    if types("array")
        && let Some(node) = nodes.iter().find(|it| it["items"].is_object())
    {
        for count in counts.iter().take(24) {
            pool.add(items(node, *count, 0));
        }
        if nodes.iter().any(|it| it["items"]["type"] == "string") {
            for text in mentions.texts.iter().take(24) {
                pool.add(json!([text]));
            }
        }
    }
    if !types("string") {
        return;
    }
    texts_of_mentions(nodes, mentions, pool);
    for count in counts
        .iter()
        .filter_map(|it| usize::try_from(*it).ok())
        .take(24)
    {
        let patterns = nodes.iter().filter_map(|it| it["pattern"].as_str());
        for pattern in patterns.map(Some).chain([None]) {
            if let Some(text) = sample::of_length(pattern, count) {
                pool.add(text);
            }
        }
    }
}

/// Texts of the forms that rules often require in a way that no single pattern shows.
const COMMON_TEXTS: [&str; 9] = [
    "",
    "A",
    "1h",
    "0 0 * * *",
    "2026-01-31",
    "2026-01-31T00:00:00Z",
    "UTC",
    "v1.0.0",
    "1Gi",
];

/// Texts that begin with a literal and end like a pattern, which several rules about one value may
/// require.
fn joined(texts: &BTreeSet<String>) -> Vec<String> {
    let (patterns, literals): (Vec<&String>, Vec<&String>) =
        texts.iter().partition(|it| is_pattern(it));
    let mut all = Vec::new();
    for literal in literals.iter().filter(|it| it.len() > 1).take(6) {
        for sample in patterns
            .iter()
            .flat_map(|it| sample::of_pattern(it))
            .take(12)
        {
            let same = sample.chars().next().filter(|it| literal.ends_with(*it));
            let rest = sample.get(same.map_or(0, char::len_utf8)..);
            all.push(format!("{literal}{}", rest.unwrap_or_default()));
        }
    }
    all
}

fn is_pattern(text: &str) -> bool {
    text.contains(['^', '$', '[', '(', '*', '+'])
}

fn texts_of_mentions(nodes: &[&Value], mentions: &Mentions, pool: &mut Pool) {
    let lengths = nodes
        .iter()
        .filter_map(|it| sample::length(it, "maxLength"));
    let lengths: Vec<usize> = lengths.filter(|it| *it < 1000).collect();
    for text in joined(&mentions.texts) {
        pool.add(text);
    }
    for text in COMMON_TEXTS {
        pool.add(text);
    }
    for text in &mentions.texts {
        if is_pattern(text) {
            for sample in sample::of_pattern(text).into_iter().take(8) {
                pool.add(sample);
            }
            for length in &lengths {
                if let Some(text) = sample::of_length(Some(text), *length) {
                    pool.add(text);
                }
            }
        } else {
            pool.add(text.as_str());
            for other in sample::with_other_numbers(text) {
                pool.add(other);
            }
            pool.add(format!("{text}a"));
            pool.add(format!("a{text}"));
            pool.add(format!("a{text}a"));
        }
    }
}
