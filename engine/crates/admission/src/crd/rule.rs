//! Validates validation rules.

use serde_json::Value;

use super::budget::RuleCosts;
use crate::crd_rules::{Rule, field_path, has_lines};
use crate::field::Path;
use crate::schema::node::{Node, RuleSource};
use crate::{FieldError, quote};

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// The errors of a rule that do not require its compilation.
pub(super) fn text_errors(
    source: &RuleSource,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let message = source.message.trim();
    let given = |text: &str| Value::from(text);
    if source.rule.trim().is_empty() {
        let detail = "rule is not specified";
        errors.push(FieldError::required(path.field("rule"), detail));
    } else if !source.message.is_empty() && message.is_empty() {
        let detail = "must be non-empty if specified";
        let value = given(&source.message);
        errors.push(FieldError::invalid(path.field("message"), value, detail));
    } else if has_lines(message) {
        let detail = "must not contain line breaks";
        let value = given(&source.message);
        errors.push(FieldError::invalid(path.field("message"), value, detail));
    } else if has_lines(source.rule.trim()) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(path.field("message"), detail));
    }
    let expression = &source.message_expression;
    if !expression.is_empty() && expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(
            path.field("messageExpression"),
            detail,
        ));
    }
    if let Some(reason) = source.reason.as_deref()
        && !REASONS.contains(&reason)
    {
        let path = path.field("reason");
        let error = FieldError::not_supported(path, given(reason), REASONS);
        errors.push(error.of_named_type());
    }
    let at = path.field("fieldPath");
    let field = &source.field_path;
    let mut invalid = |detail: &str| {
        errors.push(FieldError::invalid(at, given(field), detail));
    };
    if !field.is_empty() && field.trim().is_empty() {
        invalid("must be non-empty if specified");
    }
    if has_lines(field) {
        invalid("must not contain line breaks");
    }
}

/// Whether the `fieldPath` of a rule exists in the schema.
pub(super) fn field_path(
    source: &RuleSource,
    node: &Node,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let field = source.field_path.as_str();
    if !field.is_empty() && field_path::parse(field, node).is_err() {
        let at = path.field("fieldPath");
        let detail = "must be a valid path";
        errors.push(FieldError::invalid(at, field.into(), detail));
    }
}

/// The compile errors of a rule. A value inside `uncorrelated` cannot be correlated with its
/// old value.
pub(super) fn compiled(
    rule: &Rule,
    path: &Path<'_>,
    uncorrelated: Option<&Path<'_>>,
    (errors, costs): (&mut Vec<FieldError>, &mut RuleCosts),
) {
    let source = &rule.source;
    errors.extend(costs.add("rule", path.field("rule"), rule.estimate.total()));
    if let Some(why) = rule.error() {
        let value = internal_form(source);
        errors.push(FieldError::invalid_form(path.field("rule"), &value, why));
    }
    if let Some(why) = rule.message_error() {
        let path = path.field("messageExpression");
        errors.push(FieldError::invalid_form(path, &internal_form(source), why));
    }
    let at = path.field("messageExpression");
    errors.extend(costs.add("messageExpression", at, rule.estimate.message));
    match (uncorrelated, source.optional_old_self) {
        (Some(within), _) if rule.uses_old() => {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                 {within}"
            );
            let value = source.rule.as_str().into();
            errors.push(FieldError::invalid(path.field("rule"), value, detail));
        }
        (_, Some(optional)) if !rule.uses_old() => {
            let path = path.field("optionalOldSelf");
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(path, optional.into(), detail));
        }
        _ => {}
    }
}

/// A rule in Kubernetes' internal form.
fn internal_form(source: &RuleSource) -> String {
    let json = |text: &str| quote::Json(&text.into()).to_string();
    let or_null =
        |value: Option<Value>| quote::Json(&value.unwrap_or_default()).to_string();
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\
         \"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        json(&source.rule),
        json(&source.message),
        json(&source.message_expression),
        or_null(source.reason.as_deref().map(Value::from)),
        json(&source.field_path),
        or_null(source.optional_old_self.map(Value::from)),
    )
}
