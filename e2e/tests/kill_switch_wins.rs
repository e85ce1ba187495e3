//! The kill switch removes a machine at once, regardless of the schedule, the grace period and
//! disruption budgets. The machine is created again when the switch is released.

use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, condition, instant, machine_path, scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};
use crate::reclaims_the_host::refuse_updates;

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(
        an_active_machine_is_removed_at_once_and_recreated_when_the_switch_is_released
    ),
    promise!(a_machine_that_is_shutting_down_is_removed_at_once),
    promise!(a_machine_that_cluster_api_is_draining_is_removed_at_once),
    promise!(a_disabled_and_a_deleted_machine_are_removed_at_once_too),
    promise!(a_machine_whose_host_cluster_api_never_claims_is_removed_after_a_minute)
        .on_embedded_alone("needs a policy that keeps Cluster API from owning any host"),
];

const EXCLUSIONS: [&str; 2] = [
    "machine.cluster.x-k8s.io/exclude-node-draining",
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
];

/// An Active worker whose last pod cannot be evicted.
async fn held(cluster: &Cluster) -> Value {
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    let [_, _, machine] = cluster.owned_paths("worker");
    cluster.hold(&machine).await;
    active
}

async fn set_kill_switch(cluster: &Cluster, is_set: bool) {
    let patch = json!({"spec": {"killSwitch": is_set}});
    cluster.patch(&machine_path("worker"), &patch).await;
    cluster.settle().await;
}

/// Waits until the worker's Machine is deleted without a drain. Returns the path of the object that
/// is held.
async fn goes_without_drain(cluster: &Cluster) -> String {
    let [_, _, path] = cluster.owned_paths("worker");
    let is_going = |machine: &Value| {
        let meta = &machine["metadata"];
        let annotations = &meta["annotations"];
        !meta["deletionTimestamp"].is_null()
            && EXCLUSIONS.iter().all(|key| annotations.get(key).is_some())
    };
    cluster.wait_briefly(&path, is_going).await;
    path
}

async fn a_machine_whose_host_cluster_api_never_claims_is_removed_after_a_minute() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let hosts = ("infrastructure.cluster.x-k8s.io", "remotemachines");
    let unowned = "!has(object.metadata.ownerReferences) || \
                   object.metadata.ownerReferences.all(owner, owner.kind != 'Machine')";
    refuse_updates(&cluster, hosts, unowned).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let [_, host, machine] = cluster.owned_paths("worker");
    let is_there = |_: &Value| true;
    cluster.wait_briefly(&machine, is_there).await;
    set_kill_switch(&cluster, true).await;
    let killed = cluster.clock().now();
    let is_going = |object: &Value| object["metadata"]["deletionTimestamp"].is_string();
    cluster
        .advance_until(killed + SignedDuration::from_secs(58))
        .await;
    assert!(!is_going(&cluster.get(&machine).await.unwrap()));
    cluster
        .advance_until(killed + SignedDuration::from_secs(62))
        .await;
    for path in [machine, host] {
        let left = cluster.get(&path).await;
        assert!(left.is_none_or(|left| is_going(&left)), "{path}");
    }
}

async fn an_active_machine_is_removed_at_once_and_recreated_when_the_switch_is_released()
{
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    let active = held(&cluster).await;
    set_kill_switch(&cluster, true).await;
    let held = goes_without_drain(&cluster).await;
    assert_eq!(cluster.operator_writes_to("pods/eviction"), [""; 0]);
    cluster.release(&held).await;

    let limit = instant("2026-03-06T15:05:00Z");
    let killed = cluster.wait_for_phase("worker", "Terminated", limit).await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    let ready = condition(&killed["status"], "Ready");
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("True"), &json!("Terminated"))
    );
    let scheduled = condition(&killed["status"], "Scheduled");
    assert_eq!(scheduled["reason"], "KillSwitchActivated");

    cluster.advance_to("2026-03-06T16:00:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Terminated");
    assert_eq!(
        cluster.operator_writes_to("machines").len(),
        3,
        "nothing comes back"
    );
    set_kill_switch(&cluster, false).await;
    let limit = instant("2026-03-06T16:01:00Z");
    let again = cluster.wait_for_phase("worker", "Active", limit).await;
    assert_ne!(
        again["status"]["machineRef"]["uid"],
        active["status"]["machineRef"]["uid"]
    );
}

async fn a_machine_that_is_shutting_down_is_removed_at_once() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    held(&cluster).await;
    cluster.advance_to("2026-03-06T23:01:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
    set_kill_switch(&cluster, true).await;
    let held = goes_without_drain(&cluster).await;
    let shutdown = &cluster.status("worker").await["shutdown"];
    assert_eq!(shutdown["reason"], "KillSwitch");
    assert_eq!(shutdown["deadline"], "2026-03-06T23:00:00Z");
    cluster.release(&held).await;
    let limit = instant("2026-03-06T23:05:00Z");
    cluster.wait_for_phase("worker", "Terminated", limit).await;
}

async fn a_machine_that_cluster_api_is_draining_is_removed_at_once() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    held(&cluster).await;
    let [_, _, path] = cluster.owned_paths("worker");
    cluster.delete(&path).await;
    cluster.advance_to("2026-03-06T22:52:00Z").await;
    assert!(cluster.get(&path).await.is_some(), "the budget holds it");
    set_kill_switch(&cluster, true).await;
    let held = goes_without_drain(&cluster).await;
    cluster.release(&held).await;
    let limit = instant("2026-03-06T22:56:00Z");
    cluster.wait_for_phase("worker", "Terminated", limit).await;
}

async fn a_disabled_and_a_deleted_machine_are_removed_at_once_too() {
    let disable = json!({"spec": {"schedule": {"enabled": false}}});
    for is_deleted in [false, true] {
        let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
        let _operator = cluster.operator();
        held(&cluster).await;
        if is_deleted {
            cluster.delete(&machine_path("worker")).await;
        } else {
            cluster.patch(&machine_path("worker"), &disable).await;
        }
        cluster.advance_to("2026-03-06T15:02:00Z").await;
        set_kill_switch(&cluster, true).await;
        let held = goes_without_drain(&cluster).await;
        cluster.release(&held).await;
        let limit = instant("2026-03-06T15:06:00Z");
        let [_, _, path] = cluster.owned_paths("worker");
        cluster.wait_until_gone(&path, limit).await;
    }
}
