//! The kinds about which two sides may differ.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::change;
use super::compared::Compared;
use super::expression::Mentions;
use super::place::Place;
use super::policy::{self, ComparedPolicy};
use super::side::Side;

/// How many labels that policies mention are tried.
const MAX_LABELS: usize = 20;

/// Each version of each kind in which the sides differ, and what differs and is not searched.
pub(super) fn compare(old: &Side, new: &Side) -> (Vec<Compared>, Vec<String>) {
    let policies = policy::compare(old, new);
    let mut all = Vec::new();
    let mut matched = BTreeSet::new();
    for (group, kind) in kinds(old, new) {
        let definitions = [old, new].map(|it| it.definition(&group, &kind));
        let mut plurals = definitions
            .iter()
            .flatten()
            .map(|it| &it["spec"]["names"]["plural"]);
        let plural = plurals.find_map(Value::as_str).unwrap_or_default();
        let is_of = |it: &&ComparedPolicy| it.matches(&group, plural);
        let of_kind: Vec<&ComparedPolicy> = policies.iter().filter(is_of).collect();
        matched.extend(of_kind.iter().map(|it| it.name().to_owned()));
        for version in versions(&definitions) {
            let api_version = format!("{group}/{version}");
            let found = definitions.map(|it| it.and_then(|it| served(it, &version)));
            if let [None, None] = found {
                continue;
            }
            all.extend(compared(
                (&api_version, &kind),
                (definitions, found),
                &of_kind,
            ));
        }
    }
    let unmatched = policies
        .iter()
        .filter(|it| it.is_changed() && !matched.contains(it.name()));
    let unmatched = unmatched.flat_map(|it| {
        let why = "it matches no kind of the given CRDs";
        it.changed()
            .iter()
            .map(move |what| format!("{what}: {why}"))
    });
    (all, unmatched.collect())
}

/// The group and kind of each definition.
fn kinds(old: &Side, new: &Side) -> BTreeSet<(String, String)> {
    let sides = [old, new];
    let definitions = sides.iter().flat_map(|it| &it.cast.definitions);
    let kind = |it: &Value| {
        let group = it["spec"]["group"].as_str()?;
        let kind = it["spec"]["names"]["kind"].as_str()?;
        Some((group.to_owned(), kind.to_owned()))
    };
    definitions.filter_map(|it| kind(&it.object)).collect()
}

fn versions(definitions: &[Option<&Value>; 2]) -> BTreeSet<String> {
    let lists = definitions.iter().flatten();
    let lists = lists.filter_map(|it| it["spec"]["versions"].as_array());
    let names = lists.flatten().filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

/// A version of a definition, if it is served.
fn served<'a>(definition: &'a Value, name: &str) -> Option<&'a Value> {
    let mut versions = definition["spec"]["versions"].as_array()?.iter();
    versions.find(|it| it["name"] == name && it["served"] == true)
}

type Sides<'a> = [Option<&'a Value>; 2];

/// A version of a kind, if the sides differ about it.
fn compared(
    (api_version, kind): (&str, &str),
    (definitions, versions): (Sides<'_>, Sides<'_>),
    policies: &[&ComparedPolicy],
) -> Option<Compared> {
    let schema = |it: &Value| it["schema"]["openAPIV3Schema"].clone();
    let mut schemas = versions.map(|it| it.map(schema));
    let changes = match &schemas {
        [Some(old), Some(new)] => change::compare(old, new).len(),
        _ => 1,
    };
    let others = other_differences(definitions, versions);
    let changed: Vec<&&ComparedPolicy> =
        policies.iter().filter(|it| it.is_changed()).collect();
    if changes == 0 && others.is_empty() && changed.is_empty() {
        return None;
    }
    let mut mentions = [Mentions::default(), Mentions::default()];
    for policy in &changed {
        mentions[0].extend(&policy.mentions()[0]);
    }
    for policy in policies {
        mentions[1].extend(&policy.mentions()[1]);
    }
    if !policies.is_empty() {
        for schema in schemas.iter_mut().flatten() {
            add_labels(schema, &mentions[1], &mentions[0]);
        }
    }
    let mut compared = Compared::new((api_version, kind), schemas, mentions);
    for words in others {
        if words == "subresources.status" {
            compared.focus.push(Place::default().field("status"));
        }
        compared.differs_in(words);
    }
    for policy in changed {
        compared.changed.extend(policy.changed().iter().cloned());
        // A policy may match only updates.
        compared.has_transitions = true;
        for operation in policy.other_operations() {
            let words = format!("policy {}: operation {operation}", policy.name());
            compared.not_covered.push(words);
        }
    }
    let has_status = |it: &Value| it.pointer("/subresources/status").is_some();
    if versions.iter().flatten().all(|it| has_status(it)) {
        compared.leave_out_status();
    }
    Some(compared)
}

/// In what the sides differ outside of the schema.
fn other_differences(definitions: Sides<'_>, versions: Sides<'_>) -> Vec<String> {
    let mut others = Vec::new();
    let differ = |of: Sides<'_>, pointer: &str| match of {
        [Some(old), Some(new)] => {
            old.pointer(pointer).is_some() != new.pointer(pointer).is_some()
        }
        _ => false,
    };
    if let [Some(old), Some(new)] = definitions
        && old["spec"]["scope"] != new["spec"]["scope"]
    {
        others.push("scope".to_owned());
    }
    for name in ["status", "scale"] {
        if differ(versions, &format!("/subresources/{name}")) {
            others.push(format!("subresources.{name}"));
        }
    }
    others
}

/// Adds the metadata that policies may read, with the labels and annotations that they mention.
fn add_labels(schema: &mut Value, all: &Mentions, changed: &Mentions) {
    let texts = changed.texts.iter().chain(&all.texts);
    let is_key = |it: &&String| {
        let allowed = |it: char| it.is_ascii_alphanumeric() || "-_./".contains(it);
        !it.is_empty() && it.len() <= 63 && it.chars().all(allowed)
    };
    let keys = texts.filter(is_key).take(MAX_LABELS);
    let keys: serde_json::Map<String, Value> = keys
        .map(|it| (it.clone(), json!({"type": "string"})))
        .collect();
    let map = json!({"type": "object", "properties": keys});
    let Value::Object(fields) = schema else {
        return;
    };
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    if !properties["metadata"].is_object() {
        properties["metadata"] = json!({"type": "object"});
    }
    let metadata = &mut properties["metadata"]["properties"];
    for name in ["labels", "annotations"] {
        metadata[name] = map.clone();
    }
    if metadata["name"].is_null() {
        metadata["name"] = json!({"type": "string"});
    }
}
