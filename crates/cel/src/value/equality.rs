//! `==` and the order of values.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::convert::{nearest, nearest_unsigned};
use super::{List, Map, Value};
use crate::{ListKind, ObjectType, Type};

/// Whether two values are equal; what cannot be compared is not.
pub(crate) fn equal(left: &Value<'_>, right: &Value<'_>) -> bool {
    same(left, right) == Some(true)
}

/// Whether two values are equal. Numbers compare by value whatever their kind, other
/// values of different kinds are never equal. Nothing where the API server has no answer:
/// its libraries' values compare with their own kind only.
pub(crate) fn same(left: &Value<'_>, right: &Value<'_>) -> Option<bool> {
    Some(match (left, right) {
        (Value::Null, _) | (_, Value::Null) => {
            matches!((left, right), (Value::Null, Value::Null))
        }
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::List(left), Value::List(right)) => lists(left, right),
        (Value::Map(left), Value::Map(right)) => maps(left, right),
        (Value::Optional(left), Value::Optional(right)) => match (left, right) {
            (None, None) => true,
            (Some(left), Some(right)) => return same(left, right),
            _ => false,
        },
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::Library(left), Value::Library(right)) => return left.same(right),
        (Value::Abstract(left), Value::Abstract(right)) => {
            std::ptr::addr_eq(std::sync::Arc::as_ptr(left), std::sync::Arc::as_ptr(right))
        }
        (Value::Library(_) | Value::Abstract(_), _) => return None,
        _ => numbers(left, right) == Some(Ordering::Equal),
    })
}

/// Whether nothing says that two parts differ. That they cannot be compared does not.
fn alike(left: &Value<'_>, right: &Value<'_>) -> bool {
    same(left, right) != Some(false)
}

fn lists(left: &List<'_>, right: &List<'_>) -> bool {
    if left.len() != right.len() {
        return false;
    }
    // The left one decides, as it does in the API server.
    match left.kind() {
        ListKind::Atomic => left.iter().zip(right.iter()).all(|pair| match pair {
            (Ok(left), Ok(right)) => alike(&left, &right),
            _ => false,
        }),
        ListKind::Set => {
            let Ok(right) = right.to_vec() else {
                return false;
            };
            left.iter().all(|item| {
                item.is_ok_and(|item| right.iter().any(|other| equal(&item, other)))
            })
        }
        ListKind::Map(keys) => {
            let Ok(right) = right.to_vec() else {
                return false;
            };
            left.iter().all(|item| {
                item.is_ok_and(|item| {
                    let same = right.iter().find(|other| same_keys(&item, other, keys));
                    same.is_some_and(|other| equal(&item, other))
                })
            })
        }
    }
}

/// Whether two items of a list of kind map have the same keys.
pub(crate) fn same_keys(left: &Value<'_>, right: &Value<'_>, keys: &[String]) -> bool {
    let (Value::Map(left), Value::Map(right)) = (left, right) else {
        return false;
    };
    keys.iter().all(|key| {
        // Names that cannot be escaped identify nothing.
        let Some(key) = crate::escape(key) else {
            return true;
        };
        match (left.field(&key), right.field(&key)) {
            (Some(Ok(left)), Some(Ok(right))) => equal(&left, &right),
            (None, None) => true,
            _ => false,
        }
    })
}

fn maps(left: &Map<'_>, right: &Map<'_>) -> bool {
    if left.len() != right.len() {
        return false;
    }
    if let (Map::Json(left_json, Type::Object(object)), Map::Json(right_json, _)) =
        (left, right)
    {
        return objects(object, [left, right], [left_json, right_json]);
    }
    let Ok(entries) = left.entries() else {
        return false;
    };
    entries.iter().all(|(key, value)| match right.get(key) {
        Some(Ok(other)) => alike(value, &other),
        _ => false,
    })
}

/// Declared fields compare by their types, what else there is as plain JSON.
fn objects(
    object: &ObjectType,
    [left, right]: [&Map<'_>; 2],
    [left_json, right_json]: [&serde_json::Map<String, Json>; 2],
) -> bool {
    left_json.iter().all(|(name, value)| {
        let declared = crate::escape(name).filter(|name| object.field(name).is_some());
        let Some(name) = declared else {
            return right_json.get(name).is_none_or(|other| other == value);
        };
        match (left.field(&name), right.field(&name)) {
            (None, None) => true,
            (Some(Ok(left)), Some(Ok(right))) => equal(&left, &right),
            _ => false,
        }
    })
}

/// The order of two values that have one: numbers of any kind, text, bytes, booleans,
/// instants and spans. `None` also for what involves NaN.
pub(crate) fn order(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::String(left), Value::String(right)) => Some((**left).cmp(&**right)),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Timestamp(left), Value::Timestamp(right)) => Some(left.cmp(right)),
        (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        _ => numbers(left, right),
    }
}

fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        (Value::Uint(left), Value::Uint(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Uint(right)) => {
            Some(u64::try_from(*left).map_or(Ordering::Less, |left| left.cmp(right)))
        }
        (Value::Uint(_), Value::Int(_)) => numbers(right, left).map(Ordering::reverse),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        // By the nearest float, as the API server does.
        (Value::Int(left), Value::Double(right)) => nearest(*left).partial_cmp(right),
        (Value::Uint(left), Value::Double(right)) => {
            nearest_unsigned(*left).partial_cmp(right)
        }
        (Value::Double(_), Value::Int(_) | Value::Uint(_)) => {
            numbers(right, left).map(Ordering::reverse)
        }
        _ => None,
    }
}
