//! Tolerations of a pod.

use kubemu_admission::name;

use crate::kind::field::{Errors, Field};
use crate::kind::rule;

/// Validates the tolerations of a pod. The error of a value has the path of the operator, as in
/// Kubernetes.
pub(in crate::kind) fn all(list: &Field<'_>, errors: &mut Errors) {
    for toleration in list.items() {
        one(&toleration, errors);
    }
}

fn one(toleration: &Field<'_>, errors: &mut Errors) {
    let (key, operator) = (toleration.child("key"), toleration.child("operator"));
    let (value, effect) = (toleration.child("value"), toleration.child("effect"));
    rule::text_if_set(&key, name::label_key, errors);
    if key.text().is_empty() && operator.text() != "Exists" {
        errors.push(operator.invalid_text(
            "operator must be Exists when `key` is empty, which means \"match all values and \
             all keys\"",
        ));
    }
    if toleration.child("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(effect.invalid_text(why));
    }
    let at_operator = value.at(operator.path.clone());
    match operator.text() {
        "" | "Equal" => {
            let wrong = name::label_value(value.text());
            if !wrong.is_empty() {
                errors.push(at_operator.invalid(wrong.join(";")));
            }
        }
        "Exists" => {
            if !value.text().is_empty() {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(at_operator.invalid(why));
            }
        }
        "Lt" | "Gt" => {
            let known = ["Equal", "Exists", "Lt", "Gt"];
            errors.push(operator.not_supported(&known));
        }
        _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
    }
    if !effect.text().is_empty() {
        let known = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        rule::one_of(&effect, &known, errors);
    }
}
