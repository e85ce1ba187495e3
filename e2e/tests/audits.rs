//! In audit mode, what would be done is reported, and nothing is done.

use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, condition, instant, machine_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_day_in_audit_mode_creates_nothing_and_says_what_it_would_do),
    promise!(a_machine_that_exists_does_not_change_to_audit_mode),
    promise!(a_machine_that_is_enforced_again_is_created_in_its_window),
];

async fn enforce(cluster: &Cluster, enforcement: &str) {
    let patch = json!({"spec": {"enforcement": enforcement}});
    cluster.patch(&machine_path("worker"), &patch).await;
}

fn audited() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["enforcement"] = json!("Audit");
    worker
}

fn is_audited(object: &Value) -> bool {
    condition(&object["status"], "Ready")["reason"] == "Audited"
}

/// The reasons of the events about the worker.
async fn reasons(cluster: &Cluster) -> Vec<String> {
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let mut events = cluster.list(path).await;
    events.retain(|event| event["regarding"]["kind"] == "ScheduledMachine");
    events.sort_by_key(|event| event["eventTime"].to_string());
    let reasons = events.iter().filter_map(|event| event["reason"].as_str());
    reasons.map(str::to_owned).collect()
}

async fn a_day_in_audit_mode_creates_nothing_and_says_what_it_would_do() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&audited()).await;
    let path = machine_path("worker");
    let reported = cluster.wait_briefly(&path, is_audited).await;
    assert_eq!(reported["status"]["phase"], "Inactive");
    assert_eq!(reported["status"]["inSchedule"], true);
    assert_eq!(
        condition(&reported["status"], "Ready")["status"],
        "True",
        "nothing is wrong: {reported:#}"
    );
    cluster.advance_to("2026-03-07T00:00:00Z").await;
    let is_over = |object: &Value| object["status"]["inSchedule"] == false;
    let after = cluster.wait_briefly(&path, is_over).await;
    assert_eq!(after["metadata"]["finalizers"], Value::Null);
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    cluster
        .eventually(async || reasons(&cluster).await == ["WouldCreate", "WouldShutDown"])
        .await;
    // It is not held by a finalizer.
    cluster.delete(&path).await;
    assert_eq!(cluster.get(&path).await, None);
}

async fn a_machine_that_exists_does_not_change_to_audit_mode() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let patch = json!({"spec": {"enforcement": "Audit"}});
    let refused = cluster.try_patch(&machine_path("worker"), &patch).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("must not be changed to Audit while the machine exists"),
        "{refused}"
    );
    cluster.advance_to("2026-03-06T23:10:00Z").await;
    let limit = instant("2026-03-06T23:11:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    // Its machine is gone; so is the reason to refuse it, and the finalizer with it.
    enforce(&cluster, "Audit").await;
    let is_released = |object: &Value| object["metadata"]["finalizers"].is_null();
    cluster
        .wait_briefly(&machine_path("worker"), is_released)
        .await;
}

async fn a_machine_that_is_enforced_again_is_created_in_its_window() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&audited()).await;
    cluster
        .wait_briefly(&machine_path("worker"), is_audited)
        .await;
    enforce(&cluster, "Enforce").await;
    let limit = instant("2026-03-06T15:10:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
}
