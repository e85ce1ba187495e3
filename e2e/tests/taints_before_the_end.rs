//! From the last call on, the Node of a machine shows that and when it leaves.

use fivespot_api::name;
use fivespot_testkit::{
    Cluster, condition, instant, machine_path, node_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(the_last_call_taints_the_node_and_names_the_end),
    promise!(a_later_end_takes_the_last_call_back),
];

/// The worker's window closes at eleven, so its last call is at half past ten.
const BEFORE: &str = "2026-03-06T22:20:00Z";
const LAST_CALL: &str = "2026-03-06T22:30:00Z";

fn with_last_call() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["shutdown"] = json!({"lastCall": "30m"});
    worker
}

/// Whether the Node has the taint of the last call.
fn is_tainted(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array();
    taints.is_some_and(|taints| {
        taints.iter().any(|taint| {
            taint["key"] == name::LAST_CALL_TAINT && taint["effect"] == "PreferNoSchedule"
        })
    })
}

fn leaves_at(node: &Value) -> &Value {
    &node["metadata"]["annotations"][name::LEAVES_AT_ANNOTATION]
}

async fn node(cluster: &Cluster) -> Value {
    cluster.get(&node_path("worker")).await.unwrap_or_default()
}

async fn the_last_call_taints_the_node_and_names_the_end() {
    let cluster = Cluster::start(instant(BEFORE)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&with_last_call()).await;
    cluster.advance_to("2026-03-06T22:29:59Z").await;
    let before = node(&cluster).await;
    assert!(!is_tainted(&before), "{before}");
    assert_eq!(leaves_at(&before), &Value::Null);
    let written = cluster.operator_writes_to("nodes").len();

    cluster.advance_to(LAST_CALL).await;
    let now = instant(LAST_CALL);
    let found = cluster
        .wait_for(&node_path("worker"), now, is_tainted)
        .await;
    assert_eq!(leaves_at(&found), "2026-03-06T23:00:00Z");
    assert_eq!(cluster.operator_writes_to("nodes").len(), written + 1);
    let status = cluster.status("worker").await;
    assert_eq!(
        condition(&status, "NodeTainted"),
        Value::Null,
        "which is about spec.nodeTaints"
    );
    cluster.advance_to("2026-03-06T22:59:59Z").await;
    assert_eq!(cluster.operator_writes_to("nodes").len(), written + 1);
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_later_end_takes_the_last_call_back() {
    let cluster = Cluster::start(instant(BEFORE)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&with_last_call()).await;
    cluster.advance_to(LAST_CALL).await;
    let path = node_path("worker");
    cluster
        .wait_for(&path, instant(LAST_CALL), is_tainted)
        .await;
    let longer = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
        "metadata": {"name": "longer", "namespace": "default"},
        "spec": {
            "targetRef": {"name": "worker"}, "mode": "Run",
            "endTime": "2026-03-07T00:30:00Z",
        },
    });
    cluster.apply(&longer).await;
    let is_withdrawn = |node: &Value| !is_tainted(node) && leaves_at(node).is_null();
    cluster.wait_briefly(&path, is_withdrawn).await;
    let is_forgotten =
        |object: &Value| object["status"].get("appliedNodeTaints").is_none();
    cluster
        .wait_briefly(&machine_path("worker"), is_forgotten)
        .await;
    // It is announced again before the end of the override.
    cluster.advance_to("2026-03-07T00:00:00Z").await;
    let now = instant("2026-03-07T00:00:00Z");
    let found = cluster.wait_for(&path, now, is_tainted).await;
    assert_eq!(leaves_at(&found), "2026-03-07T00:30:00Z");
}
