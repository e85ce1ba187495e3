//! Whether a value is surely right, found out without noting where anything is: nearly all
//! values are, and then nobody asks.

use fivespot_cel::json_field;
use serde_json::{Map, Number, Value};

use super::found::Spot;
use super::node::{Additional, Node};
use super::number;
use crate::field::Path;
use crate::{KubeVersion, format};

/// Whether nothing is wrong with `value`. `false` says only that it has to be looked at
/// closely, as it is for what the schema wants one of, or wants not to be.
pub(super) fn is_surely_valid(node: &Node, value: &Value, version: KubeVersion) -> bool {
    let checks = &node.checks;
    if !checks.one_of.is_empty() || checks.not.is_some() || checks.unique_items {
        return false;
    }
    if value.is_null() {
        let is_any = node.kind.is_empty() && !node.int_or_string;
        return (node.nullable || is_any) && checks.allowed.is_empty();
    }
    let fits = |branch: &Node| is_surely_valid(branch, value, version);
    is_of_type(node, value)
        && (checks.any_of.is_empty() || checks.any_of.iter().any(fits))
        && checks.all_of.iter().all(fits)
        && is_allowed(node, value)
        && match value {
            Value::String(text) => is_text(node, text),
            Value::Number(value) => is_number(node, value, version),
            Value::Array(items) => are_items(node, items, version),
            Value::Object(fields) => are_fields(node, fields, version),
            Value::Null | Value::Bool(_) => true,
        }
}

/// Whether the value is of the declared type, which makes a format say nothing further
/// about any but text.
fn is_of_type(node: &Node, value: &Value) -> bool {
    if node.int_or_string {
        return value.is_string() || value.is_i64();
    }
    match node.kind.as_str() {
        "" => node.checks.format.is_empty(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        _ => false,
    }
}

fn is_allowed(node: &Node, value: &Value) -> bool {
    let allowed = &node.checks.allowed;
    allowed.is_empty() || allowed.iter().any(|one| number::same(value, one))
}

fn is_text(node: &Node, text: &str) -> bool {
    let checks = &node.checks;
    let is_at_most = |most: i64| {
        // No text has more characters than bytes.
        length(text.len()) <= most || length(text.chars().count()) <= most
    };
    let is_at_least = |least: i64| length(text.chars().count()) >= least;
    let matches = |regex: &Result<fivespot_cel::Pattern, String>| {
        regex.as_ref().is_ok_and(|regex| regex.is_match(text))
    };
    let format = checks.format.as_str();
    checks.max_length.is_none_or(is_at_most)
        && checks.min_length.is_none_or(is_at_least)
        && checks.pattern.as_ref().is_none_or(|it| matches(&it.regex))
        && (!format::is_known(format) || format::matches(format, text))
}

fn is_number(node: &Node, value: &Number, version: KubeVersion) -> bool {
    let spot = Spot {
        path: &Path::Root,
        prefix: "",
        dotted: false,
    };
    number::check(node, value, spot, version).is_valid()
}

fn are_items(node: &Node, items: &[Value], version: KubeVersion) -> bool {
    let found = length(items.len());
    node.checks.max_items.is_none_or(|most| found <= most)
        && node.checks.min_items.is_none_or(|least| found >= least)
        && node.items.as_ref().is_none_or(|each| {
            items
                .iter()
                .all(|item| is_surely_valid(each, item, version))
        })
}

fn are_fields(node: &Node, fields: &Map<String, Value>, version: KubeVersion) -> bool {
    let checks = &node.checks;
    let found = length(fields.len());
    checks.max_properties.is_none_or(|most| found <= most)
        && checks.min_properties.is_none_or(|least| found >= least)
        && checks
            .required
            .iter()
            .all(|name| json_field(fields, name).is_some())
        && fields.iter().all(|(name, value)| {
            match (node.property(name), &node.additional) {
                (Some(property), _) => is_surely_valid(property, value, version),
                (None, Additional::Each(each)) => is_surely_valid(each, value, version),
                (None, Additional::Allowed(allowed)) => *allowed,
                (None, Additional::Unset) => true,
            }
        })
}

/// A length as schemas say it.
fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
