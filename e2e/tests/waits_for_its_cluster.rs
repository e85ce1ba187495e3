//! Nothing is created for a Cluster that is missing, being deleted or not initialised. Once the
//! Cluster is ready, the machine is created.

use fivespot_testkit::{
    Cluster, cluster_object, condition, instant, machine_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_cluster_that_is_missing),
    promise!(a_cluster_that_is_not_initialised),
    promise!(a_cluster_that_is_being_deleted_takes_its_machine_along_and_gets_no_other),
];

const CONTROL_PLANE: &str = "sim.5spot.finos.org/control-plane";

async fn assert_waits(cluster: &Cluster, reason: &str) {
    let status = cluster.status("worker").await;
    let references = condition(&status, "ReferencesValid");
    assert_eq!(references["status"], "False", "{status:#}");
    assert_eq!(references["reason"], reason);
    assert_eq!(condition(&status, "Ready")["status"], "False");
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
}

async fn a_cluster_that_is_missing() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply(&scheduled_machine("worker")).await;
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    assert_waits(&cluster, "ClusterNotFound").await;
    cluster.add_cluster().await;
    let limit = instant("2026-03-06T16:01:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
}

async fn a_cluster_that_is_not_initialised() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    let mut slow = cluster_object(cluster.contract());
    slow["metadata"]["annotations"] = json!({CONTROL_PLANE: "never"});
    cluster.apply(&slow).await;
    cluster.apply(&scheduled_machine("worker")).await;
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    assert_waits(&cluster, "ClusterNotReady").await;
    let patch = json!({"metadata": {"annotations": {CONTROL_PLANE: Value::Null}}});
    cluster.patch(&cluster.cluster_path(), &patch).await;
    let limit = instant("2026-03-06T16:01:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
}

async fn a_cluster_that_is_being_deleted_takes_its_machine_along_and_gets_no_other() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let path = cluster.cluster_path();
    cluster.hold(&path).await;
    cluster.delete(&path).await;
    let is_reported = |object: &Value| {
        condition(&object["status"], "ReferencesValid")["reason"] == "ClusterDeleting"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_reported)
        .await;
    cluster.release(&path).await;
    let limit = instant("2026-03-06T15:05:00Z");
    cluster.wait_until_gone(&path, limit).await;
    cluster.advance_to("2026-03-06T15:30:00Z").await;
    assert_waits(&cluster, "ClusterNotFound").await;
}
