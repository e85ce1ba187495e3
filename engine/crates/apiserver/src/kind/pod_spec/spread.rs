//! Topology spread constraints of pods.

use kubemu_admission::FieldError;

use super::affinity;
use crate::kind::field::{Errors, Field};
use crate::kind::rule;

/// Validates the topology spread constraints of a pod.
pub(super) fn constraints(list: &Field<'_>, errors: &mut Errors) {
    let all: Vec<Field<'_>> = list.items().collect();
    for (index, constraint) in all.iter().enumerate() {
        rule::above_zero(&constraint.child("maxSkew"), errors);
        let key = constraint.child("topologyKey");
        if key.text().is_empty() {
            errors.push(key.required("can not be empty"));
        }
        let action = constraint.child("whenUnsatisfiable");
        let known = ["DoNotSchedule", "ScheduleAnyway"];
        if !known.contains(&action.text()) {
            errors.push(action.not_supported(&known));
        }
        let same = |it: &&Field<'_>| {
            it.child("topologyKey").text() == key.text()
                && it.child("whenUnsatisfiable").text() == action.text()
        };
        if all.iter().skip(index + 1).find(same).is_some() {
            let path = constraint.path_of("{topologyKey, whenUnsatisfiable}");
            let value = format!("{{{}, {}}}", key.text(), action.text());
            errors.push(FieldError::duplicate(path, value.into()));
        }
        least_domains(constraint, errors);
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let known = ["Honor", "Ignore"];
            rule::one_of_if_set(&constraint.child(policy), &known, errors);
        }
        affinity::label_keys(constraint, errors);
        rule::selector(&constraint.child("labelSelector"), errors);
    }
}

fn least_domains(constraint: &Field<'_>, errors: &mut Errors) {
    let least = constraint.child("minDomains");
    if !least.is_set() {
        return;
    }
    rule::above_zero(&least, errors);
    let action = constraint.child("whenUnsatisfiable").text();
    if action != "DoNotSchedule" {
        let why = format!(
            "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        );
        errors.push(least.invalid(why));
    }
}
