//! The policies in which two sides differ.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::expression::Mentions;
use super::side::{Side, name};

/// A policy in which the sides differ, or one that they share.
pub(super) struct ComparedPolicy {
    name: String,
    /// In what the sides differ. Empty if they do not.
    changed: Vec<String>,
    /// The resource rules of both sides.
    rules: Vec<Value>,
    /// What the different expressions mention, and what all do.
    mentions: [Mentions; 2],
}

/// The policies of both sides.
pub(super) fn compare(old: &Side, new: &Side) -> Vec<ComparedPolicy> {
    let names = old.policies().chain(new.policies()).map(name);
    let names: BTreeSet<String> = names.collect();
    names
        .into_iter()
        .map(|it| compared(it, [old, new]))
        .collect()
}

fn compared(policy: String, sides: [&Side; 2]) -> ComparedPolicy {
    let found = sides.map(|side| side.policies().find(|it| name(it) == policy));
    let bindings = sides.map(|side| {
        let specs = side.bindings_of(&policy).map(|it| it["spec"].clone());
        specs.collect::<Vec<Value>>()
    });
    let expressions = found.map(|it| it.map(expressions).unwrap_or_default());
    let selectors = found.map(|it| it.map(selectors).unwrap_or_default());
    let [old, new] = &expressions;
    let differing: Vec<&String> = old.symmetric_difference(new).collect();
    let all = Mentions::of(old.union(new).map(String::as_str));
    let mut changed = Vec::new();
    match found {
        [Some(old), Some(new)] => {
            for part in ["matchConstraints", "failurePolicy", "paramKind"] {
                if old["spec"][part] != new["spec"][part] {
                    changed.push(format!("policy {policy} ({part})"));
                }
            }
            for part in ["matchConditions", "validations", "variables"] {
                if deciding(old, part) != deciding(new, part) {
                    changed.push(format!("policy {policy} ({part})"));
                }
            }
        }
        [Some(_), _] => changed.push(format!("policy {policy} (removed)")),
        _ => changed.push(format!("policy {policy} (added)")),
    }
    if bindings[0] != bindings[1] {
        changed.push(format!("policy {policy} (bindings)"));
    }
    // What uses a variable does not say so in its own text, and a condition decides about all
    // validations.
    let shared = found.map(|it| {
        it.map(|it| (deciding(it, "variables"), deciding(it, "matchConditions")))
    });
    let mut different = if differing.is_empty() || shared[0] != shared[1] {
        all.clone()
    } else {
        Mentions::of(differing.into_iter().map(String::as_str))
    };
    let [old, new] = &selectors;
    for word in old.symmetric_difference(new) {
        different.names.insert(word.clone());
        different.texts.insert(word.clone());
    }
    let rules = found.into_iter().flatten().flat_map(|it| {
        let rules = it["spec"]["matchConstraints"]["resourceRules"].as_array();
        rules.cloned().unwrap_or_default()
    });
    ComparedPolicy {
        name: policy,
        changed,
        rules: rules.collect(),
        mentions: [different, all],
    }
}

/// A part of a policy without texts for people.
fn deciding(policy: &Value, part: &str) -> Vec<Value> {
    let entries = policy["spec"][part].as_array();
    let entries = entries.into_iter().flatten();
    let entry = |it: &Value| {
        let name = (part == "variables").then(|| it["name"].clone());
        json!([it["expression"], name])
    };
    entries.map(entry).collect()
}

fn expressions(policy: &Value) -> BTreeSet<String> {
    let parts = ["matchConditions", "variables", "validations"];
    let entries = parts.iter().filter_map(|it| policy["spec"][it].as_array());
    let texts = entries.flatten().filter_map(|it| it["expression"].as_str());
    texts.map(str::to_owned).collect()
}

/// The keys and values of the selectors of objects.
fn selectors(policy: &Value) -> BTreeSet<String> {
    let selector = &policy["spec"]["matchConstraints"]["objectSelector"];
    let mut words = BTreeSet::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        words.insert(key.clone());
        words.extend(value.as_str().map(str::to_owned));
    }
    for entry in selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
    {
        words.extend(entry["key"].as_str().map(str::to_owned));
        let values = entry["values"].as_array().into_iter().flatten();
        words.extend(values.filter_map(Value::as_str).map(str::to_owned));
    }
    words
}

impl ComparedPolicy {
    /// Whether the sides differ in it.
    pub(super) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// In what the sides differ.
    pub(super) fn changed(&self) -> &[String] {
        &self.changed
    }

    /// What the different expressions mention, and what all do.
    pub(super) fn mentions(&self) -> &[Mentions; 2] {
        &self.mentions
    }

    /// Whether a side's policy may match objects of this resource, in any version.
    pub(super) fn matches(&self, group: &str, plural: &str) -> bool {
        let has = |rule: &Value, list: &str, wanted: &str| {
            let all = rule[list].as_array().into_iter().flatten();
            let mut all = all.filter_map(Value::as_str);
            all.any(|it| it == wanted || it == "*" || it == "*/*")
        };
        let mut rules = self.rules.iter();
        rules.any(|it| has(it, "apiGroups", group) && has(it, "resources", plural))
    }

    /// The operations, other than creates and updates, that are matched.
    pub(super) fn other_operations(&self) -> BTreeSet<&str> {
        let lists = self
            .rules
            .iter()
            .filter_map(|it| it["operations"].as_array());
        let all = lists.flatten().filter_map(Value::as_str);
        all.filter(|it| ["DELETE", "CONNECT", "*"].contains(it))
            .collect()
    }
}
