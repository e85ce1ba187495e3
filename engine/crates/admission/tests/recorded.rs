//! Cases with recorded results of Kubernetes' own libraries.
//!
//! Each file under `recorded/` has lines of the form `{"id", "question", "kubernetes"}`. The
//! question is a request to `engine/judge/oracle`, and `kubernetes` has the results of its libraries
//! (1.36), as far as they are compared here.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::path::Path;
use std::sync::Arc;

use kubemu_admission::crd::Crd;
use kubemu_admission::policy::{
    Binding, Decision, GroupVersionKind, Policies, Policy, Request, User,
};
use kubemu_admission::{FieldError, KubeVersion};
use serde_json::{Value, json};

/// Evaluates every question of a file with this crate and lists the results that differ.
fn differences(name: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let text = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
    let mut found = Vec::new();
    for line in text.lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let ours = answer(&recorded["question"]);
        let id = recorded["id"].as_str().unwrap();
        for (part, wanted) in recorded["kubernetes"].as_object().unwrap() {
            compare(&format!("{id} {part}"), wanted, &ours[part], &mut found);
        }
    }
    found
}

/// Adds each value that differs; of objects, only the recorded fields are compared.
fn compare(place: &str, wanted: &Value, ours: &Value, found: &mut Vec<String>) {
    match (wanted, ours) {
        (Value::Object(wanted), Value::Object(_)) => {
            for (name, wanted) in wanted {
                let place = format!("{place}.{name}");
                if name == "object" {
                    compare_whole(&place, wanted, &ours["object"], found);
                } else {
                    compare(&place, wanted, &ours[name], found);
                }
            }
        }
        (Value::Array(all), Value::Array(our)) if all.len() == our.len() => {
            for (at, (wanted, ours)) in all.iter().zip(our).enumerate() {
                compare(&format!("{place}[{at}]"), wanted, ours, found);
            }
        }
        (Value::Array(all), Value::Array(our)) => {
            let only = |some: &[Value], others: &[Value]| -> Value {
                let only = some.iter().filter(|it| !others.contains(it));
                only.cloned().collect()
            };
            compare_whole(place, &only(all, our), &only(our, all), found);
        }
        _ => compare_whole(place, wanted, ours, found),
    }
}

fn compare_whole(place: &str, wanted: &Value, ours: &Value, found: &mut Vec<String>) {
    if wanted != ours {
        found.push(format!(
            "{place}\n  kubernetes: {wanted}\n  here:       {ours}"
        ));
    }
}

fn assert_recorded(name: &str) {
    let found = differences(name);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn texts(errors: Option<&Vec<FieldError>>) -> Value {
    let errors = errors.into_iter().flatten();
    errors.map(ToString::to_string).collect()
}

/// This crate's result, in the form of the oracle's.
fn answer(question: &Value) -> Value {
    let version = KubeVersion::default();
    let mut answer = json!({});
    if question["definition"].is_object() {
        let given = &question["definition"];
        let crd = match &question["oldDefinition"] {
            Value::Null => Crd::compile(given, version),
            old => Crd::replace(given, old, version),
        };
        answer["definition"] = json!({"errors": texts(crd.as_ref().err())});
        if let Ok(crd) = crd {
            let writes = list(&question["writes"]).iter();
            answer["writes"] = writes.map(|it| written(&crd, it)).collect();
        }
    }
    let (mut policies, mut errors) = (Vec::new(), Vec::new());
    for policy in list(&question["policies"]) {
        let compiled = Policy::compile(policy, version);
        errors.push(json!({"errors": texts(compiled.as_ref().err())}));
        policies.extend(compiled.ok().map(Arc::new));
    }
    answer["policies"] = errors.into();
    let bindings = list(&question["bindings"]).iter();
    let bindings = bindings.map(|it| Arc::new(Binding::compile(it).unwrap()));
    let policies = Policies::new(policies, bindings.collect::<Vec<_>>());
    let decisions = list(&question["requests"]).iter();
    answer["decisions"] = decisions.map(|it| decided(&policies, it)).collect();
    answer
}

fn written(crd: &Crd, write: &Value) -> Value {
    let mut object = write["object"].clone();
    let version = object["apiVersion"].as_str().unwrap();
    let version = version.rsplit('/').next().unwrap().to_owned();
    let resource = crd.versions().iter().find(|it| it.name() == version);
    let resource = resource.unwrap();
    let unknown = resource.decode(&mut object);
    let result = match write["operation"].as_str().unwrap() {
        "UPDATE" => resource.update(&object, &write["oldObject"]),
        "STATUS" => resource.update_status(&object, &write["oldObject"]),
        _ => resource.create(&object),
    };
    json!({"unknown": unknown, "object": object, "errors": texts(Some(&result.errors)),
        "warnings": result.warnings, "cost": result.cost})
}

fn decided(policies: &Policies, request: &Value) -> Value {
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let kind = ["group", "version", "kind"].map(|name| text(&request["kind"][name]));
    let resource = text(&request["resource"]["resource"]);
    let kind = GroupVersionKind {
        group: &kind[0],
        version: &kind[1],
        kind: &kind[2],
    };
    let user = User::default();
    let mut request = Request::create(kind, &resource, &request["object"]);
    request.namespace = "ns";
    request.name = "a";
    request.user = &user;
    decision(&policies.decide(&request, &()))
}

fn decision(decision: &Decision) -> Value {
    let denied = decision.denied();
    let cost = decision.evaluations.iter().map(|it| it.cost).sum::<u64>();
    json!({"denied": denied.is_some(), "warnings": decision.warnings, "cost": cost,
        "message": denied.map(|it| it.message.clone()).unwrap_or_default()})
}

#[test]
fn policy_variables_support_presence_tests_and_optional_reads() {
    assert_recorded("lazy-variables");
}

#[test]
fn a_branch_of_a_changed_node_rejects_an_unchanged_value() {
    assert_recorded("ratcheting-in-branches");
}

#[test]
fn bounds_near_the_limits_of_an_integer_type_are_in_its_range() {
    assert_recorded("integer-bounds");
}

#[test]
fn urls_are_parsed_and_rejected_as_in_go() {
    assert_recorded("urls");
}

#[test]
fn formats_accept_what_strfmt_accepts() {
    assert_recorded("formats");
}

#[test]
fn patterns_compile_and_match_as_in_go() {
    assert_recorded("patterns");
}

#[test]
fn numbers_times_zones_versions_and_addresses_are_parsed_as_in_go() {
    assert_recorded("conversions");
}

#[test]
fn metadata_of_embedded_resources_is_stored_as_its_go_type_encodes_it() {
    assert_recorded("embedded-metadata");
}

#[test]
fn defaults_of_resources_and_of_their_metadata_make_valid_resources() {
    assert_recorded("embedded-defaults");
}

#[test]
fn replicas_paths_are_read_as_in_unstructured_objects() {
    assert_recorded("scale-paths");
}

/// An integer is compared with the bound as Go on amd64 converts it: a bound out of the range
/// of `int64` becomes the smallest `int64`.
#[test]
fn bounds_out_of_the_integer_range_are_compared_as_in_kubernetes() {
    assert_recorded("wide-bounds");
}

#[test]
fn macros_literals_and_formats_compile_and_run_as_in_kubernetes() {
    assert_recorded("expressions");
}

#[test]
fn an_update_of_a_definition_may_keep_the_errors_that_kubernetes_ignores() {
    assert_recorded("definition-updates");
}

#[test]
fn a_definition_with_several_errors_is_rejected_with_all_of_them() {
    assert_recorded("definition-texts");
}
