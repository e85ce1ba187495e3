//! Conditions of a status (`ValidateConditions` in
//! k8s.io/apimachinery/pkg/apis/meta/v1/validation).

use std::collections::BTreeSet;

use kubemu_admission::FieldError;

use crate::kind::field::{Errors, Field};

/// The maximum length of a reason and of a message in bytes.
const REASON: u64 = 1024;
const MESSAGE: u64 = 32 * 1024;

/// Validates the conditions of a status, whose types must be unique.
pub(in crate::kind) fn conditions(list: &Field<'_>, errors: &mut Errors) {
    let mut types = BTreeSet::new();
    for condition in list.items() {
        let kind = condition.child("type");
        if !types.insert(kind.text()) {
            errors.push(kind.duplicate());
        }
        one(&condition, errors);
    }
}

fn one(condition: &Field<'_>, errors: &mut Errors) {
    super::qualified_name(&condition.child("type"), errors);
    let status = condition.child("status");
    let known = ["False", "True", "Unknown"];
    if !known.contains(&status.text()) {
        errors.push(status.not_supported(&known));
    }
    let generation = condition.child("observedGeneration");
    if generation.count() < 0 {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
    let since = condition.child("lastTransitionTime");
    if !since.is_set() {
        errors.push(since.required(""));
    }
    let reason = condition.child("reason");
    if reason.text().is_empty() {
        errors.push(reason.required(""));
    } else {
        super::text(&reason, wrong_reason, errors);
    }
    for (field, most) in [(reason, REASON), (condition.child("message"), MESSAGE)] {
        if u64::try_from(field.text().len()).is_ok_and(|it| it > most) {
            errors.push(FieldError::too_long(field.path, most));
        }
    }
}

fn wrong_reason(reason: &str) -> Vec<String> {
    let word = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    let bytes = reason.as_bytes();
    let is_right = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes
            .iter()
            .all(|it| word(*it) || matches!(it, b',' | b':'))
        && bytes.last().is_some_and(|it| word(*it));
    if is_right {
        return Vec::new();
    }
    vec![
        "a condition reason must start with alphabetic character, optionally followed by a \
         string of alphanumeric characters or '_,:', and must end with an alphanumeric \
         character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or \
         'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
         '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_requires_a_type_status_time_and_reason() {
        let object = json!({"conditions": [
            {"type": "Ready", "status": "True", "reason": "Ok", "message": "",
                "lastTransitionTime": "2020-01-01T00:00:00Z"},
            {"type": "Ready", "status": "Odd", "reason": "a-b", "observedGeneration": -1},
        ]});
        let mut errors = Errors::new();
        conditions(&Field::of(&object, "conditions"), &mut errors);
        let paths: Vec<_> = errors.iter().map(|it| it.path.as_str()).collect();
        let expected = [
            "conditions[1].type",
            "conditions[1].status",
            "conditions[1].observedGeneration",
            "conditions[1].lastTransitionTime",
            "conditions[1].reason",
        ];
        assert_eq!(paths, expected);
    }
}
