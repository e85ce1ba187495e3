//! Removes the fields that a manager applied before and omits from its new configuration.

use serde_json::{Map, Value};

use super::element::Element;
use super::record::Managers;
use super::set::FieldSet;
use super::walk::{Division, division, element, field_set};
use crate::openapi::shape::Shape;

/// `merged` without the paths of `last` that have no manager any longer.
pub(super) fn prune(
    merged: Value,
    last: &FieldSet,
    managers: &Managers<'_>,
    shape: Shape<'_>,
) -> Value {
    if last.is_empty() {
        return merged;
    }
    let named = |value: &Value| field_set(value, shape).with_named_fields(shape);
    let last = last.with_named_fields(shape);
    let owned = managers.all_fields().with_named_fields(shape);
    let whole = named(&merged);
    let bare = remove(&merged, &last, shape);
    // Paths that a manager owns are restored.
    let gone = whole.clone().difference(&named(&bare).union(owned));
    let retained = remove(&merged, &gone, shape);
    // Paths that were removed only because a parent path was removed are restored as well.
    let gone = whole.difference(&named(&retained)).intersection(&last);
    remove(&merged, &gone, shape)
}

/// `value` without the paths of `gone`. A list or object that loses its last entry becomes null, as
/// in Kubernetes' structured merge diff.
fn remove(value: &Value, gone: &FieldSet, shape: Shape<'_>) -> Value {
    match (value, division(value, shape)) {
        (Value::Object(fields), Division::Fields) => {
            let remaining = fields.iter().filter_map(|(key, value)| {
                let place = Element::field(key);
                Some((key.clone(), one(value, &place, gone, shape.field(key))?))
            });
            let remaining: Map<_, _> = remaining.collect();
            if remaining.is_empty() {
                Value::Null
            } else {
                Value::Object(remaining)
            }
        }
        (Value::Array(entries), Division::Entries(list)) => {
            let remaining = entries.iter().filter_map(|entry| {
                match element(entry, list, shape.items()) {
                    Ok(place) => one(entry, &place, gone, shape.items()),
                    Err(_) => Some(entry.clone()),
                }
            });
            let remaining: Vec<Value> = remaining.collect();
            if remaining.is_empty() {
                Value::Null
            } else {
                Value::Array(remaining)
            }
        }
        _ => value.clone(),
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
    Some(match gone.below(place) {
        Some(below) => remove(value, below, shape),
        None => value.clone(),
    })
}
