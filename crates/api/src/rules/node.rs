//! What predicates ask of a node.

use serde_json::Value;

/// Applies a predicate to a string node. A node of another type satisfies it, because the
/// schema rejects it.
pub(super) fn text(node: &Value, holds: impl Fn(&str) -> bool) -> bool {
    node.as_str().is_none_or(holds)
}

/// Whether a member is no list with items.
pub(super) fn is_empty_list(node: &Value, member: &str) -> bool {
    node.get(member)
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
}

/// Whether a member exists and is not null.
pub(super) fn is_set(node: &Value, member: &str) -> bool {
    node.get(member).is_some_and(|member| !member.is_null())
}

/// Whether a text consists of digits.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether digits, possibly with leading zeros, are a number within bounds.
pub(super) fn is_number_within(text: &str, least: u32, most: u32) -> bool {
    let significant = text.trim_start_matches('0');
    is_number(text)
        && significant.len() <= 2
        && (least..=most).contains(&significant.parse().unwrap_or(0))
}
