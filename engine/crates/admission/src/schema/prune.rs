//! Removes fields that are not in a schema.

use serde_json::Value;

use super::node::{Additional, Node};
use super::unknown_fields::UnknownFields;
use crate::field::Path;

/// Fields that every resource has, whatever its schema is.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes unknown fields of a resource and returns them.
pub(super) fn resource(root: &Node, object: &mut Value) -> UnknownFields {
    let mut unknown = UnknownFields::new();
    let mut pruner = Pruner {
        unknown: &mut unknown,
        resource_root: true,
    };
    pruner.value(Some(root), object, &Path::Root);
    unknown
}

/// Removes unknown fields of a value that is not a resource, such as a default.
pub(super) fn plain(node: &Node, value: &mut Value) {
    let mut unknown = UnknownFields::ignored();
    let mut pruner = Pruner {
        unknown: &mut unknown,
        resource_root: false,
    };
    pruner.value(Some(node), value, &Path::Root);
}

struct Pruner<'a> {
    unknown: &'a mut UnknownFields,
    /// Whether the next object is a resource although its schema does not declare it as one.
    resource_root: bool,
}

impl Pruner<'_> {
    fn value(&mut self, node: Option<&Node>, value: &mut Value, path: &Path<'_>) {
        let root = std::mem::take(&mut self.resource_root);
        if let Some(node) = node
            && node.preserve_unknown
        {
            self.preserved(node, value, path, root);
            return;
        }
        match value {
            Value::Object(fields) => fields.retain(|name, value| {
                let Some(node) = node else {
                    self.unknown.add(path.field(name));
                    return false;
                };
                if (root || node.embedded) && META.contains(&name.as_str()) {
                    return true;
                }
                if !self.known(node, name, value, path) {
                    self.unknown.add(path.field(name));
                    return false;
                }
                true
            }),
            Value::Array(items) => {
                let node = node.and_then(|node| node.items.as_deref());
                for (at, item) in items.iter_mut().enumerate() {
                    self.value(node, item, &path.index(at));
                }
            }
            _ => {}
        }
    }

    /// Prunes inside a field; returns `false` if the field is not in the schema.
    fn known(
        &mut self,
        node: &Node,
        name: &str,
        value: &mut Value,
        path: &Path<'_>,
    ) -> bool {
        let inner = match (node.property(name), &node.additional) {
            (Some(property), _) => Some(property),
            (None, Additional::Each(each)) => Some(&**each),
            (None, Additional::Allowed(_)) => None,
            (None, Additional::Unset) => return false,
        };
        self.value(inner, value, &path.field(name));
        true
    }

    /// Keeps unknown fields, and prunes inside known ones.
    fn preserved(&mut self, node: &Node, value: &mut Value, path: &Path<'_>, root: bool) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if !((root || node.embedded) && META.contains(&name.as_str())) {
                        self.known(node, name, value, path);
                    }
                }
            }
            Value::Array(items) => {
                let Some(each) = node.items.as_deref() else {
                    return;
                };
                for (at, item) in items.iter_mut().enumerate() {
                    self.preserved(each, item, &path.index(at), false);
                }
            }
            _ => {}
        }
    }
}
