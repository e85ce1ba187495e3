//! After any idle time, the next change is noticed at once, and the next edge is met on the second.

use fivespot_testkit::{Cluster, instant, machine_path, node_path, scheduled_machine};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(an_edge_after_a_weekend_is_met_on_the_second),
    promise!(a_change_after_idle_hours_is_reconciled_at_once),
    promise!(a_change_of_the_node_after_idle_hours_is_reconciled_at_once),
    promise!(a_machine_created_after_idle_hours_is_reconciled_at_once),
];

async fn an_edge_after_a_weekend_is_met_on_the_second() {
    let cluster = Cluster::start(instant("2026-03-06T23:10:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let limit = instant("2026-03-06T23:11:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    // Between Friday and Monday, New York changes to daylight saving time.
    cluster.advance_to("2026-03-09T12:59:59Z").await;
    let [bootstrap, infrastructure, machine] = cluster.owned_paths("worker");
    assert_eq!(cluster.get(&bootstrap).await, None);
    let edge = instant("2026-03-09T13:00:00Z");
    for path in [bootstrap, infrastructure, machine] {
        cluster
            .wait_for(&path, edge, |object| !object.is_null())
            .await;
    }
    assert_eq!(cluster.clock().now(), edge);
    // The status is written after the objects are created.
    let is_reported =
        |object: &Value| object["status"]["lastScheduledTime"] == "2026-03-09T13:00:00Z";
    cluster
        .wait_for(&machine_path("worker"), edge, is_reported)
        .await;
}

async fn a_change_after_idle_hours_is_reconciled_at_once() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let [_, _, machine] = cluster.owned_paths("worker");
    cluster.hold(&machine).await;
    cluster.advance_to("2026-03-06T22:00:00Z").await;
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&machine_path("worker"), &kill).await;
    let now = cluster.clock().now();
    let is_going = |machine: &Value| !machine["metadata"]["deletionTimestamp"].is_null();
    cluster.wait_for(&machine, now, is_going).await;
    assert_eq!(cluster.clock().now(), now);
    cluster.release(&machine).await;
}

async fn a_change_of_the_node_after_idle_hours_is_reconciled_at_once() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeTaints"] = json!([{"key": "workload", "effect": "NoSchedule"}]);
    cluster.bring_up(&worker).await;
    cluster.advance_to("2026-03-06T22:00:00Z").await;
    let node = node_path("worker");
    let none = json!({"spec": {"taints": null}});
    cluster.patch(&node, &none).await;
    let now = cluster.clock().now();
    let is_tainted = |node: &Value| node["spec"]["taints"][0]["key"] == "workload";
    cluster.wait_for(&node, now, is_tainted).await;
    assert_eq!(cluster.clock().now(), now);
}

async fn a_machine_created_after_idle_hours_is_reconciled_at_once() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.advance_to("2026-03-06T22:00:00Z").await;
    cluster.apply(&scheduled_machine("worker")).await;
    let [_, _, machine] = cluster.owned_paths("worker");
    let now = cluster.clock().now();
    cluster
        .wait_for(&machine, now, |machine| !machine.is_null())
        .await;
    assert_eq!(cluster.clock().now(), now);
}
