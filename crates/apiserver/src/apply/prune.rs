//! Removing what a manager applied before and no longer names.

use serde_json::{Map, Value};

use super::element::Element;
use super::record::Managers;
use super::set::FieldSet;
use super::walk::{Division, division, element, field_set};
use crate::openapi::shape::Shape;

/// `merged` without the places of `last` that no manager owns any longer.
pub(super) fn prune(
    merged: Value,
    last: &FieldSet,
    managers: &Managers,
    shape: Shape<'_>,
) -> Value {
    if last.is_empty() {
        return merged;
    }
    let named = |value: &Value| field_set(value, shape).with_named_fields(shape);
    let last = last.with_named_fields(shape);
    let owned = managers.everything().with_named_fields(shape);
    let whole = named(&merged);
    let bare = remove(&merged, &last, shape);
    // Back comes what somebody owns,
    let gone = whole.difference(&named(&bare).union(&owned));
    let kept = remove(&merged, &gone, shape);
    // and what went only because something around it did.
    let gone = whole.difference(&named(&kept)).intersection(&last);
    remove(&merged, &gone, shape)
}

/// `value` without the places of `gone`; lists and objects that become empty go too.
fn remove(value: &Value, gone: &FieldSet, shape: Shape<'_>) -> Value {
    removed(value, gone, shape).unwrap_or_else(|| Value::Object(Map::new()))
}

fn removed(value: &Value, gone: &FieldSet, shape: Shape<'_>) -> Option<Value> {
    match (value, division(value, shape)) {
        (Value::Object(fields), Division::Fields) if !fields.is_empty() => {
            let left: Map<_, _> = fields
                .iter()
                .filter_map(|(key, value)| {
                    let place = Element::field(key);
                    Some((key.clone(), one(value, &place, gone, shape.field(key))?))
                })
                .collect();
            (!left.is_empty()).then_some(Value::Object(left))
        }
        (Value::Array(entries), Division::Entries(list)) if !entries.is_empty() => {
            let left: Vec<_> = entries
                .iter()
                .filter_map(|entry| match element(entry, &list, shape.items()) {
                    Ok(place) => one(entry, &place, gone, shape.items()),
                    Err(_) => Some(entry.clone()),
                })
                .collect();
            (!left.is_empty()).then_some(Value::Array(left))
        }
        _ => Some(value.clone()),
    }
}

fn one(
    value: &Value,
    place: &Element,
    gone: &FieldSet,
    shape: Shape<'_>,
) -> Option<Value> {
    if gone.has(place) {
        return None;
    }
    match gone.below(place) {
        Some(below) => removed(value, below, shape),
        None => Some(value.clone()),
    }
}
