//! Each rule on each layer, with its own examples.

use fivespot_api::resource::{RESOURCES, SCHEDULED_MACHINE};
use fivespot_api::rules::{Layer, RULES, Rule};
use serde_json::Value;

use super::evaluator::{Evaluator, denial};

/// Evaluates the example of a rule, as a create or, for a rule about a change, as an update.
fn errors_of_example(evaluator: &Evaluator, rule: &Rule, example: &str) -> Vec<String> {
    let mut object = rule.example(example);
    match rule.before(example) {
        Some(before) => {
            if let Some(status) = before.get("status") {
                object["status"] = status.clone();
            }
            evaluator.update(before, object)
        }
        None => evaluator.create(object),
    }
}

fn object_name(rule: &Rule, example: &str) -> String {
    rule.example(example)["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn every_accepted_example_is_admitted_by_every_layer() {
    for resource in &RESOURCES {
        for evaluator in [
            Evaluator::shipped_of(resource),
            Evaluator::crd_alone_of(resource),
            Evaluator::old_crd_alone_of(resource),
            Evaluator::policy_alone_of(resource),
        ] {
            for rule in resource.rules() {
                for example in rule.requirement.examples.accepts() {
                    let errors = errors_of_example(&evaluator, rule, example);
                    assert_eq!(errors, [""; 0], "{} {example}", rule.id);
                }
            }
        }
    }
}

#[test]
fn the_crd_alone_rejects_every_rejected_example_once_at_its_field() {
    for resource in &RESOURCES {
        let evaluators = [
            Evaluator::crd_alone_of(resource),
            Evaluator::old_crd_alone_of(resource),
        ];
        let rules = resource.rules().iter();
        for rule in rules.filter(|rule| rule.requirement.layer != Layer::Policy) {
            for (evaluator, example) in evaluators.iter().flat_map(|evaluator| {
                rule.requirement
                    .examples
                    .rejects()
                    .iter()
                    .map(move |it| (evaluator, it))
            }) {
                let errors = errors_of_example(evaluator, rule, example);
                let [only] = errors.as_slice() else {
                    panic!("{} {example}: {errors:?}", rule.id);
                };
                let is_missing =
                    rule.requirement.message.starts_with("must be set, unless");
                let value = if is_missing { "Required" } else { "Invalid" };
                let (field, text) =
                    only.split_once(&format!(": {value} value: ")).unwrap();
                let field = field.replace("[0]", "[]");
                assert_eq!(field, rule.path, "{} {example}", rule.id);
                assert!(
                    text.ends_with(rule.requirement.message),
                    "{} {example}: {only}",
                    rule.id
                );
            }
        }
    }
}

#[test]
fn the_policy_alone_rejects_every_rejected_example_once_with_the_message() {
    for resource in &RESOURCES {
        let evaluator = Evaluator::policy_alone_of(resource);
        for rule in resource.rules() {
            for example in rule.requirement.examples.rejects() {
                let name = object_name(rule, example);
                if rule.path == "metadata.name" && !is_object_name(&name) {
                    continue;
                }
                let expected = denial(resource, &name, &rule.full_message());
                let errors = errors_of_example(&evaluator, rule, example);
                assert_eq!(errors, [expected], "{} {example}", rule.id);
            }
        }
    }
}

/// Whether a server evaluates policies for an object with that name.
fn is_object_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
}

#[test]
fn the_crd_alone_admits_the_rejected_examples_of_policy_only_rules() {
    for resource in &RESOURCES {
        let evaluator = Evaluator::crd_alone_of(resource);
        let rules = resource.rules().iter();
        let rules = rules.filter(|rule| rule.requirement.layer == Layer::Policy);
        for rule in rules.filter(|rule| rule.path != "metadata.name") {
            for example in rule.requirement.examples.rejects() {
                let errors = errors_of_example(&evaluator, rule, example);
                assert_eq!(errors, [""; 0], "{} {example}", rule.id);
            }
        }
    }
}

#[test]
fn an_object_that_breaks_many_rules_gets_all_messages_from_the_crd_and_the_first_from_the_policy()
 {
    let mut object = RULES[1].example("five minutes");
    object["spec"]["nodeDrainTimeout"] = Value::from("25h");
    object["spec"]["schedule"]["hoursOfDay"] = serde_json::json!(["9-17", "24"]);
    let from_crd = Evaluator::crd_alone().create(object.clone());
    assert_eq!(
        from_crd,
        [
            "spec.schedule.hoursOfDay[1]: Invalid value: \"24\": hours must be from 0 to 23",
            "spec.gracefulShutdownTimeout: Invalid value: \"five minutes\": must be a duration \
             string such as '5m', '30s', or '1h'",
            "spec.nodeDrainTimeout: Invalid value: \"25h\": must be at most 24h",
        ]
    );
    let evaluator = Evaluator::policy_alone();
    let decision = evaluator.decide(&evaluator.stored(object), None);
    let message = &decision.denied().unwrap().message;
    assert_eq!(
        *message,
        denial(SCHEDULED_MACHINE, "worker", &RULES[1].full_message())
    );
}
