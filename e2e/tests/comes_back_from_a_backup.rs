//! Restored objects behave as described in `docs/how-to/backup.md`: a ScheduledMachine with a new
//! uid adopts its machine by a label, and continues a shutdown by its status.

use fivespot_api::name;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, condition, instant, machine_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_restored_object_does_not_take_its_machine_over_without_the_label),
    promise!(a_restored_shutdown_keeps_its_deadline),
    promise!(without_its_status_a_shutdown_begins_anew_with_all_its_time),
];

/// Deletes the ScheduledMachine but not its objects, like the loss of a store, and applies its
/// manifest again while no operator runs.
async fn lose_and_restore(cluster: &Cluster) {
    let worker = machine_path("worker");
    let release = json!({"metadata": {"finalizers": null}});
    cluster.patch(&worker, &release).await;
    let orphan = json!({"propagationPolicy": "Orphan"});
    cluster.delete_with(&worker, &orphan).await;
    let now = cluster.clock().now();
    cluster.wait_until_gone(&worker, now).await;
    cluster.apply(&scheduled_machine("worker")).await;
}

/// Labels the three objects with the current uid of the ScheduledMachine.
async fn hand_over(cluster: &Cluster) {
    let worker = cluster.get(&machine_path("worker")).await.unwrap();
    let labels = json!({name::SCHEDULED_MACHINE_UID_LABEL: worker["metadata"]["uid"]});
    for path in cluster.owned_paths("worker") {
        cluster
            .patch(&path, &json!({"metadata": {"labels": labels}}))
            .await;
    }
}

async fn a_restored_object_does_not_take_its_machine_over_without_the_label() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    let before = cluster.bring_up(&scheduled_machine("worker")).await;
    drop(operator);
    lose_and_restore(&cluster).await;
    let _operator = cluster.operator();
    let worker = machine_path("worker");
    let is_refused = |worker: &Value| {
        condition(&worker["status"], "ReferencesValid")["reason"] == "NameTaken"
    };
    cluster.wait_briefly(&worker, is_refused).await;
    for path in cluster.owned_paths("worker") {
        let found = cluster.get(&path).await.unwrap();
        assert_eq!(found["metadata"].get("deletionTimestamp"), None, "{path}");
    }
    hand_over(&cluster).await;
    let is_active = |worker: &Value| worker["status"]["phase"] == "Active";
    let after = cluster.wait_briefly(&worker, is_active).await;
    let machine = "/status/machineRef/uid";
    assert_eq!(after.pointer(machine), before.pointer(machine));
}

/// Drains a worker until the deadline of its shutdown, and deletes and restores it while no
/// operator runs. Returns its status before.
async fn lost_in_a_shutdown(cluster: &Cluster) -> Value {
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:02:00Z");
    let leaving = cluster
        .wait_for_phase("worker", "ShuttingDown", limit)
        .await;
    drop(operator);
    lose_and_restore(cluster).await;
    hand_over(cluster).await;
    cluster.advance_until(instant("2026-03-06T23:03:00Z")).await;
    leaving["status"].clone()
}

/// The shutdown in the status once an operator has reconciled it.
async fn recorded(cluster: &Cluster) -> Value {
    let is_leaving = |worker: &Value| worker["status"]["phase"] == "ShuttingDown";
    let found = cluster
        .wait_briefly(&machine_path("worker"), is_leaving)
        .await;
    found["status"]["shutdown"].clone()
}

async fn a_restored_shutdown_keeps_its_deadline() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let saved = lost_in_a_shutdown(&cluster).await;
    let path = format!("{}/status", machine_path("worker"));
    let restore = json!({"status": {"shutdown": saved["shutdown"]}});
    cluster.patch(&path, &restore).await;
    let _operator = cluster.operator();
    assert_eq!(recorded(&cluster).await, saved["shutdown"]);
    cluster.release_last_pod().await;
    let limit = instant("2026-03-06T23:20:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn without_its_status_a_shutdown_begins_anew_with_all_its_time() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let saved = lost_in_a_shutdown(&cluster).await;
    let _operator = cluster.operator();
    let time = |shutdown: &Value| {
        let at = |field: &str| instant(shutdown[field].as_str().unwrap());
        at("deadline").duration_since(at("startedAt"))
    };
    let anew = recorded(&cluster).await;
    assert_eq!(time(&anew), time(&saved["shutdown"]));
    assert_eq!(anew["machineUID"], saved["shutdown"]["machineUID"]);
    let (before, after) = (&saved["shutdown"]["startedAt"], &anew["startedAt"]);
    assert!(after.as_str() > before.as_str(), "{before} {after}");
    cluster.release_last_pod().await;
    let limit = instant("2026-03-06T23:30:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}
