//! The division of values into paths according to a schema.

use serde_json::{Map, Value};

use super::element::Element;
use super::set::FieldSet;
use crate::empty;
use crate::openapi::schema::ListType;
use crate::openapi::shape::Shape;

/// How a value is divided into paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division<'a> {
    /// Not divided: a scalar, or an atomic list or object.
    Whole,
    /// Into fields.
    Fields,
    /// Into the entries of a set or a list map.
    Entries(&'a ListType),
}

/// How `value` is divided at `shape`.
pub(super) fn division<'a>(value: &Value, shape: Shape<'a>) -> Division<'a> {
    match value {
        Value::Object(_) if !shape.is_atomic_map() => Division::Fields,
        Value::Array(_) => match shape.list_type() {
            ListType::Atomic => Division::Whole,
            other => Division::Entries(other),
        },
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_) => Division::Whole,
    }
}

/// The paths of atomic values; entries of lists are given by index.
pub(super) fn atomics(value: &Value, shape: Shape<'_>) -> Vec<String> {
    let mut found = Vec::new();
    collect_atomics(value, shape, "", &mut found);
    found
}

fn collect_atomics(value: &Value, shape: Shape<'_>, path: &str, found: &mut Vec<String>) {
    let is_whole = division(value, shape) == Division::Whole;
    match value {
        Value::Object(fields) => {
            if is_whole {
                found.push(path.to_owned());
            }
            for (key, value) in fields.iter().filter(|(key, _)| shape.declares(key)) {
                collect_atomics(value, shape.field(key), &format!("{path}.{key}"), found);
            }
        }
        Value::Array(entries) => {
            if is_whole {
                found.push(path.to_owned());
            }
            for (at, value) in entries.iter().enumerate() {
                collect_atomics(value, shape.items(), &format!("{path}[{at}]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The path element of an entry of a set or list map.
///
/// # Errors
/// Kubernetes' message for an entry without a path element.
pub(super) fn element(
    entry: &Value,
    list: &ListType,
    items: Shape<'_>,
) -> Result<Element, String> {
    match list {
        ListType::Map(keys) => {
            let zero = |key: &str| empty::zero(items.definition()?, key);
            let default = |key: &str| items.field(key).default().or_else(|| zero(key));
            Element::of_entry(entry, keys, default)
        }
        ListType::Set | ListType::Atomic => Element::of_scalar(entry),
    }
}

/// All paths of `value` that a manager owns after setting it.
pub(super) fn field_set(value: &Value, shape: Shape<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    match (value, division(value, shape)) {
        (Value::Object(fields), Division::Fields) => {
            for (key, value) in fields {
                let place = shape.field(key);
                let element = Element::field(key);
                let empty =
                    value.is_null() || value.as_object().is_some_and(Map::is_empty);
                let whole = division(value, place) == Division::Whole;
                if whole || empty || !shape.declares(key) {
                    set.insert(element.clone());
                }
                set.insert_below(element, field_set(value, place));
            }
        }
        (Value::Array(entries), Division::Entries(list)) => {
            for entry in entries {
                // An entry without a path element is rejected before anything is applied.
                if let Ok(element) = element(entry, list, shape.items()) {
                    set.insert(element.clone());
                    set.insert_below(element, field_set(entry, shape.items()));
                }
            }
        }
        _ => {}
    }
    set
}
