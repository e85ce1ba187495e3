//! Labels and label selectors, and whether a selector matches its template.

use kubemu_admission::selector::Selector;
use kubemu_admission::{FieldError, name};
use serde_json::Value;

use crate::kind::field::{Errors, Field};

/// Validates the keys and values of labels. All errors have the path of the map.
pub(in crate::kind) fn labels(field: &Field<'_>, errors: &mut Errors) {
    let invalid =
        |value: &str, why| FieldError::invalid(field.path.clone(), value.into(), why);
    for (key, value) in field.entries() {
        let value = value.text();
        let of_key = name::label_key(key)
            .into_iter()
            .map(|why| invalid(key, why));
        errors.extend(of_key);
        let of_value = name::label_value(value).into_iter();
        errors.extend(of_value.map(|why| invalid(value, why)));
    }
}

/// Validates a label selector strictly (`ValidateLabelSelector`).
pub(in crate::kind) fn selector(field: &Field<'_>, errors: &mut Errors) {
    labels(&field.child("matchLabels"), errors);
    for expression in field.child("matchExpressions").items() {
        let values = expression.child("values");
        match expression.child("operator").text() {
            "In" | "NotIn" if values.len() == 0 => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(values.required(why));
            }
            "Exists" | "DoesNotExist" if values.len() > 0 => {
                let why =
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(values.forbidden(why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                let operator = expression.child("operator");
                errors.push(operator.invalid_text("not a valid selector operator"));
            }
        }
        super::qualified_name(&expression.child("key"), errors);
        for value in values.items() {
            super::text(&value, name::label_value, errors);
        }
    }
}

/// Whether a selector can be compiled.
pub(in crate::kind) fn is_readable(selector: &Field<'_>) -> bool {
    Selector::compile(Some(selector.value), "").is_ok()
}

/// Validates that a selector matches the labels of its template. An absent selector matches
/// nothing.
pub(in crate::kind) fn matches_template(
    selector: &Field<'_>,
    template: &Field<'_>,
    errors: &mut Errors,
) {
    let labels = template.child("metadata.labels");
    let value = labels.value.is_object().then_some(labels.value);
    let compiled = Selector::compile(Some(selector.value), "").ok();
    if selector.is_set() && compiled.is_some_and(|it| it.matches(value)) {
        return;
    }
    errors.push(mismatch(&labels));
}

/// The error for the labels of a template that the selector does not match.
pub(in crate::kind) fn mismatch(labels: &Field<'_>) -> FieldError {
    let shown = if labels.len() == 0 {
        Value::Null
    } else {
        labels.value.clone()
    };
    let why = "`selector` does not match template `labels`";
    FieldError::invalid(labels.path.clone(), shown, why)
}
