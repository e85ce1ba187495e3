//! Constants, and calls that are evaluated at compile time.

use crate::ast::operator;
use crate::cost::Formula;
use crate::library::{Overload, Overloads};
use crate::value::{Entries, Map};
use crate::{Paths, Value};

use super::node::{Attribute, Call, Key, Node, Qualifier, Root, Strategy};

pub(super) fn single(overloads: &[&'static Overload]) -> Option<&'static str> {
    match overloads {
        [overload] => Some(overload.id),
        _ => None,
    }
}

/// Whether the API server selects the overload of a call at run time, and so evaluates the
/// arguments one after the other: if the checker left several overloads that do not share one
/// implementation, as those of operators do. It always calls `format` that way.
pub(super) fn is_dispatched(function: &str, overloads: &[&'static Overload]) -> bool {
    let is_shared = function.starts_with(['_', '@', '!', '-']) || function == "matches";
    match overloads {
        [only] => only.id == "string_format",
        _ => !is_shared,
    }
}

/// Adds a field or index to `operand`.
pub(super) fn qualified(
    operand: Node,
    (key, optional): (Key, bool),
    paths: Option<&Paths>,
) -> Attribute {
    let mut attribute = match operand {
        Node::Attribute(attribute) if !attribute.test => attribute,
        other => Attribute::of(Root::Value(Box::new(other))),
    };
    let path = match (attribute.path, &key, paths) {
        (Some(before), Key::Name(name), Some(paths)) => {
            paths.field(before, name.text(), optional)
        }
        _ => None,
    };
    attribute.optional |= optional;
    attribute.path = path;
    attribute.qualifiers.push(Qualifier {
        key,
        optional,
        path,
    });
    attribute
}

/// `x in [1, 2]` is a free lookup if all items are constants.
pub(super) fn member(overloads: Overloads, sides: [Node; 2]) -> Node {
    let [wanted, list] = sides;
    if let Node::Const(Value::List(list)) = &list {
        let items: Vec<_> = list.iter().filter_map(Result::ok).collect();
        if items.is_empty() {
            return Node::Const(Value::Bool(false));
        }
        if items.iter().all(is_plain) {
            return Node::Member {
                wanted: Box::new(wanted),
                set: items,
            };
        }
    }
    Node::Call(Call {
        overloads,
        args: vec![wanted, list],
        in_order: false,
        formula: Formula::of(operator::IN, Some("in_list")),
        strategy: Strategy::Overload,
        accumulator: None,
    })
}

pub(super) fn is_plain(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
    )
}

pub(super) fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

pub(super) fn constant_list(nodes: Vec<(Node, bool)>) -> Node {
    let mut values = Vec::with_capacity(nodes.len());
    for (node, optional) in &nodes {
        match node {
            Node::Const(value) if !optional => values.push(value.clone()),
            _ => return Node::List(nodes),
        }
    }
    Node::Const(Value::list(values))
}

pub(super) fn constant_map(nodes: Vec<(Node, Node, bool)>) -> Node {
    let mut entries = Entries::default();
    for node in &nodes {
        let (Node::Const(key), Node::Const(value), false) = node else {
            return Node::Map(nodes);
        };
        if entries.set(key.clone(), value.clone()).is_err() {
            return Node::Map(nodes);
        }
    }
    Node::Const(Value::Map(Map::Owned(entries.into())))
}
