//! Tests of the evaluation of observed states, and of the printed report.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::observation::Observation;
use super::promise::{Fact, PROMISES, Part, Promise, Step, Violation};
use super::report::{PromiseResult, Report, Subjects, Verdict};
use crate::{Format, Outcome};

fn machine() -> Value {
    json!({
        "kind": "Machine",
        "metadata": {"name": "one", "uid": "m-1"},
        "spec": {"providerID": "remote://one"},
    })
}

fn pod() -> Value {
    json!({"kind": "Pod", "metadata": {"name": "one"}})
}

fn promise(name: &str) -> &'static Promise {
    PROMISES.iter().find(|it| it.name == name).unwrap()
}

#[test]
fn a_machine_deleted_before_its_pod_is_evicted_breaks_the_promise() {
    let violation = Violation::MachineBeforePod;
    let both = Observation::default()
        .with(Part::Machine, Some(machine()))
        .with(Part::Pod, Some(pod()));
    assert_eq!(violation.find_in(&both), None);
    let pod_alone = Observation::default().with(Part::Pod, Some(pod()));
    assert!(violation.find_in(&pod_alone).is_some());
    let mut ending = pod();
    ending["metadata"]["deletionTimestamp"] = json!("2026-03-09T13:00:00Z");
    let evicted = Observation::default().with(Part::Pod, Some(ending));
    assert_eq!(violation.find_in(&evicted), None);
    assert_eq!(violation.find_in(&Observation::default()), None);
}

#[test]
fn another_machine_of_the_same_name_is_not_the_same_machine() {
    let mut observation = Observation::default().with(Part::Machine, Some(machine()));
    observation.first_machine = Some("m-1".to_owned());
    assert_eq!(Violation::MachineReplaced.find_in(&observation), None);
    observation.first_machine = Some("m-0".to_owned());
    assert!(Violation::MachineReplaced.find_in(&observation).is_some());
}

#[test]
fn an_object_that_is_not_removed_is_reported_with_its_finalizers() {
    let gone = Fact::Gone(Part::Infrastructure);
    assert_eq!(gone.check(&Observation::default()), Ok(()));
    let mut host = json!({"kind": "RemoteMachine", "metadata": {"name": "one"}});
    let message = |host: &Value| {
        let observation =
            Observation::default().with(Part::Infrastructure, Some(host.clone()));
        gone.check(&observation).unwrap_err()
    };
    insta::assert_snapshot!(message(&host), @"RemoteMachine/one still exists and has no deletionTimestamp");
    host["metadata"]["deletionTimestamp"] = json!("2026-03-09T13:00:00Z");
    host["metadata"]["finalizers"] = json!(["remotemachine.k0smotron.io/finalizer"]);
    insta::assert_snapshot!(message(&host), @"RemoteMachine/one was deleted and still exists, with the finalizers remotemachine.k0smotron.io/finalizer");
}

#[test]
fn a_provider_id_must_exist_and_be_the_same_on_machine_and_node() {
    let with_node = |provider_id: Value| {
        let node = json!({"kind": "Node", "spec": {"providerID": provider_id}});
        Observation::default()
            .with(Part::Machine, Some(machine()))
            .with(Part::Node, Some(node))
    };
    let same = Fact::ProviderId;
    assert_eq!(same.check(&with_node(json!("remote://one"))), Ok(()));
    assert!(same.check(&with_node(json!("remote://two"))).is_err());
    assert!(same.check(&with_node(Value::Null)).is_err());
    assert!(same.check(&Observation::default()).is_err());
}

#[test]
fn a_node_counts_as_ready_by_its_condition_alone() {
    let with = |status: &str| {
        let conditions = json!([{"type": "Ready", "status": status}]);
        let node = json!({
            "kind": "Node", "metadata": {"name": "one"}, "status": {"conditions": conditions},
        });
        Fact::NodeReady.check(&Observation::default().with(Part::Node, Some(node)))
    };
    assert_eq!(with("True"), Ok(()));
    assert_eq!(with("Unknown"), Err("Node/one is not Ready".to_owned()));
    let none = Fact::NodeReady.check(&Observation::default());
    assert_eq!(none, Err("there is no Node".to_owned()));
}

#[test]
fn every_promise_has_a_unique_name_and_begins_with_a_machine() {
    let names: BTreeSet<_> = PROMISES.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), PROMISES.len());
    for promise in PROMISES {
        let first = promise.steps.iter().copied().flatten().next();
        assert!(matches!(first, Some(Step::Create(_))), "{}", promise.name);
        // A ScheduledMachine is named after the run and the promise.
        assert!(promise.name.len() <= 30, "{}", promise.name);
    }
}

#[test]
fn the_page_about_providers_lists_every_promise() {
    let page = include_str!("../../../../docs/how-to/check-a-provider.md");
    for promise in PROMISES {
        let row = format!("| `{}` | {} |\n", promise.name, promise.meaning);
        assert!(page.contains(&row), "{row}");
    }
}

fn report(verdicts: &[(&str, Verdict)]) -> Report {
    let mut report = Report::new(Subjects {
        kubernetes: "v1.36.0".to_owned(),
        bootstrap: "bootstrap.cluster.x-k8s.io/v1beta2 K0sWorkerConfig".to_owned(),
        infrastructure: "infrastructure.cluster.x-k8s.io/v1beta2 RemoteMachine"
            .to_owned(),
    });
    report.results = verdicts
        .iter()
        .map(|(name, verdict)| PromiseResult {
            verdict: verdict.clone(),
            seconds: 7,
            ..PromiseResult::not_run(promise(name), String::new())
        })
        .collect();
    report
}

#[test]
fn the_report_says_of_each_promise_what_was_seen() {
    let text = |why: &str| why.to_owned();
    let mut report = report(&[
        ("opens", Verdict::Kept),
        (
            "closes",
            Verdict::Broken(text("after 600 s, there is\nno Node")),
        ),
        (
            "never-comes-up",
            Verdict::NotRun(text("give one with --unreachable")),
        ),
    ]);
    report.leftover = Some(text("namespace 5spot-conformance-x7k2p"));
    let mut out = Vec::new();
    report.print(Format::Text, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
    let mut out = Vec::new();
    report.print(Format::Json, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn the_exit_code_follows_the_worst_promise() {
    let why = || "why".to_owned();
    let outcome = |verdicts: &[(&str, Verdict)]| report(verdicts).outcome();
    let kept = ("opens", Verdict::Kept);
    let broken = ("closes", Verdict::Broken(why()));
    let not_run = ("reopens", Verdict::NotRun(why()));
    assert_eq!(outcome(&[kept.clone(), not_run.clone()]), Outcome::Yes);
    assert_eq!(outcome(&[kept.clone(), broken]), Outcome::No);
    assert_eq!(outcome(&[not_run]), Outcome::NoResult);
    assert_eq!(outcome(&[]), Outcome::NoResult);
    let mut left_behind = report(std::slice::from_ref(&kept));
    left_behind.leftover = Some(why());
    assert_eq!(left_behind.outcome(), Outcome::No);
    let mut interrupted = report(&[kept]);
    interrupted.interrupted = true;
    assert_eq!(interrupted.outcome(), Outcome::NoResult);
}
