//! Fills in defaults, and removes nulls that represent absence.

use serde_json::Value;

use kubemu_cel::json_field;

use super::node::Node;

/// Removes nulls from fields that are neither nullable nor have a default.
pub(super) fn drop_nulls(node: &Node, value: &mut Value) {
    if has_null(value) {
        drop_nulls_of(Some(node), value);
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

fn drop_nulls_of(node: Option<&Node>, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let inner = node.and_then(|node| field(node, name));
            let drop = value.is_null()
                && inner.is_some_and(|inner| !inner.nullable && inner.default.is_none());
            if !drop {
                drop_nulls_of(inner, value);
            }
            !drop
        }),
        Value::Array(items) => {
            let inner = node.and_then(|node| node.items.as_deref());
            for item in items {
                drop_nulls_of(inner, item);
            }
        }
        _ => {}
    }
}

fn field<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    node.property(name).or_else(|| node.additional.schema())
}

/// Fills in defaults, also inside of defaults.
pub(super) fn fill(node: &Node, value: &mut Value) {
    if !node.contents.defaults {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                let Some(default) = &property.default else {
                    continue;
                };
                match json_field(fields, name) {
                    None => {
                        fields.insert(name.clone(), default.clone());
                    }
                    Some(Value::Null) if !property.nullable => {
                        fields.insert(name.clone(), default.clone());
                    }
                    Some(_) => {}
                }
            }
            for (name, value) in fields {
                if let Some(property) = node.property(name) {
                    fill(property, value);
                } else if let Some(each) = node.additional.schema() {
                    fill_null(each, value);
                    fill(each, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(each) = &node.items else {
                return;
            };
            for item in items {
                fill_null(each, item);
                fill(each, item);
            }
        }
        _ => {}
    }
}

/// A null that is not allowed is treated as absent.
fn fill_null(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}
