//! When a ScheduledMachine is deleted, with any propagation policy, its machine leaves first and
//! all three objects are deleted. The ScheduledMachine is removed last.

use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, cluster_object, instant, machine_path, node_path, pod_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(in_the_background),
    promise!(in_the_foreground),
    promise!(even_where_orphans_were_asked_for),
    promise!(one_without_a_machine_is_gone_at_once),
    promise!(deleting_the_namespace_removes_the_machine),
    promise!(a_machine_that_is_left_behind_is_counted_and_reported),
    promise!(a_day_later_the_finalizer_is_removed_only_where_that_is_requested),
];

async fn leaves_with(propagation: &str) {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    let options = json!({"propagationPolicy": propagation});
    cluster.delete_with(&machine_path("worker"), &options).await;
    let is_leaving = |object: &Value| object["status"]["phase"] == "ShuttingDown";
    let leaving = cluster
        .wait_briefly(&machine_path("worker"), is_leaving)
        .await;
    assert_eq!(leaving["status"]["shutdown"]["reason"], "Deleted");
    cluster.release_last_pod().await;

    let limit = instant("2026-03-06T22:55:00Z");
    cluster
        .wait_until_gone(&machine_path("worker"), limit)
        .await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    assert_eq!(cluster.get(&node_path("worker")).await, None);
    assert_eq!(cluster.get(&pod_path("only")).await, None);
    let evictions = cluster.operator_writes_to("pods/eviction");
    assert!(
        evictions.last().unwrap().ends_with("create only 201"),
        "{evictions:?}"
    );

    // The finalizer is removed last.
    let requests = cluster.requests();
    let last = |resource: &str| {
        requests.iter().rposition(|event| {
            event.resource == resource
                && event.is_write()
                && event.subresource.is_empty()
                && event.code < 300
        })
    };
    let finalizer = last("scheduledmachines");
    for resource in ["machines", "remotemachines", "k0sworkerconfigs"] {
        assert!(last(resource) < finalizer, "{resource}");
    }
}

async fn in_the_background() {
    leaves_with("Background").await;
}

async fn in_the_foreground() {
    leaves_with("Foreground").await;
}

async fn even_where_orphans_were_asked_for() {
    leaves_with("Orphan").await;
}

async fn one_without_a_machine_is_gone_at_once() {
    let cluster = Cluster::start(instant("2026-03-07T12:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply(&scheduled_machine("worker")).await;
    let worker = machine_path("worker");
    let is_settled = |object: &Value| object["status"]["phase"] == "Inactive";
    cluster.wait_briefly(&worker, is_settled).await;
    let before = cluster.clock().now();
    cluster.delete(&worker).await;
    cluster.wait_until_gone(&worker, before).await;
}

async fn deleting_the_namespace_removes_the_machine() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    cluster.add_namespace("team-a").await;
    let _operator = cluster.operator();
    let elsewhere = |path: &str| path.replace("/default/", "/team-a/");
    for mut object in [
        cluster_object(cluster.contract()),
        scheduled_machine("worker"),
    ] {
        object["metadata"]["namespace"] = json!("team-a");
        cluster.apply(&object).await;
    }
    let worker = elsewhere(&machine_path("worker"));
    cluster
        .wait_for(&worker, instant("2026-03-06T22:51:00Z"), |object| {
            object["status"]["phase"] == "Active"
        })
        .await;
    // An operator whose rights are bound in the namespace may lose them first. These rights are
    // kept.
    cluster.hold_rights("team-a").await;
    // The kubeconfig is deleted with the namespace. The Node can then not be reached.
    cluster.delete("/api/v1/namespaces/team-a").await;
    let limit = instant("2026-03-06T23:30:00Z");
    cluster.wait_until_gone(&worker, limit).await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&elsewhere(&path)).await, None);
    }
    cluster.release_rights("team-a").await;
    let namespace = "/api/v1/namespaces/team-a";
    cluster.wait_until_gone(namespace, limit).await;
}

async fn a_day_later_the_finalizer_is_removed_only_where_that_is_requested() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let patient = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let [_, infrastructure, _] = cluster.owned_paths("worker");
    cluster.hold(&infrastructure).await;
    let worker = machine_path("worker");
    cluster.delete(&worker).await;
    cluster.advance_to("2026-03-08T12:00:00Z").await;
    let object = cluster.get(&worker).await.expect("waited for");
    assert_eq!(object["status"]["phase"], "ShuttingDown");
    drop(patient);
    let _operator =
        cluster.operator_with(|options| options.force_finalizer_on_timeout = true);
    let limit = instant("2026-03-08T12:10:00Z");
    cluster.wait_until_gone(&worker, limit).await;
    assert!(cluster.get(&infrastructure).await.is_some(), "left behind");
    cluster.release(&infrastructure).await;
}

async fn a_machine_that_is_left_behind_is_counted_and_reported() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let count = || {
        let text = operator.instruments().on_metrics_port("/metrics").body;
        let mut lines = text.lines();
        let line = lines.find(|line| line.starts_with("fivespot_orphaned_machines "));
        line.map(str::to_owned)
    };
    assert_eq!(count().as_deref(), Some("fivespot_orphaned_machines 0"));
    let path = machine_path("worker");
    let paused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}});
    cluster.patch(&path, &paused).await;
    let is_paused = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|it| it["type"] == "Ready" && it["reason"] == "Paused")
    };
    cluster.wait_briefly(&path, is_paused).await;
    cluster
        .delete_with(&path, &json!({"propagationPolicy": "Orphan"}))
        .await;
    let released = json!({"metadata": {"finalizers": null}});
    cluster.patch(&path, &released).await;
    cluster
        .eventually(async || count().as_deref() == Some("fivespot_orphaned_machines 1"))
        .await;
    let [.., machine] = cluster.owned_paths("worker");
    let left = cluster.get(&machine).await.expect("it is left alone");
    let found = async || {
        let events = "/apis/events.k8s.io/v1/namespaces/default/events";
        let events = cluster.list(events).await;
        let about = events
            .into_iter()
            .filter(|it| it["reason"] == "OrphanedMachine");
        about.collect::<Vec<Value>>()
    };
    cluster.eventually(async || !found().await.is_empty()).await;
    let found = found().await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["type"], "Warning");
    assert_eq!(found[0]["regarding"]["kind"], "Machine");
    assert_eq!(found[0]["regarding"]["uid"], left["metadata"]["uid"]);
    cluster.delete(&machine).await;
    cluster
        .eventually(async || count().as_deref() == Some("fivespot_orphaned_machines 0"))
        .await;
}
