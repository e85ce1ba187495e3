//! A fast check whether a value is valid, without recording places: nearly all values are valid
//! and need no further check.

use kubemu_cel::json_field;
use serde_json::{Map, Number, Value};

use super::node::{Additional, Node};
use super::number::{self, length};
use super::validation_error::Location;
use crate::field::Path;
use crate::{KubeVersion, format};

/// Whether `value` is certainly valid. `false` only means that the full check must run; it is
/// always returned for schemas with `oneOf`, `not` or `uniqueItems`.
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

/// Whether the value is of the declared type; then only the formats of strings remain to be
/// checked.
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
        // A text never has more characters than bytes.
        length(text.len()) <= most || length(text.chars().count()) <= most
    };
    let is_at_least = |least: i64| {
        // A character never has more than four bytes.
        length(text.len().div_ceil(4)) >= least || length(text.chars().count()) >= least
    };
    let matches = |regex: &Result<kubemu_gostd::regexp::Pattern, String>| {
        regex.as_ref().is_ok_and(|regex| regex.is_match(text))
    };
    let format = checks.format.as_str();
    checks.max_length.is_none_or(is_at_most)
        && checks.min_length.is_none_or(is_at_least)
        && checks.pattern.as_ref().is_none_or(|it| matches(&it.regex))
        && (!format::is_known(format) || format::matches(format, text))
}

fn is_number(node: &Node, value: &Number, version: KubeVersion) -> bool {
    let location = Location {
        path: &Path::Root,
        prefix: "",
        dotted: false,
    };
    number::check(node, value, location, version).is_valid()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Structural;
    use crate::schema::check::Checker;

    #[test]
    fn a_value_is_certainly_valid_only_if_the_full_check_has_no_errors() {
        let schemas = [
            json!({"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^é"}),
            json!({"type": "string", "format": "date-time", "nullable": true}),
            json!({"type": "string", "enum": ["a", "éé"]}),
            json!({"type": "integer", "minimum": 1, "maximum": 5, "multipleOf": 2}),
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
            json!({"x-kubernetes-int-or-string": true,
                "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!({"type": "array", "maxItems": 2, "items": {"type": "integer"}}),
            json!({"type": "object", "required": ["a"], "maxProperties": 2,
                "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "minProperties": 1,
                "additionalProperties": {"type": "boolean"}}),
            json!({"type": "integer", "not": {"minimum": 3}}),
            json!({"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 4}]}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
        ];
        let values = [
            json!(null),
            json!(true),
            json!("é"),
            json!("éé"),
            json!("éééé"),
            json!("a"),
            json!("2020-01-01T00:00:00Z"),
            json!(0),
            json!(2),
            json!(3),
            json!(4.0),
            json!(0.5),
            json!(u64::MAX),
            json!([]),
            json!([1, "a"]),
            json!([1, 2, 3]),
            json!({}),
            json!({"a": "b"}),
            json!({"a": true}),
            json!({"a": true, "b": false, "c": true}),
        ];
        let version = KubeVersion::default();
        let mut sure = 0;
        for schema in &schemas {
            let read = Structural::read(schema, &Path::Root, version).unwrap();
            let read = read.with_checked_formats();
            for value in &values {
                let quick = is_surely_valid(read.root(), value, version);
                let errors = Checker::new(version).errors_without_fast_path(
                    read.root(),
                    value,
                    None,
                    "",
                );
                assert!(!quick || errors.is_empty(), "{schema} {value}: {errors:?}");
                sure += usize::from(quick);
            }
        }
        assert!(sure > 40, "{sure} of them are sure");
    }
}
