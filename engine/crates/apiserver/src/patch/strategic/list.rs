//! Lists in strategic merge patches.

use std::collections::{BTreeSet, HashMap, HashSet};

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
        let mut seen = HashSet::new();
        let all = original.iter().chain(&patch);
        let merged = all.filter(|it| seen.insert(*it)).cloned().collect();
        return in_order(merged, &patch, &original, None);
    }
    let key = key.ok_or_else(|| Error::NoKeyDeclared("list".to_owned()))?;
    let (original, patch) = special_entries(original, patch, key)?;
    let mut merged = Keyed::new(original.clone(), key);
    for entry in &patch {
        let found = key_of(entry, key)?;
        match merged.find(found) {
            Some(at) => {
                if let (Value::Object(old), Value::Object(new)) =
                    (merged.take(at), entry.clone())
                {
                    let new = merge_objects(old, new, place.items())?;
                    merged.put(at, Value::Object(new));
                }
            }
            None => {
                if let Some(entry) = added(entry, key) {
                    merged.push(entry);
                }
            }
        }
    }
    in_order(merged.entries, &patch, &original, Some(key))
}

/// A list whose entries are found by their merge key: a list and a patch can have hundreds of
/// thousands of entries each.
struct Keyed<'k> {
    key: &'k str,
    entries: Vec<Value>,
    /// The places of the entries with each value of the merge key.
    places: HashMap<Value, BTreeSet<usize>>,
}

impl<'k> Keyed<'k> {
    fn new(entries: Vec<Value>, key: &'k str) -> Self {
        let mut all = Self {
            key,
            entries,
            places: HashMap::new(),
        };
        for at in 0..all.entries.len() {
            all.note(at);
        }
        all
    }

    fn note(&mut self, at: usize) {
        if let Some(value) = self.entries.get(at).and_then(|it| it.get(self.key)) {
            self.places.entry(value.clone()).or_default().insert(at);
        }
    }

    /// The place of the first entry whose merge key is `value`.
    fn find(&self, value: &Value) -> Option<usize> {
        self.places.get(value)?.first().copied()
    }

    /// Takes out the entry at a place, where [`put`](Self::put) puts another: an entry can lose its
    /// merge key when a null is merged into it.
    fn take(&mut self, at: usize) -> Value {
        let Some(entry) = self.entries.get_mut(at).map(Value::take) else {
            return Value::Null;
        };
        let places = entry.get(self.key).and_then(|it| self.places.get_mut(it));
        if let Some(places) = places {
            places.remove(&at);
        }
        entry
    }

    fn put(&mut self, at: usize, entry: Value) {
        if let Some(slot) = self.entries.get_mut(at) {
            *slot = entry;
        }
        self.note(at);
    }

    fn push(&mut self, entry: Value) {
        self.entries.push(entry);
        self.note(self.entries.len() - 1);
    }
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
        let gone: HashSet<&Value> = gone.iter().collect();
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
    // They are removed together, at the end: every single removal moves the fields behind it.
    let mut taken = HashSet::new();
    let mut take = |patch: &mut Map<String, Value>, name: &str| {
        let value = patch.get_mut(name)?;
        taken.insert(name.to_owned()).then(|| value.take())
    };
    for directive in directives {
        let order = take(patch, &directive);
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
        let new = match take(patch, name) {
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
    patch.retain(|name, _| !taken.contains(name));
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
    let mut gone = HashSet::new();
    let mut replace = false;
    for entry in patch {
        match entry.get(DIRECTIVE).map(Value::as_str) {
            None => plain.push(entry),
            Some(Some("delete")) => {
                gone.insert(key_of(&entry, key)?.clone());
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
        original.retain(|it| it.get(key).is_none_or(|it| !gone.contains(it)));
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
    let (order, server_order) =
        (Positions::of(order, key), Positions::of(server_order, key));
    let (mut ours, mut others): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|it| order.find(it).is_some());
    ours.sort_by_cached_key(|it| order.find(it));
    others.sort_by_cached_key(|it| server_order.find(it).unwrap_or(usize::MAX));
    let mut others = others.into_iter().peekable();
    let mut sorted = Vec::new();
    for entry in ours {
        let at = server_order.find(&entry);
        while let Some(other) = others.next_if(
            |it| matches!((server_order.find(it), at), (Some(a), Some(b)) if a < b),
        ) {
            sorted.push(other);
        }
        sorted.push(entry);
    }
    sorted.extend(others);
    Ok(sorted)
}

/// The first position of each entry of a list: of its merge key, or of the whole entry in a list
/// without one.
struct Positions<'v> {
    key: Option<&'v str>,
    of: HashMap<&'v Value, usize>,
}

impl<'v> Positions<'v> {
    fn of(list: &'v [Value], key: Option<&'v str>) -> Self {
        let mut of = HashMap::new();
        for (at, entry) in list.iter().enumerate() {
            if let Some(value) = key.map_or(Some(entry), |key| entry.get(key)) {
                of.entry(value).or_insert(at);
            }
        }
        Self { key, of }
    }

    /// The position of an entry that is equal to `entry`, or has its merge key.
    fn find(&self, entry: &Value) -> Option<usize> {
        let value = self.key.map_or(Some(entry), |key| entry.get(key));
        self.of.get(value?).copied()
    }
}
