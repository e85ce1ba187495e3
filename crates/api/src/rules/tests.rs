use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::example::acceptable_of;
use super::{Examples, Layer, RULES, all, check_value};
use crate::resource::{RESOURCES, SCHEDULED_MACHINE};

#[test]
fn rule_ids_are_unique_and_ascending_for_each_kind() {
    let ids: BTreeSet<_> = all().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), all().count());
    for resource in &RESOURCES {
        let rules = resource.rules();
        assert!(
            rules.is_sorted_by(|one, next| one.id < next.id),
            "{}",
            resource.kind
        );
    }
    for rule in all() {
        let number = rule.id.strip_prefix("SM").map(str::parse::<u16>);
        let is_number = matches!(number, Some(Ok(1..)));
        assert!(is_number && rule.id.len() == 5, "{}", rule.id);
    }
}

#[test]
fn rules_1_to_13_have_the_messages_of_the_admission_document() {
    let duration = "must be a duration string such as '5m', '30s', or '1h'";
    let texts = [
        ("spec.clusterName", "spec.clusterName must not be empty"),
        ("spec.gracefulShutdownTimeout", duration),
        ("spec.nodeDrainTimeout", duration),
        (
            "spec.schedule",
            "cron is mutually exclusive with daysOfWeek and hoursOfDay — set one or the other, not both",
        ),
        (
            "spec.schedule",
            "both daysOfWeek and hoursOfDay must be non-empty",
        ),
        (
            "spec.schedule.daysOfWeek",
            "must be day names or ranges (e.g. 'mon', 'mon-fri', 'mon-wed,fri-sun')",
        ),
        (
            "spec.schedule.hoursOfDay",
            "must be hours or ranges (e.g. '9', '9-17', '0-9,18-23')",
        ),
        (
            "spec.bootstrapSpec.apiVersion",
            "must use a namespaced API group",
        ),
        (
            "spec.bootstrapSpec.apiVersion",
            "must be from an allowed group: bootstrap.cluster.x-k8s.io or k0smotron.io",
        ),
        (
            "spec.bootstrapSpec.kind",
            "spec.bootstrapSpec.kind must not be empty",
        ),
        (
            "spec.infrastructureSpec.apiVersion",
            "must use a namespaced API group",
        ),
        (
            "spec.infrastructureSpec.apiVersion",
            "must be from an allowed group: infrastructure.cluster.x-k8s.io or k0smotron.io",
        ),
        (
            "spec.infrastructureSpec.kind",
            "spec.infrastructureSpec.kind must not be empty",
        ),
    ];
    for (rule, (field, message)) in RULES.iter().zip(texts) {
        assert_eq!(
            (rule.field(), rule.requirement.message),
            (field, message),
            "{}",
            rule.id
        );
    }
}

#[test]
fn the_acceptable_objects_break_no_rule() {
    for resource in &RESOURCES {
        assert_eq!(check_value(resource, &acceptable_of(resource)), []);
    }
}

#[test]
fn every_accepted_example_breaks_no_rule() {
    for rule in all() {
        for example in rule.requirement.examples.accepts() {
            assert_eq!(
                check_value(rule.resource(), &rule.example(example)),
                [],
                "{} {example}",
                rule.id
            );
        }
    }
}

#[test]
fn every_rejected_example_breaks_its_rule_at_its_field() {
    for rule in all().filter(|rule| rule.requirement.layer != Layer::Change) {
        for example in rule.requirement.examples.rejects() {
            let broken = check_value(rule.resource(), &rule.example(example));
            let found = broken.iter().find(|violation| violation.rule == rule.id);
            let field = found.map(|violation| violation.field.replace("[0]", "[]"));
            assert_eq!(field.as_deref(), Some(rule.path), "{} {example}", rule.id);
        }
    }
}

#[test]
fn every_rule_has_accepted_and_rejected_examples_that_parse() {
    for rule in all() {
        assert!(
            !rule.requirement.examples.accepts().is_empty(),
            "{}",
            rule.id
        );
        assert!(
            !rule.requirement.examples.rejects().is_empty(),
            "{}",
            rule.id
        );
        if let Examples::Json { accepts, rejects } = rule.requirement.examples {
            for example in accepts.iter().chain(rejects) {
                assert!(serde_json::from_str::<Value>(example).is_ok(), "{example}");
            }
        }
    }
}

#[test]
fn expressions_need_no_escapes_in_generated_files() {
    for rule in all() {
        assert!(
            !rule.requirement.cel.contains(['\\', '"', '\n', '\t']),
            "{}",
            rule.id
        );
        assert!(
            !rule.requirement.cel.contains("  "),
            "{}: {}",
            rule.id,
            rule.requirement.cel
        );
    }
}

#[test]
fn absent_and_null_fields_violate_only_the_rules_about_absence() {
    let broken = |object: &Value| {
        let all = check_value(SCHEDULED_MACHINE, object).into_iter();
        all.map(|violation| violation.rule).collect::<Vec<_>>()
    };
    let of_class = json!({"metadata": {}, "spec": {"schedule": null, "classRef": {}}});
    assert_eq!(broken(&of_class), [""; 0]);
    let empty = json!({"metadata": {}, "spec": {"schedule": null, "clusterName": null}});
    assert_eq!(broken(&empty), ["SM124", "SM125", "SM126"]);
    let without_form = json!({"spec": {"schedule": {}, "classRef": {}}});
    assert_eq!(broken(&without_form), ["SM005"]);
}
