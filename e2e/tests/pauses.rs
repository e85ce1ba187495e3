//! While a ScheduledMachine, its Cluster or its Machine is paused, the operator changes nothing,
//! whatever is requested. Afterwards it catches up.

use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, condition, instant, machine_path, node_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(with_a_paused_scheduled_machine),
    promise!(with_a_paused_cluster),
    promise!(with_a_paused_machine),
    promise!(a_window_that_opens_while_paused_makes_a_machine_afterwards),
];

const PAUSED: &str = "cluster.x-k8s.io/paused";

/// Pauses an object before the window closes. Then closes the window, sets the kill switch and
/// deletes.
async fn is_left_alone(path: impl Fn(&Cluster) -> String, pause: &Value, resume: &Value) {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let path = path(&cluster);
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.patch(&path, pause).await;
    cluster.settle().await;
    let before = cluster.operator_writes().len();

    cluster.advance_to("2026-03-06T23:30:00Z").await;
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&machine_path("worker"), &kill).await;
    cluster.delete(&machine_path("worker")).await;
    cluster.advance_to("2026-03-07T00:00:00Z").await;

    let touched: Vec<String> = cluster.operator_writes()[before..]
        .iter()
        .filter(|event| event.subresource != "status")
        .map(|event| format!("{} {}", event.verb, event.path))
        .collect();
    assert_eq!(touched, [""; 0]);
    for path in cluster.owned_paths("worker") {
        let object = cluster.get(&path).await.unwrap();
        assert_eq!(object["metadata"].get("deletionTimestamp"), None);
    }
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(node["spec"].get("unschedulable"), None);
    let ready = condition(&cluster.status("worker").await, "Ready");
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("Paused"))
    );

    cluster.patch(&path, resume).await;
    let limit = instant("2026-03-07T00:01:00Z");
    cluster
        .wait_until_gone(&machine_path("worker"), limit)
        .await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
}

fn annotated(value: &Value) -> Value {
    json!({"metadata": {"annotations": {PAUSED: value}}})
}

async fn with_a_paused_scheduled_machine() {
    let path = |_: &Cluster| machine_path("worker");
    is_left_alone(path, &annotated(&json!("")), &annotated(&Value::Null)).await;
}

async fn with_a_paused_cluster() {
    let paused = |paused: bool| json!({"spec": {"paused": paused}});
    is_left_alone(Cluster::cluster_path, &paused(true), &paused(false)).await;
}

async fn with_a_paused_machine() {
    let path = |cluster: &Cluster| cluster.owned_paths("worker")[2].clone();
    is_left_alone(path, &annotated(&json!("")), &annotated(&Value::Null)).await;
}

async fn a_window_that_opens_while_paused_makes_a_machine_afterwards() {
    let cluster = Cluster::start(instant("2026-03-06T13:59:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let mut worker = scheduled_machine("worker");
    worker["metadata"]["annotations"] = json!({PAUSED: ""});
    cluster.apply(&worker).await;
    cluster.advance_to("2026-03-06T15:00:00Z").await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    let path = machine_path("worker");
    cluster.patch(&path, &annotated(&Value::Null)).await;
    let limit = instant("2026-03-06T15:01:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
}
