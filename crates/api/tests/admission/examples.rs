//! The policies under `examples/policies`, evaluated by the admission engine.

use std::sync::Arc;

use fivespot_api::name;
use kubemu_admission::KubeVersion;
use kubemu_admission::policy::{Binding, Operation, Policies, Policy, Request, User};
use serde_json::{Value, json};

use super::evaluator::KIND;

const OPERATOR: &str = "system:serviceaccount:5spot-system:5spot-controller";

fn policies(file: &str) -> Policies {
    let path = format!(
        "{}/../../examples/policies/{file}",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let [policy, binding] =
        <[Value; 2]>::try_from(serde_saphyr::from_multiple::<Value>(&text).unwrap())
            .unwrap();
    let policy = Policy::compile(&policy, KubeVersion::default()).unwrap();
    let binding = Binding::compile(&binding).unwrap();
    Policies::new([Arc::new(policy)], [Arc::new(binding)])
}

/// A ScheduledMachine with these finalizers, and with a reference to the Machine `has`, if any.
fn object(finalizers: &[&str], has: Option<&str>) -> Value {
    let status = has.map_or(json!({}), |name| json!({"machineRef": {"name": name}}));
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachine",
        "metadata": {
            "name": "worker",
            "namespace": "team-a",
            "deletionTimestamp": "2026-03-06T21:30:00Z",
            "finalizers": finalizers,
        },
        "spec": {},
        "status": status,
    })
}

/// Why the update is rejected; empty if it is admitted.
fn denial_message(user: &str, old: &Value, new: &Value) -> String {
    let user = User {
        name: user.to_owned(),
        ..User::default()
    };
    let mut request = Request::create(KIND, name::PLURAL, new);
    request.operation = Operation::Update;
    request.old_object = Some(old);
    request.user = &user;
    let decision = policies("keep-finalizer.yaml").decide(&request, &());
    let message = decision.denied().map(|it| it.message.clone());
    let message = message.unwrap_or_default();
    let why = message.split_once("denied request: ");
    why.map_or(message.clone(), |(_, why)| why.to_owned())
}

const OURS: &str = name::FINALIZER;

#[test]
fn only_the_operator_removes_the_finalizer_of_an_existing_machine() {
    let old = object(&[OURS, "a.example/b"], Some("worker"));
    let new = object(&["a.example/b"], Some("worker"));
    let refused = denial_message("jane", &old, &new);
    assert!(refused.starts_with("metadata.finalizers: "), "{refused}");
    assert_eq!(denial_message(OPERATOR, &old, &new), "");
    let none = object(&[], Some("worker"));
    assert_ne!(denial_message("jane", &old, &none), "");
}

#[test]
fn other_finalizers_and_those_without_a_machine_can_be_removed() {
    let old = object(&[OURS, "a.example/b"], Some("worker"));
    let new = object(&[OURS], Some("worker"));
    assert_eq!(denial_message("jane", &old, &new), "");
    let (old, new) = (object(&[OURS], None), object(&[], None));
    assert_eq!(denial_message("jane", &old, &new), "");
}

#[test]
fn only_the_operator_can_remove_the_machine_reference() {
    let old = object(&[OURS], Some("worker"));
    let new = object(&[OURS], None);
    let refused = denial_message("jane", &old, &new);
    assert!(refused.starts_with("status.machineRef: "), "{refused}");
    assert_eq!(denial_message(OPERATOR, &old, &new), "");
}
