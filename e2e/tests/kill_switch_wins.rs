//! The kill switch takes a machine out at once, whatever the schedule, the grace or a
//! disruption budget say, and lets it back when it is released.

use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, condition, instant, machine_path, scheduled_machine,
};
use serde_json::{Value, json};

/// An Active worker whose last pod may not be evicted.
async fn held(cluster: &Cluster) -> Value {
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    active
}

async fn set_kill_switch(cluster: &Cluster, is_set: bool) {
    let patch = json!({"spec": {"killSwitch": is_set}});
    cluster.patch(&machine_path("worker"), &patch).await;
    cluster.clock().quiet().await;
}

async fn assert_going_without_drain(cluster: &Cluster) {
    let [_, _, path] = cluster.triple("worker");
    let machine = cluster.get(&path).await.unwrap();
    assert_ne!(machine["metadata"]["deletionTimestamp"], Value::Null);
    let annotations = machine["metadata"]["annotations"].as_object().unwrap();
    for exclude in [
        "exclude-node-draining",
        "exclude-wait-for-node-volume-detach",
    ] {
        assert!(
            annotations.contains_key(&format!("machine.cluster.x-k8s.io/{exclude}")),
            "{machine:#}"
        );
    }
}

#[tokio::test]
async fn an_active_machine_goes_at_once_and_comes_back_when_the_switch_is_released() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    let active = held(&cluster).await;
    set_kill_switch(&cluster, true).await;
    assert_going_without_drain(&cluster).await;
    assert_eq!(cluster.operator_told("pods/eviction"), [""; 0]);

    let limit = instant("2026-03-06T15:02:00Z");
    let killed = cluster.wait_for_phase("worker", "Terminated", limit).await;
    for path in cluster.triple("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    let ready = condition(&killed["status"], "Ready");
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("True"), &json!("Terminated"))
    );
    let scheduled = condition(&killed["status"], "Scheduled");
    assert_eq!(scheduled["reason"], "KillSwitchActivated");

    cluster.pass_to("2026-03-06T16:00:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Terminated");
    assert_eq!(
        cluster.operator_told("machines").len(),
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

#[tokio::test]
async fn a_machine_that_is_leaving_goes_at_once() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    held(&cluster).await;
    cluster.pass_to("2026-03-06T23:01:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
    set_kill_switch(&cluster, true).await;
    assert_going_without_drain(&cluster).await;
    let shutdown = &cluster.status("worker").await["shutdown"];
    assert_eq!(shutdown["reason"], "KillSwitch");
    assert_eq!(shutdown["deadline"], "2026-03-06T23:00:00Z");
    let limit = instant("2026-03-06T23:02:00Z");
    cluster.wait_for_phase("worker", "Terminated", limit).await;
}

#[tokio::test]
async fn a_machine_that_cluster_api_is_draining_goes_at_once() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    held(&cluster).await;
    let [_, _, path] = cluster.triple("worker");
    cluster.delete(&path).await;
    cluster.pass_to("2026-03-06T22:52:00Z").await;
    assert!(cluster.get(&path).await.is_some(), "the budget holds it");
    set_kill_switch(&cluster, true).await;
    assert_going_without_drain(&cluster).await;
    let limit = instant("2026-03-06T22:53:00Z");
    cluster.wait_for_phase("worker", "Terminated", limit).await;
}

#[tokio::test]
async fn a_disabled_machine_and_a_deleted_one_go_at_once_too() {
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
        cluster.pass_to("2026-03-06T15:02:00Z").await;
        set_kill_switch(&cluster, true).await;
        assert_going_without_drain(&cluster).await;
        let limit = instant("2026-03-06T15:03:00Z");
        let [_, _, path] = cluster.triple("worker");
        cluster.wait_until_gone(&path, limit).await;
    }
}
