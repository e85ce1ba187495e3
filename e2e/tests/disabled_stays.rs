//! A disabled schedule creates and deletes nothing.

use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, condition, instant, machine_path, node_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(an_existing_machine_stays_beyond_its_window_and_is_removed_when_enabled),
    promise!(enabled_again_inside_the_window_it_is_the_same_machine),
    promise!(nothing_is_created_for_a_disabled_schedule),
    promise!(a_machine_deleted_by_hand_is_recreated_only_where_the_schedule_is_enabled),
    promise!(a_shutdown_that_has_begun_is_completed_though_the_schedule_is_disabled),
];

async fn enable(cluster: &Cluster, enabled: bool) {
    let patch = json!({"spec": {"schedule": {"enabled": enabled}}});
    cluster.patch(&machine_path("worker"), &patch).await;
    cluster.settle().await;
}

async fn an_existing_machine_stays_beyond_its_window_and_is_removed_when_enabled() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    enable(&cluster, false).await;
    cluster.advance_to("2026-03-07T12:00:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Disabled");
    assert_eq!(status["inSchedule"], false);
    assert_eq!(
        condition(&status, "Scheduled")["reason"],
        "ScheduleDisabled"
    );
    assert_eq!(
        status["machineRef"]["uid"],
        active["status"]["machineRef"]["uid"]
    );
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(node["spec"].get("unschedulable"), None);
    enable(&cluster, true).await;
    let limit = instant("2026-03-07T12:01:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn enabled_again_inside_the_window_it_is_the_same_machine() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    enable(&cluster, false).await;
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    enable(&cluster, true).await;
    let is_active = |object: &Value| object["status"]["phase"] == "Active";
    let again = cluster
        .wait_briefly(&machine_path("worker"), is_active)
        .await;
    assert_eq!(
        again["status"]["machineRef"]["uid"],
        active["status"]["machineRef"]["uid"]
    );
}

async fn nothing_is_created_for_a_disabled_schedule() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"]["enabled"] = json!(false);
    cluster.apply(&worker).await;
    let is_disabled = |object: &Value| object["status"]["phase"] == "Disabled";
    cluster
        .wait_briefly(&machine_path("worker"), is_disabled)
        .await;
    cluster.advance_to("2026-03-07T15:00:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Disabled");
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
}

async fn a_machine_deleted_by_hand_is_recreated_only_where_the_schedule_is_enabled() {
    for enabled in [false, true] {
        let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
        let _operator = cluster.operator();
        let active = cluster.bring_up(&scheduled_machine("worker")).await;
        enable(&cluster, enabled).await;
        let [_, _, path] = cluster.owned_paths("worker");
        cluster.delete(&path).await;
        let before = &active["status"]["machineRef"]["uid"];
        let has_gone = |machine: &Value| machine["metadata"]["uid"] != *before;
        cluster.wait_briefly(&path, has_gone).await;
        if enabled {
            cluster
                .wait_briefly(&path, |machine| !machine.is_null())
                .await;
        }
        cluster.advance_to("2026-03-06T15:05:00Z").await;
        let again = cluster.get(&path).await.unwrap_or(Value::Null);
        assert_eq!(again.is_null(), !enabled, "{again:#}");
    }
}

async fn a_shutdown_that_has_begun_is_completed_though_the_schedule_is_disabled() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    cluster.advance_to("2026-03-06T23:01:00Z").await;
    enable(&cluster, false).await;
    let limit = instant("2026-03-06T23:06:00Z");
    cluster.wait_for_phase("worker", "Disabled", limit).await;
    let [_, _, path] = cluster.owned_paths("worker");
    cluster.wait_until_gone(&path, limit).await;
}
