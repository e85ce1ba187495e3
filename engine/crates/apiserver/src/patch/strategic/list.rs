//! Lists in strategic merge patches.

use serde_json::{Map, Value};

use super::error::go;
use super::{
    DIRECTIVE, Error, SET_ELEMENT_ORDER, merge_objects, suffix, without_directives,
};
use crate::json_type::go_kind;
use crate::openapi::shape::Shape;

/// Merges `patch` into the list `original` of the field `place` if the schema declares the
/// merge strategy; replaces it otherwise.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    place: Shape<'_>,
) -> Result<Vec<Value>, Error> {
    if !place.has_patch_strategy("merge") {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let key = place.patch_merge_key();
    if !entries_are_objects(&original, &patch)? {
        let mut merged: Vec<Value> = Vec::new();
        for value in original.iter().chain(&patch) {
            if !merged.contains(value) {
                merged.push(value.clone());
            }
        }
        return in_order(merged, &patch, &original, None);
    }
    let key = key.ok_or_else(|| Error::NoKeyDeclared("list".to_owned()))?;
    let (original, patch) = special_entries(original, patch, key)?;
    let mut merged = original.clone();
    for entry in &patch {
        let found = key_of(entry, key)?;
        let at = merged.iter().position(|it| it.get(key) == Some(found));
        match at.and_then(|at| merged.get_mut(at)) {
            Some(slot) => {
                if let (Value::Object(old), Value::Object(new)) =
                    (slot.take(), entry.clone())
                {
                    *slot = Value::Object(merge_objects(old, new, place.items())?);
                }
            }
            None => merged.extend(added(entry, key)),
        }
    }
    in_order(merged, &patch, &original, Some(key))
}

/// An entry of the patch that the list does not have. Its merge key stays, also if it is null.
fn added(entry: &Value, key: &str) -> Option<Value> {
    let mut added = without_directives(entry.clone())?;
    if let (Value::Object(fields), Some(Value::Null)) = (&mut added, entry.get(key)) {
        fields.insert(key.to_owned(), Value::Null);
    }
    Some(added)
}

/// `$deleteFromPrimitiveList/<name>`: removes scalars from a list.
pub(super) fn delete_scalars(
    original: &mut Map<String, Value>,
    name: &str,
    gone: &Value,
) -> Result<(), Error> {
    let Value::Array(gone) = gone else {
        return Err(Error::PrimitiveList);
    };
    if let Some(Value::Array(items)) = original.get_mut(name) {
        items.retain(|it| !gone.contains(it));
    }
    Ok(())
}

/// `$setElementOrder/<name>`: merges the lists of that name and orders the result, first by
/// the given order, then by the order of the original.
pub(super) fn merge_ordered(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    shape: Shape<'_>,
) -> Result<(), Error> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|it| it.starts_with(SET_ELEMENT_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let order = patch.shift_remove(&directive);
        let Some(name) = suffix(&directive, SET_ELEMENT_ORDER, Error::ElementOrder)?
        else {
            continue;
        };
        let Some(Value::Array(order)) = order else {
            return Err(Error::ElementOrder);
        };
        if let Some(error) = Error::no_field(shape, name) {
            return Err(error);
        }
        let place = shape.field(name);
        let key = place.patch_merge_key();
        let new = match patch.shift_remove(name) {
            None => None,
            Some(Value::Array(new)) => Some(new),
            Some(_) => return Err(Error::ElementOrder),
        };
        if let Some(new) = &new {
            check_order(new, &order, key)?;
        }
        let old = match original.get_mut(name).map(Value::take) {
            None => None,
            Some(Value::Array(old)) => Some(old),
            Some(_) => return Err(Error::ElementOrder),
        };
        let nothing = |list: &Option<Vec<Value>>| list.as_ref().is_none_or(Vec::is_empty);
        if nothing(&old) && nothing(&new) && (old.is_some() || new.is_some()) {
            return Err(Error::NoElements);
        }
        let server_order = old.clone().unwrap_or_default();
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => merge(old, new, place)?,
        };
        let ordered = in_order(merged, &order, &server_order, key)?;
        original.insert(name.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

/// Checks that the entries of a patch are in the order of its `$setElementOrder`.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Error> {
    if order.is_empty() {
        return Ok(());
    }
    let mut announced = order.iter().peekable();
    let retained = patch
        .iter()
        .filter(|it| it.get(DIRECTIVE) != Some(&Value::from("delete")));
    for entry in retained {
        // An entry with another directive is skipped while the given order has entries left,
        // as in Kubernetes.
        if entry.get(DIRECTIVE).is_some() && announced.peek().is_some() {
            continue;
        }
        let same = |other: &Value| match key {
            None => entry == other,
            Some(key) => entry.get(key) == other.get(key),
        };
        if let Some(key) = key
            && announced.peek().is_some()
        {
            key_of(entry, key)?;
        }
        if !announced.any(same) {
            return Err(Error::OrderMismatch {
                patch: go(&Value::Array(patch.to_vec())),
                order: go(&Value::Array(order.to_vec())),
            });
        }
    }
    Ok(())
}

/// Whether the entries are objects rather than scalars; all must have one type. The type of
/// the first entry determines the error.
fn entries_are_objects(original: &[Value], patch: &[Value]) -> Result<bool, Error> {
    let mut all = original.iter().chain(patch);
    let first = all.next();
    if first.is_some_and(Value::is_array) {
        return Err(Error::ListOfLists);
    }
    if all.any(|it| Some(go_type(it)) != first.map(go_type)) {
        let both = [original, patch].map(|it| go(&Value::Array(it.to_vec())));
        return Err(Error::MixedList(format!("[{}]", both.join(" "))));
    }
    Ok(first.is_some_and(Value::is_object))
}

/// The type that Go's decoder reads a value as.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        other => go_kind(other),
    }
}

/// Processes the entries with `$patch`; returns the rest of the original and of the patch.
fn special_entries(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let mut plain = Vec::new();
    let mut replace = false;
    for entry in patch {
        match entry.get(DIRECTIVE).map(Value::as_str) {
            None => plain.push(entry),
            Some(Some("delete")) => {
                let gone = key_of(&entry, key)?;
                original.retain(|it| it.get(key) != Some(gone));
            }
            Some(Some("replace")) => replace = true,
            Some(Some("merge")) => return Err(Error::MergeDirective),
            Some(_) => {
                let word = entry.get(DIRECTIVE).cloned().unwrap_or_default();
                let fields = entry.as_object().cloned().unwrap_or_default();
                return Err(Error::directive(&word, fields));
            }
        }
    }
    if replace {
        Ok((plain, Vec::new()))
    } else {
        Ok((original, plain))
    }
}

fn key_of<'v>(entry: &'v Value, key: &str) -> Result<&'v Value, Error> {
    entry
        .get(key)
        .ok_or_else(|| Error::no_merge_key(entry, key))
}

/// `merged` with the entries in `order` in that order and the others between them, at their
/// position in `server_order`.
fn in_order(
    merged: Vec<Value>,
    order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, Error> {
    if let Some(key) = key {
        for entry in &merged {
            key_of(entry, key)?;
        }
    }
    let same = |a: &Value, b: &Value| match key {
        None => a == b,
        Some(key) => a.get(key).is_some() && a.get(key) == b.get(key),
    };
    let position =
        |list: &[Value], entry: &Value| list.iter().position(|it| same(it, entry));
    let (mut ours, mut others): (Vec<_>, Vec<_>) = merged
        .into_iter()
        .partition(|it| position(order, it).is_some());
    ours.sort_by_key(|it| position(order, it));
    others.sort_by_key(|it| position(server_order, it).unwrap_or(usize::MAX));
    let mut others = others.into_iter().peekable();
    let mut sorted = Vec::new();
    for entry in ours {
        let at = position(server_order, &entry);
        while let Some(other) = others.next_if(
            |it| matches!((position(server_order, it), at), (Some(a), Some(b)) if a < b),
        ) {
            sorted.push(other);
        }
        sorted.push(entry);
    }
    sorted.extend(others);
    Ok(sorted)
}
