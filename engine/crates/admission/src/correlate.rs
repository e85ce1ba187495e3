//! Correlates the parts of a new object with those of the old object.
//!
//! Fields of objects and entries of maps correlate with the field or entry of the same name;
//! items of a `list-type: map` with the item with the same keys. Items of other lists do not
//! correlate.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::node::Node;

/// A value's previous state, with the schema for correlating its parts.
#[derive(Clone, Copy)]
pub(crate) struct Old<'a> {
    pub(crate) node: &'a Node,
    pub(crate) value: &'a Value,
}

impl<'a> Old<'a> {
    /// The previous state of the field or entry `name`, if it existed and has a schema.
    pub(crate) fn key(&self, name: &str) -> Option<Self> {
        let value = self.value.as_object()?.get(name)?;
        let node = self
            .node
            .properties
            .get(name)
            .or_else(|| self.node.additional.schema())?;
        Some(Self { node, value })
    }

    /// The previous states of the list items.
    pub(crate) fn items(&self) -> OldItems<'a> {
        OldItems {
            node: self.node.items.as_deref(),
            items: ItemsByKey::of(self.node, self.value.as_array()),
        }
    }

    /// Whether the value is unchanged. Fields without a schema count as changed, and so do all
    /// values that contain them; the order of a `list-type: map` does not matter.
    pub(crate) fn is_equal(&self, new: &Value) -> bool {
        match (self.value, new) {
            (Value::Array(old), Value::Array(items)) => {
                if old.len() != items.len() {
                    return false;
                }
                if !is_map_list(self.node) {
                    return old == items;
                }
                let old = self.items();
                items
                    .iter()
                    .all(|new| old.item(new).is_some_and(|old| old.is_equal(new)))
            }
            (Value::Object(old), Value::Object(fields)) => {
                old.len() == fields.len()
                    && fields.iter().all(|(name, new)| {
                        self.key(name).is_some_and(|old| old.is_equal(new))
                    })
            }
            (old, new) => old == new,
        }
    }
}

fn is_map_list(node: &Node) -> bool {
    node.list_type.as_deref() == Some("map")
}

/// The items of a list in its previous state.
pub(crate) struct OldItems<'a> {
    node: Option<&'a Node>,
    items: ItemsByKey<'a>,
}

impl<'a> OldItems<'a> {
    /// The previous state of the list item `new`.
    pub(crate) fn item(&self, new: &Value) -> Option<Old<'a>> {
        let value = self.items.find(new)?;
        Some(Old {
            node: self.node?,
            value,
        })
    }
}

/// The items of a list by the values of their keys, so that a long list is searched once and not
/// for each item.
pub(crate) struct ItemsByKey<'a> {
    node: &'a Node,
    items: HashMap<Vec<&'a Value>, &'a Value>,
}

impl<'a> ItemsByKey<'a> {
    /// The items of `list` if it is one of `list-type: map`, otherwise none. Of several items
    /// with the same keys, the first counts.
    pub(crate) fn of(node: &'a Node, list: Option<&'a Vec<Value>>) -> Self {
        let mut items = HashMap::new();
        for item in list.into_iter().flatten().filter(|_| is_map_list(node)) {
            if let Some(keys) = keys(node, item) {
                items.entry(keys).or_insert(item);
            }
        }
        Self { node, items }
    }

    /// The item with the same keys as `new`.
    pub(crate) fn find(&self, new: &Value) -> Option<&'a Value> {
        if self.items.is_empty() {
            return None;
        }
        self.items.get(&keys(self.node, new)?).copied()
    }
}

/// The values of the keys of a list item; `None` if one is missing or no scalar.
fn keys<'v>(node: &Node, item: &'v Value) -> Option<Vec<&'v Value>> {
    let is_scalar =
        |value: &&Value| value.is_string() || value.is_number() || value.is_boolean();
    node.list_keys
        .iter()
        .map(|key| item.get(key.as_str()).filter(is_scalar))
        .collect()
}
