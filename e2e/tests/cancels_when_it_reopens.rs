//! If the window opens again before Cluster API was requested to delete a machine that is shutting
//! down, the same machine stays.

use fivespot_api::name;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Operator, instant, machine_path, node_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(an_edited_schedule_ends_the_drain),
    promise!(a_window_that_opens_again_ends_the_drain_on_the_second),
    promise!(a_node_that_somebody_else_cordoned_stays_cordoned),
    promise!(a_machine_that_is_being_deleted_is_replaced),
];

/// A worker at its window's closing time whose last pod cannot be evicted.
async fn held_at_closing(worker: &Value) -> (Cluster, Operator, Value) {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    let active = cluster.bring_up(worker).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    let machine = active["status"]["machineRef"]["uid"].clone();
    cluster.advance_to(CLOSING).await;
    assert_eq!(
        cluster.status("worker").await["phase"],
        "ShuttingDown",
        "the drain has begun"
    );
    (cluster, operator, machine)
}

async fn assert_in_service(cluster: &Cluster, machine: &Value) {
    let is_in_service = |object: &Value| {
        let status = &object["status"];
        status["phase"] == "Active" && status.get("shutdown").is_none()
    };
    let worker = cluster
        .wait_briefly(&machine_path("worker"), is_in_service)
        .await;
    assert_eq!(worker["status"]["machineRef"]["uid"], *machine);
    let [_, _, path] = cluster.owned_paths("worker");
    let found = cluster.get(&path).await.unwrap();
    assert_eq!(found["metadata"]["uid"], *machine);
    assert_eq!(found["metadata"].get("deletionTimestamp"), None);
}

async fn an_edited_schedule_ends_the_drain() {
    let (cluster, _operator, machine) =
        held_at_closing(&scheduled_machine("worker")).await;
    cluster.advance_to("2026-03-06T23:01:00Z").await;
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(node["spec"]["unschedulable"], true);
    let longer = json!({"spec": {"schedule": {"hoursOfDay": ["9-18"]}}});
    cluster.patch(&machine_path("worker"), &longer).await;
    cluster.settle().await;
    assert_in_service(&cluster, &machine).await;
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(node["spec"].get("unschedulable"), None);
    let marker = node["metadata"]["annotations"].get(name::CORDONED_ANNOTATION);
    assert_eq!(marker, None);
    cluster.advance_to("2026-03-06T23:30:00Z").await;
    assert_in_service(&cluster, &machine).await;
    let [_, _, path] = cluster.owned_paths("worker");
    let found = cluster.get(&path).await.unwrap();
    let annotations = found["metadata"]["annotations"].as_object().unwrap();
    assert!(
        !annotations.keys().any(|key| key.contains("exclude")),
        "{found:#}"
    );
}

async fn a_window_that_opens_again_ends_the_drain_on_the_second() {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"] = json!({"cron": "50-59/5 22 * * *", "duration": "3m"});
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&worker).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    cluster.advance_to("2026-03-06T22:54:59Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
    cluster.advance_to("2026-03-06T22:55:00Z").await;
    assert_in_service(&cluster, &active["status"]["machineRef"]["uid"]).await;
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(node["spec"].get("unschedulable"), None);
}

async fn a_node_that_somebody_else_cordoned_stays_cordoned() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let worker = scheduled_machine("worker");
    let active = cluster.bring_up(&worker).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    let cordon = json!({"spec": {"unschedulable": true}});
    cluster.patch(&node_path("worker"), &cordon).await;
    cluster.advance_to("2026-03-06T23:01:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
    let longer = json!({"spec": {"schedule": {"hoursOfDay": ["9-18"]}}});
    cluster.patch(&machine_path("worker"), &longer).await;
    cluster.settle().await;
    assert_in_service(&cluster, &active["status"]["machineRef"]["uid"]).await;
    let node = cluster.get(&node_path("worker")).await.unwrap();
    assert_eq!(node["spec"]["unschedulable"], true);
    assert_eq!(cluster.operator_writes_to("nodes"), [""; 0]);
}

async fn a_machine_that_is_being_deleted_is_replaced() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.advance_to("2026-03-06T23:00:01Z").await;
    let longer = json!({"spec": {"schedule": {"hoursOfDay": ["9-18"]}}});
    cluster.patch(&machine_path("worker"), &longer).await;
    let limit = instant("2026-03-06T23:01:00Z");
    let again = cluster.wait_for_phase("worker", "Active", limit).await;
    assert_ne!(
        again["status"]["machineRef"]["uid"],
        active["status"]["machineRef"]["uid"]
    );
    assert_eq!(cluster.operator_writes_to("machines").len(), 4);
}
