//! Correlates the parts of a new object with those of the old object.
//!
//! Fields of objects and entries of maps correlate with the field or entry of the same name;
//! items of a `list-type: map` with the item with the same keys. Items of other lists do not
//! correlate.

use serde_json::Value;

use crate::schema::node::Node;

/// A value's previous state, with the schema for correlating its parts.
#[derive(Clone, Copy)]
pub(crate) struct Old<'a> {
    pub(crate) node: &'a Node,
    pub(crate) value: &'a Value,
}

impl Old<'_> {
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

    /// The previous state of the list item `new`.
    pub(crate) fn item(&self, new: &Value) -> Option<Self> {
        let value = same_item(self.node, self.value.as_array()?, new)?;
        let node = self.node.items.as_deref()?;
        Some(Self { node, value })
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
                items
                    .iter()
                    .all(|new| self.item(new).is_some_and(|old| old.is_equal(new)))
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

/// The item of `old` with the same keys as `new`, if the list is one of `list-type: map`.
pub(crate) fn same_item<'a>(
    node: &Node,
    old: &'a [Value],
    new: &Value,
) -> Option<&'a Value> {
    if !is_map_list(node) || !has_keys(node, new) {
        return None;
    }
    old.iter().find(|item| {
        has_keys(node, item)
            && node
                .list_keys
                .iter()
                .all(|key| item.get(key.as_str()) == new.get(key.as_str()))
    })
}

fn has_keys(node: &Node, item: &Value) -> bool {
    let is_scalar =
        |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    node.list_keys
        .iter()
        .all(|key| item.get(key.as_str()).is_some_and(is_scalar))
}
