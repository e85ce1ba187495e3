//! Field sets as `fieldsV1`.

use serde_json::{Map, Value};

use super::element::Element;
use super::set::FieldSet;

/// A field set as a `fieldsV1` object.
pub(super) fn encode(set: &FieldSet) -> Value {
    Value::Object(contents(set, false))
}

/// The `fieldsV1` below a path; `is_member` is whether the path itself is in the set.
fn contents(set: &FieldSet, is_member: bool) -> Map<String, Value> {
    let mut elements: Vec<_> = set.members().iter().collect();
    elements.extend(set.children().keys().filter(|it| !set.has(it)));
    elements.sort();
    let mut all = Map::with_capacity(elements.len() + usize::from(is_member));
    if is_member {
        all.insert(".".to_owned(), Value::Object(Map::new()));
    }
    for element in elements {
        let child = set.below(element);
        let below = child.map(|it| contents(it, set.has(element)));
        all.insert(element.encode(), Value::Object(below.unwrap_or_default()));
    }
    all
}

/// Parses a `fieldsV1` object; path elements of unknown types are left out. `None` if the
/// value is not a `fieldsV1` object.
pub(super) fn decode(fields: &Value) -> Option<FieldSet> {
    decode_map(fields.as_object()?)
}

fn decode_map(fields: &Map<String, Value>) -> Option<FieldSet> {
    let mut set = FieldSet::default();
    for (key, below) in fields {
        if key == "." {
            continue;
        }
        let Some(element) = Element::decode(key) else {
            continue;
        };
        let below = below.as_object()?;
        if below.is_empty() || below.contains_key(".") {
            set.insert(element.clone());
        }
        set.insert_below(element, decode_map(below)?);
    }
    Some(set)
}
