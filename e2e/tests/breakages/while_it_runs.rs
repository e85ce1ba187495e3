//! Breakages of a machine that runs, and two at the same time.

use fivespot_api::name;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, instant, machine_path, node_path, scheduled_machine,
};
use serde_json::json;

use super::{IN_WINDOW, shows, with};

pub(super) async fn the_time_zone_is_unknown_and_there_is_no_cluster() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let worker = with(|spec| spec["schedule"]["timezone"] = json!("Europe/Zurch"));
    cluster.apply(&worker).await;
    let title = "the time zone is unknown, and the Cluster does not exist";
    shows(&cluster, title).await;
}

pub(super) async fn the_cluster_is_paused_and_the_machine_is_deleted() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let pause = json!({"spec": {"paused": true}});
    cluster.patch(&cluster.cluster_path(), &pause).await;
    cluster.delete(&machine_path("worker")).await;
    let title = "the Cluster is paused, and the ScheduledMachine is deleted";
    shows(&cluster, title).await;
    let resume = json!({"spec": {"paused": false}});
    cluster.patch(&cluster.cluster_path(), &resume).await;
}

/// Two hosts with one name in the workload cluster: its Node is that of the Machine that came first.
pub(super) async fn two_machines_have_one_node() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let owner =
        json!({"metadata": {"annotations": {"cluster.x-k8s.io/machine": "another"}}});
    cluster.patch(&node_path("worker"), &owner).await;
    let taints = json!([{"key": "workload", "value": "batch", "effect": "NoSchedule"}]);
    let tainted = json!({"spec": {"nodeTaints": taints}});
    cluster.patch(&machine_path("worker"), &tainted).await;
    shows(&cluster, "the Node belongs to another Machine").await;
}

pub(super) async fn the_host_is_reclaimed() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let worker = with(|spec| spec["killIfCommands"] = json!(["blender"]));
    cluster.bring_up(&worker).await;
    let [requested, reason, at] = name::RECLAIM_REQUEST;
    let signal = json!({"metadata": {"annotations": {
        requested: "true", reason: "process-match: blender", at: IN_WINDOW,
    }}});
    cluster.patch(&node_path("worker"), &signal).await;
    shows(&cluster, "the host was reclaimed").await;
}

pub(super) async fn the_kind_of_the_provider_is_removed() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let crd = "remotemachines.infrastructure.cluster.x-k8s.io";
    cluster
        .delete(&format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}"
        ))
        .await;
    let title = "the kind of the infrastructure is removed while the machine runs";
    shows(&cluster, title).await;
}

pub(super) async fn the_shared_schedule_does_not_exist() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = with(|spec| {
        spec["schedule"] = json!({
            "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
            "kind": "TimeBasedSpotSchedule",
            "name": "office",
        });
    });
    cluster.apply(&worker).await;
    cluster.advance_to("2026-03-06T15:11:00Z").await;
    shows(&cluster, "the shared schedule does not exist").await;
}

pub(super) async fn the_node_is_not_ready_and_the_window_closes() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    let stopped =
        json!({"metadata": {"annotations": {"sim.5spot.finos.org/kubelet": "stopped"}}});
    cluster.patch(&node_path("worker"), &stopped).await;
    cluster.advance_to(CLOSING).await;
    let title = "the Node is not ready, and its drain ends at the deadline";
    shows(&cluster, title).await;
}

pub(super) async fn a_deleted_machine_has_a_host_that_stays() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let [_, infrastructure, _] = cluster.owned_paths("worker");
    cluster.hold(&infrastructure).await;
    cluster.delete(&machine_path("worker")).await;
    let title =
        "the ScheduledMachine is deleted, and the provider does not remove the host";
    shows(&cluster, title).await;
}
