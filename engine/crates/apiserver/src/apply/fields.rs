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

/// The set of a `fieldsV1` object.
pub(super) fn decode_map(fields: &Map<String, Value>) -> Option<FieldSet> {
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

/// Whether a value is what [`encode`] makes of a set, so that it stays the same if it is decoded
/// and encoded.
pub(super) fn is_encoded(value: &Value) -> bool {
    let fields = value.as_object();
    fields.is_some_and(|it| !it.contains_key(".") && are_encoded(it))
}

/// Whether the `fieldsV1` below a path are encoded so: sorted, after the mark of the path itself.
fn are_encoded(fields: &Map<String, Value>) -> bool {
    let mut last_field = None;
    let mut last = None;
    fields.iter().enumerate().all(|(at, (key, below))| {
        let Some(below) = below.as_object() else {
            return false;
        };
        if key == "." {
            return at == 0 && below.is_empty() && fields.len() > 1;
        }
        let is_next = if let Some(name) = key.strip_prefix("f:") {
            last.is_none() && last_field.replace(name).is_none_or(|it| it < name)
        } else if let Some(element) = Element::decode(key) {
            let is_same = element.has_one_text() && element.encode() == *key;
            is_same && last.as_ref().is_none_or(|it| *it < element) && {
                last = Some(element);
                true
            }
        } else {
            false
        };
        is_next && are_encoded(below)
    })
}

/// Whether one of the paths of `set` may be in a `fieldsV1` object that [`is_encoded`]: it is not
/// searched for those that may have another text there.
pub(super) fn may_have_any(fields: &Map<String, Value>, set: &FieldSet) -> bool {
    let may_have = |it: &Element| !it.has_one_text() || has(fields, it);
    set.members().iter().any(may_have)
        || set.children().iter().any(|(element, paths)| {
            !element.has_one_text()
                || below(fields, element).is_some_and(|it| may_have_any(it, paths))
        })
}

/// Whether all paths of `set` are in a `fieldsV1` object that [`is_encoded`], with the same texts.
pub(super) fn has_all(fields: &Map<String, Value>, set: &FieldSet) -> bool {
    set.members().iter().all(|it| has(fields, it))
        && set.children().iter().all(|(element, paths)| {
            below(fields, element).is_some_and(|it| has_all(it, paths))
        })
}

/// Whether a path of fields is in a `fieldsV1` object.
pub(super) fn has_path(fields: &Map<String, Value>, path: &[Element]) -> bool {
    match path {
        [] => false,
        [last] => has(fields, last),
        [first, rest @ ..] => below(fields, first).is_some_and(|it| has_path(it, rest)),
    }
}

fn has(fields: &Map<String, Value>, element: &Element) -> bool {
    below(fields, element).is_some_and(|it| it.is_empty() || it.contains_key("."))
}

/// What a `fieldsV1` object has under `element`, by its text.
fn below<'v>(
    fields: &'v Map<String, Value>,
    element: &Element,
) -> Option<&'v Map<String, Value>> {
    fields.get(&element.encode())?.as_object()
}
