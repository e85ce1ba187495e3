//! Uniqueness of `list-type: set` and `list-type: map`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::node::Node;
use crate::FieldError;
use crate::field::Path;
use crate::quote::Json;

/// Adds an error for every item that repeats an earlier one, once for each value.
pub(super) fn check(
    node: &Node,
    value: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !node.contents.unique {
        return;
    }
    match value {
        Value::Array(items) => {
            match node.list_type.as_deref() {
                Some("set") => set(items, path, errors),
                Some("map") => map(node, items, path, errors),
                _ => {}
            }
            if let Some(each) = &node.items {
                for (at, item) in items.iter().enumerate() {
                    check(each, item, &path.index(at), errors);
                }
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(each) = node.additional.schema() {
                    check(each, value, &path.key(name), errors);
                }
                if let Some(property) = node.property(name) {
                    check(property, value, &path.field(name), errors);
                }
            }
        }
        _ => {}
    }
}

fn set(items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if items.len() < 2 {
        return;
    }
    for at in repeated(items.iter().map(|item| Json(item).to_string())) {
        if let Some(item) = items.get(at) {
            errors.push(FieldError::duplicate(path.index(at), item.clone()));
        }
    }
}

fn map(node: &Node, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let no_object = |item: &&Value| !item.is_object() && !item.is_null();
    if let Some(at) = items.iter().position(|item| no_object(&item)) {
        let item = items.get(at).cloned().unwrap_or_default();
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(path.index(at), item, detail));
        return;
    }
    if items.len() < 2 {
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| keys(node, item)).collect();
    for at in repeated(keys.iter().map(|key| Json(key).to_string())) {
        if let Some(key) = keys.get(at) {
            errors.push(FieldError::duplicate(path.index(at), key.clone()));
        }
    }
}

/// The key fields that the item has.
fn keys(node: &Node, item: &Value) -> Value {
    let of_item = |name: &String| Some((name.clone(), item.get(name)?.clone()));
    Value::Object(
        node.list_keys
            .iter()
            .filter_map(of_item)
            .collect::<Map<_, _>>(),
    )
}

/// The index of the second occurrence of each repeated text.
fn repeated(texts: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut repeated = Vec::new();
    for (at, text) in texts.enumerate() {
        let times = seen.entry(text).or_default();
        *times += 1;
        if *times == 2 {
            repeated.push(at);
        }
    }
    repeated
}
