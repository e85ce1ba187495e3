//! The controller with slow, wrong and missing responses.

use std::sync::{Arc, Mutex};

use fivespot_controller::{Detail, Key, inspect};
use fivespot_plan::Access;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::TransitionLog;
use crate::cluster::{OWNED, RunningController, SCHEDULED, TestCluster, instant};

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/k0sworkerconfigs.bootstrap.cluster.x-k8s.io";

pub(crate) fn machine() -> String {
    format!("{}/worker", OWNED[2])
}

/// A machine in phase Active at 15:10, with these pods on its Node.
pub(crate) async fn in_service(
    cluster: &TestCluster,
    pods: &[&str],
) -> RunningController {
    let running = cluster.run_until_joined("abc").await;
    cluster.ready("worker", true).await;
    for name in pods {
        cluster.bind_pod(name, "worker").await;
    }
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Active");
    running
}

pub(crate) fn refusal(code: u16, message: &str) -> String {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": "InternalError", "message": message,
    })
    .to_string()
}

#[tokio::test]
async fn a_failed_eviction_does_not_delay_other_pods() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &["a", "b"]).await;
    let message = "This pod has more than one PodDisruptionBudget, which the eviction \
                   subresource does not support.";
    let eviction = "POST /api/v1/namespaces/default/pods/a/eviction";
    cluster.inject_fault(usize::MAX, eviction, (500, &refusal(500, message)));
    cluster.advance_to("2026-03-06T23:01:00Z").await;
    let evicted = |name: &str| {
        let evicted = format!("create /api/v1/namespaces/default/pods/{name}/eviction");
        let writes = cluster.writes();
        writes.iter().any(|line| line.starts_with(&evicted))
    };
    assert!(evicted("b"), "{:#?}", cluster.writes());
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "ShuttingDown", "{status:#}");
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("more than one")
    );
    cluster.advance_to("2026-03-06T23:05:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn a_missing_eviction_api_is_reported_until_the_drain_deadline() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &["a"]).await;
    let response = refusal(404, "the server could not find the requested resource");
    let eviction = "POST /api/v1/namespaces/default/pods/a/eviction";
    // One request every five seconds; a fourteenth within the minute would succeed.
    cluster.inject_fault(13, eviction, (404, &response));
    cluster.advance_to("2026-03-06T23:01:00Z").await;
    let status = cluster.status("worker").await;
    let reported = status["message"].as_str().unwrap();
    let named = "default/a is not evicted: the workload cluster does not serve the Eviction \
                 API: the server could not find the requested resource";
    assert!(reported.ends_with(named), "{reported}");
    cluster.inject_fault(usize::MAX, eviction, (404, &response));
    cluster.advance_to("2026-03-06T23:04:59Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
    cluster.advance_to("2026-03-06T23:05:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn a_workload_cluster_reconnects_after_one_failed_request() {
    for (code, reason) in [(503, "Unreachable"), (401, "Unauthorized")] {
        let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
        let _controller = in_service(&cluster, &["a"]).await;
        // The connection is lost in a reconcile that was not triggered by the Node.
        let response = refusal(code, "try again");
        cluster.inject_fault(1, "GET /api/v1/nodes/worker", (code, &response));
        let path = format!("{SCHEDULED}/worker");
        let patch = json!({"spec": {"nodeDrainTimeout": "4m"}});
        cluster.merge(&path, patch).await;
        cluster.clock.wait_until_idle().await;
        let status = cluster.status("worker").await;
        let access = TestCluster::condition(&status, "NodeAccess");
        assert_eq!(access["reason"], reason, "{status:#}");
        cluster.advance_to("2026-03-06T15:11:00Z").await;
        let status = cluster.status("worker").await;
        let access = TestCluster::condition(&status, "NodeAccess");
        assert_eq!(access["reason"], "Connected", "{status:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_list_does_not_stop_the_virtual_clock() {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for path in ["/api/v1/namespaces/default/secrets", definitions] {
        let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
        drop(in_service(&cluster, &["a"]).await);
        let response = refusal(504, "try again");
        cluster.inject_fault(1, &format!("GET {path}"), (504, &response));
        let _controller = cluster.run(|client, clock| cluster.options(client, clock));
        let close = cluster.clock.advance_to(instant("2026-03-06T23:05:00Z"));
        // Tokio's paused clock advances only when all tasks are idle.
        let patience = std::time::Duration::from_hours(24);
        let closed = tokio::time::timeout(patience, close).await;
        assert!(closed.is_ok(), "{path}: {:#?}", cluster.requests());
        assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
    }
}

fn deletions(cluster: &TestCluster) -> Vec<String> {
    let writes = cluster.writes();
    writes
        .into_iter()
        .filter(|line| line.starts_with("delete "))
        .collect()
}

async fn delete_scheduled_machine(cluster: &TestCluster) {
    let path = format!("{SCHEDULED}/worker");
    cluster.delete(&path).await;
}

/// For a moment the server does not serve the path at all: that does not mean that the object is
/// gone.
#[tokio::test]
async fn a_path_that_is_not_served_does_not_count_as_a_missing_object() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    let request = format!("GET {}", machine());
    cluster.inject_fault(3, &request, (404, "404 page not found\n"));
    delete_scheduled_machine(&cluster).await;
    cluster.advance_to("2026-03-06T15:30:00Z").await;
    let deleted = deletions(&cluster);
    let first = deleted
        .iter()
        .find(|line| !line.contains("scheduledmachines"));
    assert!(
        first.is_some_and(|line| line.contains("machines/worker")),
        "{deleted:#?}"
    );
}

#[tokio::test]
async fn objects_are_deleted_even_if_discovery_is_late() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    drop(in_service(&cluster, &[]).await);
    delete_scheduled_machine(&cluster).await;
    let group = "GET /apis/cluster.x-k8s.io";
    cluster.inject_fault(2, group, (404, "404 page not found\n"));
    let _controller = cluster.run(|client, clock| cluster.options(client, clock));
    cluster.advance_to("2026-03-06T15:30:00Z").await;
    let deleted = deletions(&cluster);
    assert!(
        deleted.iter().any(|line| line.contains("machines/worker")),
        "{deleted:#?}"
    );
}

fn version(name: &str, is_served: bool) -> Value {
    json!({
        "name": name, "served": is_served, "storage": name == "v1beta2",
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        }},
    })
}

#[tokio::test]
async fn an_object_of_a_removed_version_is_found_and_deleted() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    let versions = json!([version("v1beta1", true), version("v1beta2", true)]);
    let patch = json!({"spec": {"versions": versions}});
    cluster.merge(DEFINITION, patch).await;
    let versions = json!([version("v1beta1", false), version("v1beta2", true)]);
    let patch = json!({"spec": {"versions": versions}});
    cluster.merge(DEFINITION, patch).await;
    let made = format!("{}/worker", OWNED[0].replace("v1beta1", "v1beta2"));
    let held = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    cluster
        .merge(&made, held(json!(["example.com/held"])))
        .await;
    delete_scheduled_machine(&cluster).await;
    cluster.advance_to("2026-03-06T15:30:00Z").await;
    let left = cluster.get(&made).await.unwrap();
    let status = cluster.status("worker").await;
    assert!(
        left["metadata"]["deletionTimestamp"].is_string(),
        "{status:#}"
    );
    assert!(cluster.get(&format!("{SCHEDULED}/worker")).await.is_ok());
    cluster.merge(&made, held(Value::Null)).await;
    cluster.advance_to("2026-03-06T15:31:00Z").await;
    assert!(cluster.get(&format!("{SCHEDULED}/worker")).await.is_err());
}

/// The cache of Machines keeps its state from before the Machine got its Node.
#[tokio::test]
async fn a_status_from_live_reads_is_not_overwritten_from_an_older_cache() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster
        .create_wanted_machine(&json!({"token": "abc"}))
        .await;
    let first = cluster.run(|client, clock| cluster.options(client, clock));
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    drop(first);
    let response = refusal(500, "no watch today");
    let watch = "WATCH /apis/cluster.x-k8s.io/v1beta2/machines";
    cluster.inject_fault(usize::MAX, watch, (500, &response));
    let recorder = Arc::new(TransitionLog::default());
    let _second = cluster.run(|client, clock| {
        let mut options = cluster.options(client, clock);
        options.listener = recorder.clone();
        options
    });
    cluster.clock.wait_until_idle().await;
    cluster.join("worker").await;
    cluster.ready("worker", true).await;
    let path = format!("{SCHEDULED}/worker");
    for minutes in 2..8 {
        // The cached Machine is incomplete, so the operator reads live for the first time.
        let timeout = json!({"spec": {"nodeDrainTimeout": "4m"}});
        cluster.merge(&path, timeout).await;
        let label = json!({"metadata": {"labels": {"edit": minutes.to_string()}}});
        cluster.merge(&path, label).await;
        let next = instant("2026-03-06T15:00:00Z");
        cluster
            .clock
            .advance_to(next + SignedDuration::from_mins(minutes))
            .await;
    }
    let printed = recorder.printed();
    assert_eq!(printed.len(), 1, "{printed:#?}");
    assert!(printed[0].ends_with("Pending Active"), "{printed:#?}");
    // The two statuses must not alternate forever either.
    let statuses = cluster
        .writes()
        .into_iter()
        .filter(|line| line.contains("scheduledmachines/worker/status"));
    assert!(statuses.count() < 10, "{:#?}", cluster.writes());
}

/// The Node's cluster connects while the rest of the inspection is still under way.
#[tokio::test]
async fn an_inspection_has_the_node_of_a_cluster_that_connects_meanwhile() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    drop(in_service(&cluster, &[]).await);
    let held = format!("{}/worker", OWNED[1]);
    let client = cluster.client_held_until(&held, "list /api/v1/nodes 200");
    let options = cluster.options(client, cluster.clock.clone());
    let found = inspect(options, &Key::new("default", "worker"))
        .await
        .unwrap();
    let workload = found.unwrap().observed.workload;
    assert_eq!(workload.access, Access::Connected);
    assert!(workload.node.known().unwrap().is_some());
}

/// A conversion webhook of one kind is down: a condition of the machines that name it.
#[tokio::test]
async fn a_kind_of_a_provider_that_cannot_be_listed_makes_no_replica_unready() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let response = refusal(500, "conversion webhook failed");
    let list = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/remotemachines";
    cluster.inject_fault(usize::MAX, &format!("GET {list}"), (500, &response));
    cluster.create_scheduled_machine("worker").await;
    let instruments = Mutex::new(None);
    let _controller = cluster.run(|client, clock| {
        let options = cluster.options(client, clock);
        *instruments.lock().unwrap() = Some(options.instruments.clone());
        options
    });
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    let instruments = instruments.into_inner().unwrap().unwrap();
    let ready = instruments.on_health_port("/readyz", Detail::Verbose);
    assert_eq!(ready.code, 200, "{}", ready.body);
    let noted = "ok: conversion webhook failed";
    assert!(ready.body.contains(noted), "{}", ready.body);
    let status = instruments.on_health_port("/health/status", Detail::Brief);
    assert!(
        status.body.contains(r#""k8s_connected":true"#),
        "{}",
        status.body
    );
    // Without a response, it is the server that does not respond.
    cluster.set_silent(true);
    cluster.create_scheduled_machine("other").await;
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    let ready = instruments.on_health_port("/readyz", Detail::Verbose);
    assert_eq!(ready.code, 503, "{}", ready.body);
}
