//! The declared types of a schema, as rules see them.

use std::sync::Arc;

use kubemu_cel::{ListKind, ObjectType, Type};

use crate::schema::node::Node;

/// The type of `self` at a node; `None` for values without a schema, which rules cannot see.
/// Rules see `apiVersion`, `kind` and two fields of `metadata` of a resource, whatever its
/// schema is.
pub(super) fn of(node: &Node, resource: bool) -> Option<Type> {
    if node.int_or_string {
        return Some(Type::IntOrString);
    }
    match node.kind.as_str() {
        "array" => {
            let each = node.items.as_deref()?;
            Some(Type::list_of(part(each)?, list_kind(node)))
        }
        "object" => match node.additional.schema() {
            Some(each) => Some(Type::map(part(each)?)),
            None => Some(object(node, resource)),
        },
        "string" => Some(match node.checks.format.as_str() {
            "byte" => Type::Bytes,
            "duration" => Type::Duration,
            "date" => Type::Date,
            "date-time" => Type::Timestamp,
            _ => Type::String,
        }),
        "boolean" => Some(Type::Bool),
        "number" => Some(Type::Double),
        "integer" => Some(Type::Int),
        _ => None,
    }
}

/// Whether rules can see the values of a node, that is whether [`of`] has a type for it.
pub(super) fn is_visible(node: &Node) -> bool {
    match node.kind.as_str() {
        _ if node.int_or_string => true,
        "array" => node.items.as_deref().is_some_and(is_visible),
        "object" => node.additional.schema().is_none_or(is_visible),
        "string" | "boolean" | "number" | "integer" => true,
        _ => false,
    }
}

/// The type of a nested value, which may be null, unlike the value itself.
fn part(node: &Node) -> Option<Type> {
    let ty = of(node, node.embedded)?;
    Some(if node.nullable {
        Type::nullable(ty)
    } else {
        ty
    })
}

/// Whether the schema declares these fields itself, in which case its declarations are used.
pub(super) fn declares_meta(node: &Node) -> bool {
    let is = |node: &Node, name: &str, kind: &str| {
        node.properties.get(name).is_some_and(|it| it.kind == kind)
    };
    let names = |metadata: &Node| {
        is(metadata, "name", "string") && is(metadata, "generateName", "string")
    };
    is(node, "kind", "string")
        && is(node, "apiVersion", "string")
        && is(node, "metadata", "object")
        && node.properties.get("metadata").is_some_and(names)
}

fn object(node: &Node, resource: bool) -> Type {
    let resource = resource && !declares_meta(node);
    let properties = || {
        let all = node.properties.iter();
        all.filter(|(name, _)| !(resource && is_meta(name)))
    };
    let mut fields: Vec<(Arc<str>, Type)> = properties()
        .filter_map(|(name, property)| Some((name.as_str().into(), part(property)?)))
        .collect();
    let untyped = properties().filter(|(_, property)| !is_visible(property));
    if resource {
        fields.push(("apiVersion".into(), Type::String));
        fields.push(("kind".into(), Type::String));
        fields.push(("metadata".into(), meta()));
    }
    Type::object(
        ObjectType::new(fields).with_untyped(untyped.map(|(name, _)| name.as_str())),
    )
}

/// The type of a resource's `metadata`, also if its schema has more fields.
pub(super) fn meta() -> Type {
    let names = [("name", Type::String), ("generateName", Type::String)];
    Type::object(ObjectType::new(names))
}

pub(super) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn list_kind(node: &Node) -> ListKind {
    match node.list_type.as_deref() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(node.list_keys.clone()),
        _ => ListKind::Atomic,
    }
}
