//! The Node has the taints of the spec, in addition to the taints of other owners.

use fivespot_api::name;
use fivespot_testkit::{
    Cluster, condition, instant, machine_path, node_path, scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_node_is_tainted_when_it_is_ready_and_freed_when_the_spec_is_emptied),
    promise!(a_removed_taint_is_restored_by_the_event_of_the_node),
    promise!(an_admins_taint_of_the_same_key_is_never_touched),
    promise!(a_forged_record_on_the_node_removes_no_taint_of_an_administrator),
    promise!(taints_of_the_node_lifecycle_that_change_at_the_same_time_are_never_lost),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";

fn tainted() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeTaints"] = json!([
        {"key": "workload", "value": "batch", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "ml", "effect": "NoExecute"},
    ]);
    worker
}

async fn set_taints(cluster: &Cluster, taints: Value) {
    let patch = json!({"spec": {"nodeTaints": taints}});
    cluster.patch(&machine_path("worker"), &patch).await;
}

/// A Node's taints as `key=value:effect`, in the order of the Node.
fn taints_of(node: &Value) -> Vec<String> {
    let taints = node["spec"]["taints"].as_array().cloned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let taints = taints.unwrap_or_default().into_iter();
    taints
        .map(|taint| {
            let [key, value, effect] =
                ["key", "value", "effect"].map(|field| text(&taint[field]));
            format!("{key}={value}:{effect}")
        })
        .collect()
}

/// Waits until the Node has exactly these taints in any order, while the operator's time is
/// stopped. Returns the Node.
async fn wait_for_taints(cluster: &Cluster, expected: &[&str]) -> Value {
    let now = cluster.clock().now();
    let are_there = |node: &Value| {
        let mut taints = taints_of(node);
        taints.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        taints == expected
    };
    cluster.wait_for(&node_path("worker"), now, are_there).await
}

async fn node_tainted(cluster: &Cluster) -> Value {
    condition(&cluster.status("worker").await, "NodeTainted")
}

async fn a_node_is_tainted_when_it_is_ready_and_freed_when_the_spec_is_emptied() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&tainted()).await;
    let both = ["workload=batch:NoSchedule", "dedicated=ml:NoExecute"];
    wait_for_taints(&cluster, &both).await;
    let is_reported = |object: &Value| {
        condition(&object["status"], "NodeTainted")["reason"] == "Applied"
    };
    let reported = cluster
        .wait_briefly(&machine_path("worker"), is_reported)
        .await;
    let status = &reported["status"];
    assert_eq!(status["appliedNodeTaints"].as_array().unwrap().len(), 2);
    let tainted = cluster.operator_writes_to("nodes");
    assert_eq!(tainted.len(), 1, "{tainted:?}");

    let changed = json!([{"key": "workload", "value": "web", "effect": "NoSchedule"}]);
    set_taints(&cluster, changed).await;
    wait_for_taints(&cluster, &["workload=web:NoSchedule"]).await;
    set_taints(&cluster, json!([])).await;
    wait_for_taints(&cluster, &[]).await;
    let is_silent =
        |object: &Value| condition(&object["status"], "NodeTainted").is_null();
    cluster
        .wait_briefly(&machine_path("worker"), is_silent)
        .await;
    let status = cluster.status("worker").await;
    assert_eq!(status.get("appliedNodeTaints"), None);
    cluster.advance_to("2026-03-06T20:00:00Z").await;
    assert_eq!(cluster.operator_writes_to("nodes").len(), 3);
}

async fn a_removed_taint_is_restored_by_the_event_of_the_node() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&tainted()).await;
    let both = ["workload=batch:NoSchedule", "dedicated=ml:NoExecute"];
    wait_for_taints(&cluster, &both).await;
    cluster.settle().await;
    let none = json!({"spec": {"taints": null}});
    cluster.patch(&node_path("worker"), &none).await;
    wait_for_taints(&cluster, &both).await;
}

async fn an_admins_taint_of_the_same_key_is_never_touched() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let theirs = json!({"key": "workload", "value": "batch", "effect": "NoSchedule",
                        "timeAdded": "2026-03-01T00:00:00Z"});
    let patch = json!({"spec": {"taints": [theirs]}});
    cluster.patch(&node_path("worker"), &patch).await;
    set_taints(&cluster, tainted()["spec"]["nodeTaints"].clone()).await;
    let is_reported = |object: &Value| {
        condition(&object["status"], "NodeTainted")["reason"] == "TaintOwnershipConflict"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_reported)
        .await;
    let reported = node_tainted(&cluster).await;
    assert_eq!(reported["status"], "False");
    assert!(
        reported["message"]
            .as_str()
            .unwrap()
            .contains("workload:NoSchedule")
    );
    assert_eq!(cluster.status("worker").await["phase"], "Active");
    set_taints(&cluster, json!([])).await;
    let is_silent =
        |object: &Value| condition(&object["status"], "NodeTainted").is_null();
    cluster
        .wait_briefly(&machine_path("worker"), is_silent)
        .await;
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(node["spec"]["taints"], json!([theirs]));
}

async fn a_forged_record_on_the_node_removes_no_taint_of_an_administrator() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let theirs = json!({"key": "example.com/quarantine", "value": "ir-4711",
                        "effect": "NoSchedule"});
    let tainted_by_admin = json!({"spec": {"taints": [theirs]}});
    cluster.patch(&node_path("worker"), &tainted_by_admin).await;
    // A kubelet may write annotations of its Node, but not its taints.
    let record = json!([theirs]).to_string();
    let forged = json!({"metadata": {"annotations": {
        name::APPLIED_TAINTS_ANNOTATION: record,
    }}});
    cluster.patch(&node_path("worker"), &forged).await;
    cluster.settle().await;
    assert_eq!(cluster.operator_writes_to("nodes"), [""; 0]);
    let quarantine = "example.com/quarantine=ir-4711:NoSchedule";
    set_taints(&cluster, tainted()["spec"]["nodeTaints"].clone()).await;
    let both = [
        "workload=batch:NoSchedule",
        "dedicated=ml:NoExecute",
        quarantine,
    ];
    wait_for_taints(&cluster, &both).await;
    set_taints(&cluster, json!([])).await;
    let node = wait_for_taints(&cluster, &[quarantine]).await;
    assert_eq!(node["spec"]["taints"], json!([theirs]));
}

/// Toggles a taint like the node lifecycle controller: reads, changes, and writes with a
/// precondition.
async fn toggle(cluster: &Cluster, key: &str) {
    loop {
        let node = cluster.get(&node_path("worker")).await.unwrap();
        let mut taints = node["spec"]["taints"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let before = taints.len();
        taints.retain(|taint| taint["key"] != key);
        if taints.len() == before {
            taints.push(json!({"key": key, "effect": "NoExecute",
                               "timeAdded": "2026-03-06T15:00:00Z"}));
        }
        let version = &node["metadata"]["resourceVersion"];
        let patch =
            json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        if cluster
            .try_patch(&node_path("worker"), &patch)
            .await
            .is_ok()
        {
            return;
        }
    }
}

async fn taints_of_the_node_lifecycle_that_change_at_the_same_time_are_never_lost() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    for round in 0..40 {
        let value = format!("v{round}");
        let ours = json!([{"key": "workload", "value": value, "effect": "NoSchedule"}]);
        let ours = if round % 5 == 4 { json!([]) } else { ours };
        tokio::join!(
            set_taints(&cluster, ours.clone()),
            toggle(&cluster, "node.kubernetes.io/unreachable"),
            toggle(&cluster, "node.kubernetes.io/disk-pressure"),
        );
        // The number of reconciles per second is limited.
        cluster
            .advance_until(cluster.deadline_in(SignedDuration::from_secs(1)))
            .await;
        let mut expected = Vec::new();
        if round % 2 == 0 {
            expected.push("node.kubernetes.io/disk-pressure=:NoExecute");
            expected.push("node.kubernetes.io/unreachable=:NoExecute");
        }
        let own = format!("workload={value}:NoSchedule");
        if ours != json!([]) {
            expected.push(&own);
        }
        let node = wait_for_taints(&cluster, &expected).await;
        for taint in node["spec"]["taints"].as_array().into_iter().flatten() {
            if taint["key"] != "workload" {
                assert_eq!(taint["timeAdded"], "2026-03-06T15:00:00Z");
            }
        }
    }
}
