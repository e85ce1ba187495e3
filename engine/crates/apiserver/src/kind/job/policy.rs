//! The failure, success and pod replacement policies of a job.

use std::collections::BTreeSet;

use kubemu_admission::FieldError;

use super::index;
use crate::kind::field::{Errors, Field};
use crate::kind::go_struct;
use crate::kind::rule;

const MAX_RULES: u64 = 20;
const MAX_EXIT_CODES: u64 = 255;
const MAX_INDEXES_LENGTH: u64 = 64 * 1024;

fn too_many(field: &Field<'_>, most: u64, errors: &mut Errors) {
    let found = field.len() as u64;
    if found > most {
        errors.push(FieldError::too_many(field.path.clone(), found, most));
    }
}

/// Validates the pod failure policy.
pub(super) fn failure(spec: &Field<'_>, errors: &mut Errors) {
    let rules = spec.child("podFailurePolicy.rules");
    too_many(&rules, MAX_RULES, errors);
    for rule in rules.items() {
        failure_rule(spec, &rule, errors);
    }
}

fn failure_rule(spec: &Field<'_>, rule: &Field<'_>, errors: &mut Errors) {
    let action = rule.child("action");
    match action.text() {
        "" => {
            let why = "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]";
            errors.push(action.required(why));
        }
        "FailIndex" if !spec.child("backoffLimitPerIndex").is_set() => {
            let why = "requires the backoffLimitPerIndex to be set";
            errors.push(action.invalid(why));
        }
        "Count" | "FailIndex" | "FailJob" | "Ignore" => {}
        _ => {
            let known = ["Count", "FailIndex", "FailJob", "Ignore"];
            errors.push(action.not_supported(&known));
        }
    }
    let codes = rule.child("onExitCodes");
    if codes.is_set() {
        exit_codes(spec, &codes, errors);
    }
    let conditions = rule.child("onPodConditions");
    too_many(&conditions, MAX_RULES, errors);
    for pattern in conditions.items() {
        crate::kind::rule::qualified_name(&pattern.child("type"), errors);
        let known = ["False", "True", "Unknown"];
        let status = pattern.child("status");
        crate::kind::rule::one_of_if_set(&status, &known, errors);
    }
    let why = match (codes.is_set(), conditions.len() > 0) {
        (true, true) => {
            "specifying both OnExitCodes and OnPodConditions is not supported"
        }
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.push(rule.invalid(why).without_value());
}

fn exit_codes(spec: &Field<'_>, codes: &Field<'_>, errors: &mut Errors) {
    let operator = codes.child("operator");
    match operator.text() {
        "In" | "NotIn" => {}
        "" => errors.push(operator.required("valid values: [\"In\" \"NotIn\"]")),
        _ => errors.push(operator.not_supported(&["In", "NotIn"])),
    }
    let container = codes.child("containerName");
    let names = ["containers", "initContainers"];
    let pods = spec.child("template.spec");
    let mut all = names.iter().flat_map(|it| pods.child(it).items());
    let is_known = all.any(|it| it.child("name").text() == container.text());
    if container.is_set() && !is_known {
        let why =
            "must be one of the container or initContainer names in the pod template";
        errors.push(container.invalid(why));
    }
    let values = codes.child("values");
    if values.len() == 0 {
        let path = values.path.clone();
        let why = "at least one value is required";
        errors.push(FieldError::invalid(path, values.value.clone(), why));
    }
    too_many(&values, MAX_EXIT_CODES, errors);
    let mut seen = BTreeSet::new();
    let numbers: Vec<i64> = values.items().map(|it| it.count()).collect();
    for value in values.items() {
        if operator.text() == "In" && value.count() == 0 {
            errors.push(value.invalid("must not be 0 for the In operator"));
        }
        if !seen.insert(value.count()) {
            errors.push(value.duplicate());
        }
    }
    if !numbers.is_sorted() {
        errors.push(values.invalid("must be ordered"));
    }
}

/// Validates the success policy of an indexed job.
pub(super) fn success(spec: &Field<'_>, errors: &mut Errors) {
    let policy = spec.child("successPolicy");
    if !policy.is_set() {
        return;
    }
    let rules = policy.child("rules");
    if spec.child("completionMode").text() != "Indexed" {
        let shown = go_struct::text(policy.value, "batch.v1.SuccessPolicy");
        let why = "requires indexed completion mode";
        errors.push(go_struct::invalid(&policy, &shown, why));
        return;
    }
    if rules.len() == 0 {
        let why =
            "at least one rules must be specified when the successPolicy is specified";
        errors.push(rules.required(why));
    }
    too_many(&rules, MAX_RULES, errors);
    let completions = spec.child("completions").count();
    for rule in rules.items() {
        success_rule(&rule, completions, errors);
    }
}

fn success_rule(rule: &Field<'_>, completions: i64, errors: &mut Errors) {
    let (count, indices) = (rule.child("succeededCount"), rule.child("succeededIndexes"));
    if !count.is_set() && !indices.is_set() {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(rule.required(why));
    }
    let mut total = 0;
    if indices.is_set() {
        if indices.text().len() as u64 > MAX_INDEXES_LENGTH {
            let path = indices.path.clone();
            errors.push(FieldError::too_long(path, MAX_INDEXES_LENGTH));
        }
        match index::count(indices.text(), completions) {
            Ok(found) => total = found,
            Err(why) => {
                let why = format!("error parsing succeededIndexes: {why}");
                errors.push(indices.invalid(why));
            }
        }
    }
    if !count.is_set() {
        return;
    }
    rule::non_negative(&count, errors);
    if count.count() > completions {
        let why = format!(
            "must be less than or equal to {completions} (the number of specified completions)"
        );
        errors.push(count.invalid(why));
    }
    if indices.is_set() && count.count() > total {
        let why = format!(
            "must be less than or equal to {total} (the number of indexes in the specified \
             succeededIndexes field)"
        );
        errors.push(count.invalid(why));
    }
}

/// Validates the pod replacement policy.
pub(super) fn replacement(spec: &Field<'_>, errors: &mut Errors) {
    let policy = spec.child("podReplacementPolicy");
    let known: &[&str] = if spec.child("podFailurePolicy").is_set() {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    rule::one_of_if_set(&policy, known, errors);
}
