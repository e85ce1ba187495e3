//! What predicates ask of a node.

use serde_json::Value;

/// Applies a predicate to a string node. A node of another type satisfies it, because the
/// schema rejects it.
pub(super) fn text(node: &Value, holds: impl Fn(&str) -> bool) -> bool {
    node.as_str().is_none_or(holds)
}

/// Whether every text of a list satisfies a predicate.
pub(super) fn every_text(node: &Value, holds: impl Fn(&str) -> bool) -> bool {
    let mut items = node.as_array().into_iter().flatten();
    items.all(|item| text(item, &holds))
}

/// Whether every entry of a map satisfies a predicate about its key and its value.
pub(super) fn every_entry(node: &Value, holds: impl Fn(&str, &Value) -> bool) -> bool {
    let mut entries = node.as_object().into_iter().flatten();
    entries.all(|(key, value)| holds(key, value))
}

/// Whether any of these members is a list with items.
pub(super) fn has_items(node: &Value, members: &[&str]) -> bool {
    let is_filled = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    members
        .iter()
        .any(|member| node.get(member).is_some_and(is_filled))
}

/// Whether a member exists and is not null.
pub(super) fn is_set(node: &Value, member: &str) -> bool {
    node.get(member).is_some_and(|member| !member.is_null())
}

/// Whether any of these members exists and is not null.
pub(super) fn sets_any(node: &Value, members: &[&str]) -> bool {
    members.iter().any(|member| is_set(node, member))
}
