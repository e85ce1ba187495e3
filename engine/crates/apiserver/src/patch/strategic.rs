//! Strategic merge patches: Kubernetes' merge patch with merge keys for lists
//! (k8s.io/apimachinery/pkg/util/strategicpatch).
//!
//! Directives in a patch: `$patch` (`replace`, `delete`), `$retainKeys`,
//! `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`.

mod error;
mod list;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::openapi::shape::Shape;
pub(super) use error::Error;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// Merges `patch` into `original`; both are objects of `shape`.
pub(super) fn merge(
    original: Value,
    patch: Value,
    shape: Shape<'_>,
) -> Result<Value, Error> {
    let (Value::Object(original), Value::Object(patch)) = (original, patch) else {
        return Err(Error::Document);
    };
    merge_objects(original, patch, shape).map(Value::Object)
}

fn merge_objects(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    shape: Shape<'_>,
) -> Result<Map<String, Value>, Error> {
    if let Some(directive) = patch.shift_remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Map::new()),
            _ => Err(Error::directive(&directive, patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    list::merge_ordered(&mut original, &mut patch, shape)?;
    // They are removed together, at the end: every single removal moves the fields behind it.
    let mut gone = HashSet::new();
    for (key, value) in patch {
        if let Some(name) = suffix(&key, DELETE_FROM_LIST, Error::PrimitiveList)? {
            list::delete_scalars(&mut original, name, &value)?;
            continue;
        }
        // A patch does not reorder the fields of an object.
        let old = original.get_mut(&key).map(Value::take);
        match merge_field(old, value, &key, shape)? {
            Some(new) => {
                original.insert(key, new);
            }
            None => {
                gone.insert(key);
            }
        }
    }
    original.retain(|key, _| !gone.contains(key));
    Ok(original)
}

/// The new value of a field; `None` removes it.
fn merge_field(
    original: Option<Value>,
    patch: Value,
    key: &str,
    shape: Shape<'_>,
) -> Result<Option<Value>, Error> {
    let place = shape.field(key);
    let merges = matches!(
        (&original, &patch),
        (Some(Value::Object(_)), Value::Object(_))
            | (Some(Value::Array(_)), Value::Array(_))
    );
    if let Some(error) = Error::no_field(shape, key).filter(|_| merges) {
        return Err(error);
    }
    match (original, patch) {
        (_, Value::Null) => Ok(None),
        (Some(Value::Object(original)), Value::Object(patch)) => {
            if place.has_patch_strategy("replace") {
                Ok(Some(Value::Object(patch)))
            } else {
                merge_objects(original, patch, place).map(|it| Some(Value::Object(it)))
            }
        }
        (Some(Value::Array(original)), Value::Array(patch)) => {
            list::merge(original, patch, place).map(|it| Some(Value::Array(it)))
        }
        (_, patch) => Ok(without_directives(patch)),
    }
}

/// `$retainKeys`: removes every field of the original that is not in the list.
fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), Error> {
    let Some(directive) = patch.shift_remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(retained) = directive else {
        return Err(Error::RetainKeys);
    };
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let retains = |key: &str| retained.contains(key);
    for (key, value) in patch.iter() {
        let directive =
            key.starts_with(DELETE_FROM_LIST) || key.starts_with(SET_ELEMENT_ORDER);
        if !value.is_null() && !directive && !retains(key) {
            return Err(Error::RetainKeys);
        }
    }
    original.retain(|key, _| retains(key));
    Ok(())
}

/// The field of a directive such as `$setElementOrder/taints`; `None` for another key, an
/// error for a directive without a field.
fn suffix<'k>(
    key: &'k str,
    prefix: &str,
    error: Error,
) -> Result<Option<&'k str>, Error> {
    match key.strip_prefix(prefix) {
        None => Ok(None),
        Some(rest) => rest.strip_prefix('/').map(Some).ok_or(error),
    }
}

fn is_directive(key: &str) -> bool {
    [RETAIN_KEYS, DELETE_FROM_LIST, SET_ELEMENT_ORDER]
        .iter()
        .any(|it| key.starts_with(it))
}

/// A value of a patch without an original to merge into: nulls and directives are removed.
/// `None` for a value that is itself a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            if fields.contains_key(DIRECTIVE) {
                return None;
            }
            let retained = fields
                .into_iter()
                .filter(|(key, value)| !value.is_null() && !is_directive(key))
                .filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(retained.collect()))
        }
        Value::Array(items) => Some(Value::Array(
            items.into_iter().filter_map(without_directives).collect(),
        )),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value),
    }
}
