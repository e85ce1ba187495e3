//! The constraints in which two schemas differ.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::expression::Mentions;
use super::place::{Place, Step, child};

/// What never decides about an object.
const WORDS: [&str; 4] = ["description", "title", "example", "externalDocs"];
/// What is compared on its own.
const NESTED: [&str; 4] = [
    "properties",
    "items",
    "additionalProperties",
    "x-kubernetes-validations",
];
/// Lists whose order has no meaning.
const SETS: [&str; 3] = ["enum", "required", "x-kubernetes-list-map-keys"];

/// The differences at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) place: Place,
    /// The keywords that differ, `added` or `removed`.
    pub(super) keywords: Vec<String>,
}

/// All differences between two schemas, outermost first.
pub(super) fn compare(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    walk(&Place::default(), (old, new), &mut changes);
    changes
}

fn walk(place: &Place, (old, new): (&Value, &Value), changes: &mut Vec<Change>) {
    let keywords = keywords(old, new);
    if !keywords.is_empty() {
        changes.push(Change {
            place: place.clone(),
            keywords,
        });
    }
    let fields = |it: &'_ Value| match it.get("properties") {
        Some(Value::Object(fields)) => fields.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let mut steps: Vec<Step> = fields(old).into_iter().map(Step::Field).collect();
    let new_only = fields(new).into_iter().map(Step::Field);
    steps.extend(new_only.filter(|it| child(old, it).is_none()));
    steps.extend([Step::Item, Step::Entry]);
    for step in steps {
        let at = place.then(step.clone());
        match (child(old, &step), child(new, &step)) {
            (Some(old), Some(new)) => walk(&at, (old, new), changes),
            (None, Some(_)) => changes.push(Change::whole(at, "added")),
            (Some(_), None) => changes.push(Change::whole(at, "removed")),
            (None, None) => {}
        }
    }
}

impl Change {
    fn whole(place: Place, word: &str) -> Self {
        Self {
            place,
            keywords: vec![word.to_owned()],
        }
    }
}

/// The keywords of two nodes that differ, without those of the nodes below.
fn keywords(old: &Value, new: &Value) -> Vec<String> {
    let (old_node, new_node) = (normal(old), normal(new));
    let names: BTreeSet<&String> = old_node.keys().chain(new_node.keys()).collect();
    let differs = |name: &&&String| old_node.get(**name) != new_node.get(**name);
    let mut all: Vec<String> = names
        .iter()
        .filter(differs)
        .map(|name| (*name).clone())
        .collect();
    let flag = |it: &Value| match it.get("additionalProperties") {
        Some(Value::Bool(flag)) => Some(*flag),
        _ => None,
    };
    if flag(old) != flag(new) {
        all.push("additionalProperties".to_owned());
    }
    if rules(old) != rules(new) {
        all.push("x-kubernetes-validations".to_owned());
    }
    all
}

/// The keywords of a node that decide. A flag that is not set and an empty list are absent.
fn normal(node: &Value) -> Map<String, Value> {
    let mut kept = Map::new();
    let fields = node.as_object().into_iter().flatten();
    for (name, value) in fields {
        let name = name.as_str();
        let is_absent = value.is_null() || *value == false && name != "default";
        let is_empty = value.as_array().is_some_and(Vec::is_empty) && name != "default";
        if WORDS.contains(&name) || NESTED.contains(&name) || is_absent || is_empty {
            continue;
        }
        let value = match name {
            _ if SETS.contains(&name) => sorted(value),
            "allOf" | "anyOf" | "oneOf" | "not" => without_words(value),
            _ => value.clone(),
        };
        kept.insert(name.to_owned(), value);
    }
    kept
}

fn sorted(list: &Value) -> Value {
    let mut items: Vec<Value> = list.as_array().cloned().unwrap_or_default();
    items.sort_by_key(ToString::to_string);
    items.into()
}

/// A branch of a choice without what never decides. Its fields are in the order of their names.
fn without_words(branch: &Value) -> Value {
    match branch {
        Value::Array(items) => items.iter().map(without_words).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|it| !WORDS.contains(&it.0.as_str()));
            let mut kept: Vec<(String, Value)> = kept
                .map(|(name, value)| (name.clone(), without_words(value)))
                .collect();
            kept.sort_by(|one, other| one.0.cmp(&other.0));
            kept.into_iter().collect()
        }
        other => other.clone(),
    }
}

/// The rules of a node, without their messages, and whether they see absent old values.
fn rules(node: &Value) -> BTreeSet<(String, bool)> {
    let rules = node["x-kubernetes-validations"].as_array();
    let rules = rules.into_iter().flatten();
    let rule = |it: &Value| {
        let text = it["rule"].as_str().unwrap_or_default();
        (text.to_owned(), it["optionalOldSelf"] == true)
    };
    rules.map(rule).collect()
}

/// What the rules of a node mention; with `others`, only the rules that it has not.
pub(super) fn mentions(node: &Value, others: Option<&Value>) -> Mentions {
    let others = others.map(rules).unwrap_or_default();
    let own = rules(node);
    let changed = own.difference(&others);
    Mentions::of(changed.map(|(rule, _)| rule.as_str()))
}
