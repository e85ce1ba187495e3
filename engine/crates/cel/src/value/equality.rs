//! `==` and the ordering of values.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::convert::{nearest, nearest_unsigned};
use super::map::Property;
use super::raw::{Identity, plain};
use super::{List, Map, Value};
use crate::{ListKind, RunError, Type};

/// Whether two values are equal, or the API server's error.
pub(crate) type Equality = Result<bool, Box<RunError>>;

/// Whether two values are equal; values that cannot be compared are not.
pub(crate) fn equal(left: &Value<'_>, right: &Value<'_>) -> bool {
    matches!(same(left, right), Ok(true))
}

/// Whether two values are equal. Numbers compare by value whatever their type, other values of
/// different types are not equal, and null equals only null.
///
/// # Errors
/// The left value decides: library values, and lists and objects of a custom resource, only
/// compare with values of their own kind.
pub(crate) fn same(left: &Value<'_>, right: &Value<'_>) -> Equality {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => Ok(left.is_null() && right.is_null()),
        _ => equals_by_left_type(left, right),
    }
}

/// [`same`] as the left value's type implements it, without the special case for null.
pub(super) fn equals_by_left_type(left: &Value<'_>, right: &Value<'_>) -> Equality {
    // An error in the place of a value equals nothing, not even itself.
    if let Value::Library(value) = left
        && let Some(unread) = value.conversion_error()
    {
        return Err(Box::new(unread));
    }
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::List(left), Value::List(right)) => return lists(left, right),
        (Value::Map(left), Value::Map(right)) => return maps(left, right),
        (Value::Struct(left), Value::Struct(right)) => left.same(right),
        (Value::Optional(left), Value::Optional(right)) => match (left, right) {
            (None, None) => true,
            (Some(left), Some(right)) => return equals_by_left_type(left, right),
            _ => false,
        },
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::Library(left), Value::Library(right)) => {
            return left.same(right).ok_or_else(|| Box::new(NONE));
        }
        (Value::Abstract(left), Value::Abstract(right)) => {
            std::ptr::addr_eq(Arc::as_ptr(left), Arc::as_ptr(right))
        }
        _ if compares_only_with_own_kind(left) => return Err(Box::new(NONE)),
        _ => numbers(left, right) == Some(Ordering::Equal),
    })
}

const NONE: RunError = RunError::NO_SUCH_OVERLOAD;

/// Whether the value only compares with its own kind.
fn compares_only_with_own_kind(value: &Value<'_>) -> bool {
    match value {
        Value::Library(_) | Value::Abstract(_) => true,
        Value::List(list) => list.is_unstructured(),
        Value::Map(map) => map.is_unstructured(),
        _ => false,
    }
}

type Part<'v> = Result<Value<'v>, RunError>;

/// [`equals_by_left_type`] of two parts that may be read errors.
fn parts(left: Part<'_>, right: Part<'_>) -> Equality {
    match (left, right) {
        (Err(unread), _) => Err(Box::new(unread)),
        (Ok(left), Ok(right)) => equals_by_left_type(&left, &right),
        (Ok(left), Err(unread)) if compares_only_with_own_kind(&left) => {
            Err(Box::new(unread))
        }
        (Ok(_), Err(_)) => Ok(false),
    }
}

/// [`same`] of two parts that may be read errors.
fn same_parts(left: Part<'_>, right: Part<'_>) -> Equality {
    match (&left, &right) {
        (Ok(Value::Null), Ok(Value::Null)) => Ok(true),
        (Ok(Value::Null), _) | (_, Ok(Value::Null)) => Ok(false),
        _ => parts(left, right),
    }
}

/// Whether all are equal; an error ends the comparison, like `false`.
fn all(results: impl Iterator<Item = Equality>) -> Equality {
    for result in results {
        if !result? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lists(left: &List<'_>, right: &List<'_>) -> Equality {
    if left.len() != right.len() {
        return Ok(false);
    }
    let pairs = left.iter().zip(right.iter());
    if left.is_unstructured() {
        // The left list decides, as in the API server.
        return match left.kind() {
            ListKind::Atomic => all(pairs.map(|(left, right)| parts(left, right))),
            ListKind::Set => sets(left, right).map_err(Box::new),
            ListKind::Map(keys) => keyed(left, right, keys),
        };
    }
    // cel-go's list continues after an error. Only a concatenated list returns the error at the
    // end.
    let mut none = None;
    for (left, right) in pairs {
        match same_parts(left, right) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => none = none.or(Some(error)),
        }
    }
    match none {
        Some(error) if matches!(left, List::Merged(..)) => Err(error),
        _ => Ok(true),
    }
}

/// Whether the left set, of the same length, contains all items of the right list.
fn sets(left: &List<'_>, right: &List<'_>) -> Result<bool, RunError> {
    let mut known = HashSet::with_capacity(left.len());
    for item in left.stored_items() {
        known.extend(Identity::of(&item)?);
    }
    for item in right.iter() {
        let Ok(item) = item else {
            return Ok(false);
        };
        let has = Identity::of_item(item)?.is_some_and(|it| known.contains(&it));
        if !has {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the left list, of the same length, has an equal item with the same keys for each
/// item of the right list.
fn keyed(left: &List<'_>, right: &List<'_>, keys: &[String]) -> Equality {
    let mut indexes = HashMap::with_capacity(left.len());
    for (at, item) in left.stored_items().enumerate() {
        if let Some(keys) = Identity::by_keys(&item, keys)? {
            indexes.insert(keys, at);
        }
    }
    all(right.iter().map(|other| {
        let Ok(other) = other else {
            return Ok(false);
        };
        let keys = Identity::by_keys(&plain(other.clone()), keys)?;
        let known = keys.and_then(|keys| left.get(*indexes.get(&keys)?));
        known.map_or(Ok(false), |item| parts(item, Ok(other)))
    }))
}

fn maps(left: &Map<'_>, right: &Map<'_>) -> Equality {
    if left.len() != right.len() {
        return Ok(false);
    }
    match left {
        Map::Json(fields, ty) if left.is_unstructured() => {
            all(fields.iter().map(|field| entries(left, right, ty, field)))
        }
        _ => {
            let Ok(entries) = left.entries() else {
                return Ok(false);
            };
            // cel-go's map continues after an error.
            Ok(entries.into_iter().all(|(key, value)| {
                let other = right.get(&key);
                other.is_some_and(|it| same_parts(Ok(value), it) != Ok(false))
            }))
        }
    }
}

/// Whether the right map has an equal field. Declared fields compare by their types, if they
/// have one; fields without a declaration compare as JSON, and only if both maps have them.
fn entries(
    left: &Map<'_>,
    right: &Map<'_>,
    ty: &Type,
    (name, json): (&String, &Json),
) -> Equality {
    if let Type::Object(object) = ty
        && object.by_json(name).is_none()
    {
        return match right {
            Map::Json(fields, _) => {
                Ok(fields.get(name).is_none_or(|other| other == json))
            }
            Map::Owned(_) => Err(Box::new(NONE)),
        };
    }
    match (left.property(name), right.property(name)) {
        (None, None) => Ok(true),
        (Some(Property::Value(left)), Some(Property::Value(right))) => parts(left, right),
        (Some(Property::Untyped(left)), Some(Property::Untyped(right))) => {
            Ok(left == right)
        }
        _ => Ok(false),
    }
}

/// The ordering of two values of an ordered type: numbers of any kind, text, bytes, booleans,
/// timestamps and durations. `None` also if a value is NaN.
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
        // Compares as the nearest float, as the API server does.
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
