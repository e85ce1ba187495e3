//! Merging a configuration into a live object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::Element;
use super::walk::{Division, division, element};
use crate::openapi::schema::ListType;
use crate::openapi::shape::Shape;

/// `live` with all fields of `config` set to its values; both are objects of `shape`.
pub(super) fn merge(live: &Value, config: &Value, shape: Shape<'_>) -> Value {
    match (live, config, division(live, shape), division(config, shape)) {
        (
            Value::Object(live),
            Value::Object(config),
            Division::Fields,
            Division::Fields,
        ) => Value::Object(merge_fields(live, config, shape)),
        (
            Value::Array(live),
            Value::Array(config),
            Division::Entries(list),
            Division::Entries(_),
        ) => Value::Array(merge_entries(live, config, list, shape.items())),
        // Null changes nothing in a list or object that is merged.
        (live, Value::Null, Division::Fields | Division::Entries(_), _) => live.clone(),
        (_, config, _, _) => config.clone(),
    }
}

fn merge_fields(
    live: &Map<String, Value>,
    config: &Map<String, Value>,
    shape: Shape<'_>,
) -> Map<String, Value> {
    let mut merged = Map::new();
    for (key, value) in live {
        let value = match config.get(key) {
            Some(requested) => merge(value, requested, shape.field(key)),
            None => value.clone(),
        };
        merged.insert(key.clone(), value);
    }
    for (key, value) in config {
        if !live.contains_key(key) {
            merged.insert(key.clone(), value.clone());
        }
    }
    merged
}

/// Merges two lists. Entries of the configuration keep its order; live entries that are not in
/// the configuration keep their position relative to those that are.
fn merge_entries(
    live: &[Value],
    config: &[Value],
    list: &ListType,
    items: Shape<'_>,
) -> Vec<Value> {
    let live = Entries::of(live, list, items);
    let config = Entries::of(config, list, items);
    let mut shared = config
        .entries
        .iter()
        .map(|it| &it.0)
        .filter(|it| live.find(it).is_some());
    let mut next_shared = shared.next();
    let mut merged: Vec<Value> = Vec::new();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut left = live.entries.iter().peekable();
    let mut right = config.entries.iter().peekable();
    loop {
        match (left.peek(), right.peek()) {
            (None, None) => return merged,
            (Some((a, value)), Some((b, requested))) if a == b => {
                merged.push(merge(value, requested, items));
                done.insert(b);
                left.next();
                right.next();
                next_shared = shared.next();
            }
            // This entry follows later, in the order of the configuration.
            (Some((a, _)), Some(_))
                if config.find(a).is_some() && next_shared.is_some_and(|it| it != a) =>
            {
                left.next();
            }
            (Some((a, value)), _) if config.find(a).is_none() => {
                merged.push((*value).clone());
                left.next();
            }
            (Some((a, _)), _) if done.contains(a) => {
                left.next();
            }
            (_, Some((b, requested))) => {
                merged.push(match live.find(b) {
                    Some(value) => merge(value, requested, items),
                    None => (*requested).clone(),
                });
                done.insert(b);
                right.next();
                if next_shared == Some(b) {
                    next_shared = shared.next();
                }
            }
            (Some(_), None) => {
                left.next();
            }
        }
    }
}

/// The entries of a list with their path elements.
struct Entries<'v> {
    entries: Vec<(Element, &'v Value)>,
    /// The first entry with each path element.
    values: BTreeMap<Element, &'v Value>,
}

impl<'v> Entries<'v> {
    fn of(list: &'v [Value], kind: &ListType, items: Shape<'_>) -> Self {
        let entries = list
            .iter()
            .filter_map(|it| Some((element(it, kind, items).ok()?, it)));
        let entries: Vec<(Element, &Value)> = entries.collect();
        let mut values = BTreeMap::new();
        for (element, value) in &entries {
            values.entry(element.clone()).or_insert(*value);
        }
        Self { entries, values }
    }

    fn find(&self, element: &Element) -> Option<&'v Value> {
        self.values.get(element).copied()
    }
}
