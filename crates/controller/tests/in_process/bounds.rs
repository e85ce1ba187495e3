//! Limits on what untrusted parties can cost: tenants with their specs, and workload clusters with
//! their responses.

#![expect(clippy::unwrap_used, reason = "what goes wrong here ends the test")]

use fivespot_controller::Options;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cluster::{OWNED, SCHEDULED, TestCluster, instant};
use crate::faults::in_service;
use crate::hosts::{create_class, create_machine_of_class};

/// Creates a ScheduledMachine like the others, with this spec of its bootstrap object.
async fn create_with(cluster: &TestCluster, name: &str, bootstrap: Value) {
    cluster.create_scheduled_machine("model").await;
    let model = cluster.get(&format!("{SCHEDULED}/model")).await.unwrap();
    cluster.delete(&format!("{SCHEDULED}/model")).await;
    let mut spec = model["spec"].clone();
    spec["bootstrapSpec"]["spec"] = bootstrap;
    let object = json!({
        "apiVersion": model["apiVersion"], "kind": model["kind"],
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    });
    cluster.client.create(SCHEDULED, object).await.unwrap();
}

/// Large specs are sent few at a time.
#[tokio::test]
async fn creations_that_hang_delay_no_other_tenant_and_no_kill_switch() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T13:59:00Z").await;
    cluster.create_namespace("team").await;
    cluster.create_cluster_in("team").await;
    let large = json!({"files": vec!["x".repeat(100); 300]});
    for number in 0..8 {
        create_with(&cluster, &format!("w{number}"), large.clone()).await;
    }
    let hangs = format!("POST {}", OWNED[0]);
    cluster.delay_requests(&hangs, SignedDuration::from_secs(30));
    let _controller = cluster.run(|client, clock| cluster.options(client, clock));
    cluster.advance_to("2026-03-06T14:00:05Z").await;
    let model = cluster.get(&format!("{SCHEDULED}/w0")).await.unwrap();
    let object = json!({
        "apiVersion": model["apiVersion"], "kind": model["kind"],
        "metadata": {"name": "worker"}, "spec": model["spec"],
    });
    let team = SCHEDULED.replace("default", "team");
    cluster.client.create(&team, object).await.unwrap();
    cluster.advance_to("2026-03-06T14:00:06Z").await;
    let of_team = OWNED[0].replace("default", "team");
    assert_eq!(cluster.names(&of_team).await, ["worker"]);
    for number in 0..8 {
        let path = format!("{SCHEDULED}/w{number}");
        cluster
            .merge(&path, json!({"spec": {"killSwitch": true}}))
            .await;
    }
    cluster.advance_to("2026-03-06T14:00:10Z").await;
    let mut stopped = 0;
    for number in 0..8 {
        let status = cluster.status(&format!("w{number}")).await;
        stopped += usize::from(status["phase"] == "Terminated");
    }
    // One has sent its request and waits for the response.
    assert_eq!(stopped, 7);
}

#[tokio::test]
async fn an_object_is_created_from_a_large_spec_unchanged() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let files: Vec<Value> = (0..5_000)
        .map(|number| json!({"path": format!("/\u{e9}/\"{number}\""), "mode": 0.5}))
        .collect();
    let large = json!({"files": files, "z": null, "a": {"b": [[], {}]}});
    create_with(&cluster, "worker", large.clone()).await;
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    let made = cluster.get(&format!("{}/worker", OWNED[0])).await.unwrap();
    assert_eq!(made["spec"], large);
    let status = cluster.status("worker").await;
    assert_eq!(
        made["metadata"]["annotations"]["5spot.finos.org/spec-hash"],
        status["specHash"]
    );
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

/// Only its hash is kept of a class's spec, so that the spec and the host are read once more.
#[tokio::test]
async fn an_object_of_a_host_is_created_from_a_large_spec_of_its_class() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let files: Vec<String> = (0..5_000).map(|number| number.to_string()).collect();
    create_class(
        &cluster,
        json!({"files": files, "address": "none", "port": 22}),
    )
    .await;
    create_machine_of_class(&cluster).await;
    let _controller = cluster.run(|client, clock| cluster.options(client, clock));
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    let made = cluster.get(&format!("{}/worker", OWNED[1])).await.unwrap();
    assert_eq!(
        made["spec"],
        json!({"files": files, "address": "10.0.0.7", "port": 22})
    );
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

#[tokio::test]
async fn a_spec_that_is_too_large_is_reported_and_affects_no_other_object() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    create_with(&cluster, "fat", json!({"list": vec![0; 140_000]})).await;
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    for path in OWNED {
        assert_eq!(cluster.names(path).await, ["worker"], "{path}");
    }
    let status = cluster.status("fat").await;
    let condition = TestCluster::condition(&status, "ReferencesValid");
    assert_eq!(condition["reason"], "SpecTooLarge", "{status:#}");
    assert_eq!(status["phase"], "Error");
    // It recovers when the spec is changed.
    let smaller = json!({"spec": {"bootstrapSpec": {"spec": {"list": [0]}}}});
    cluster.merge(&format!("{SCHEDULED}/fat"), smaller).await;
    cluster.clock.wait_until_idle().await;
    assert_eq!(cluster.names(OWNED[2]).await, ["fat", "worker"]);
}

/// A page of a list with a continue token in every page.
fn endless_page(kind: &str) -> String {
    let items: Vec<Value> = (0..2_000)
        .map(|number| json!({"metadata": {"name": format!("x-{number}"), "uid": "u"}}))
        .collect();
    json!({
        "kind": format!("{kind}List"), "apiVersion": "v1",
        "metadata": {"resourceVersion": "1", "continue": "more"}, "items": items,
    })
    .to_string()
}

#[tokio::test]
async fn a_workload_cluster_with_endless_lists_is_dropped_and_retried_later() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster.inject_fault(7, "GET /api/v1/nodes", (200, &endless_page("Node")));
    let _controller = in_service(&cluster, &[]).await;
    let status = cluster.status("worker").await;
    let access = TestCluster::condition(&status, "NodeAccess");
    assert_eq!(access["reason"], "Connected", "{status:#}");
    cluster.inject_fault(
        usize::MAX,
        "GET /api/v1/nodes",
        (200, &endless_page("Node")),
    );
    // The watch is closed, and all Nodes are listed again.
    cluster.inject_fault(usize::MAX, "WATCH /api/v1/nodes", (410, &gone()));
    cluster.rotate_kubeconfig(&json!({"token": "abcd"})).await;
    cluster.clock.wait_until_idle().await;
    let status = cluster.status("worker").await;
    let access = TestCluster::condition(&status, "NodeAccess");
    assert_eq!(access["reason"], "TooLarge", "{status:#}");
    assert_eq!(
        access["message"],
        "the workload cluster lists more than 10000 objects of a kind"
    );
}

fn gone() -> String {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
        "reason": "Expired", "message": "too old",
    })
    .to_string()
}

#[tokio::test]
async fn an_endless_pod_list_delays_a_machine_at_most_until_its_deadline() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    cluster.inject_fault(usize::MAX, "GET /api/v1/pods", (200, &endless_page("Pod")));
    cluster.advance_to("2026-03-06T23:06:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

/// A page of a list of pods that has none, and says that more follow.
fn empty_page() -> String {
    json!({
        "kind": "PodList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "1", "continue": "more"}, "items": [],
    })
    .to_string()
}

/// Every page takes 25 s: less than a response may take, and no page is the last.
fn serve_pods_slowly_without_end(cluster: &TestCluster) {
    let pods = "GET /api/v1/pods";
    cluster.inject_fault(usize::MAX, pods, (200, &empty_page()));
    cluster.delay_requests(pods, SignedDuration::from_secs(25));
}

#[tokio::test]
async fn a_slow_pod_list_without_an_end_delays_a_machine_at_most_until_its_deadline() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    serve_pods_slowly_without_end(&cluster);
    cluster.advance_to("2026-03-06T23:04:59Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
    let status = cluster.status("worker").await;
    let access = TestCluster::condition(&status, "NodeAccess");
    assert_eq!(access["reason"], "Unreachable", "{status:#}");
    cluster.advance_to("2026-03-06T23:05:30Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn a_read_that_is_under_way_at_the_deadline_ends_there() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    let timeout = json!({"spec": {"nodeDrainTimeout": "45s"}});
    cluster.merge(&format!("{SCHEDULED}/worker"), timeout).await;
    serve_pods_slowly_without_end(&cluster);
    cluster.advance_to("2026-03-06T23:00:31Z").await;
    let status = cluster.status("worker").await;
    let deadline = instant(status["shutdown"]["deadline"].as_str().unwrap());
    let second = SignedDuration::from_secs(1);
    cluster.clock.advance_to(deadline - second).await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
    cluster.clock.advance_to(deadline + second).await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

/// The status is written once all reads have ended.
#[tokio::test]
async fn a_slow_workload_cluster_holds_a_reconcile_for_half_a_minute_at_most() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    serve_pods_slowly_without_end(&cluster);
    cluster.advance_to("2026-03-06T23:00:31Z").await;
    let status = cluster.status("worker").await;
    let access = TestCluster::condition(&status, "NodeAccess");
    assert_eq!(access["reason"], "Unreachable", "{status:#}");
    assert_eq!(
        access["message"],
        "the workload cluster did not respond within 30s"
    );
}

#[tokio::test]
async fn a_pod_list_of_many_pages_is_not_read_to_its_end() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    cluster.inject_fault(usize::MAX, "GET /api/v1/pods", (200, &empty_page()));
    cluster.advance_to("2026-03-06T23:00:05Z").await;
    let message = ready_message(&cluster).await;
    let why = "the workload cluster sends a list in more than 100 pages";
    assert!(message.contains(why), "{message}");
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

/// A workload cluster is asked about each Node apart: who fills one cannot make the operator give up
/// the access to the others.
#[tokio::test]
async fn too_many_pods_on_one_node_hold_no_other_machine_of_its_cluster() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster.create_scheduled_machine("spare").await;
    let _controller = cluster.run_until_joined("abc").await;
    cluster.join("spare").await;
    for node in ["worker", "spare"] {
        cluster.ready(node, true).await;
        cluster.bind_pod(&format!("{node}-pod"), node).await;
    }
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    cluster.inject_fault(usize::MAX, "GET /api/v1/pods", (200, &endless_page("Pod")));
    let closed = json!({"spec": {"schedule": {"daysOfWeek": ["sun"]}}});
    cluster.merge(&format!("{SCHEDULED}/worker"), closed).await;
    cluster.clock.wait_until_idle().await;
    assert_eq!(cluster.names(OWNED[2]).await, ["spare"]);
    let other = json!({"spec": {"nodeDrainTimeout": "4m"}});
    cluster.merge(&format!("{SCHEDULED}/spare"), other).await;
    cluster.clock.wait_until_idle().await;
    let status = cluster.status("spare").await;
    let access = TestCluster::condition(&status, "NodeAccess");
    assert_eq!(access["reason"], "Connected", "{status:#}");
}

async fn ready_message(cluster: &TestCluster) -> String {
    let status = cluster.status("worker").await;
    let ready = TestCluster::condition(&status, "Ready");
    ready["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn pods_that_take_too_much_memory_are_not_kept_and_delay_no_removal() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    let fat = "u".repeat(1 << 20);
    let items: Vec<Value> = (0..80)
        .map(|number| json!({"metadata": {"name": format!("x-{number}"), "uid": fat}}))
        .collect();
    let page = json!({
        "kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
        "items": items,
    });
    cluster.inject_fault(usize::MAX, "GET /api/v1/pods", (200, &page.to_string()));
    cluster.advance_to("2026-03-06T23:00:05Z").await;
    let message = ready_message(&cluster).await;
    let why = "the operator has no access to the workload cluster (";
    assert!(message.contains(why), "{message}");
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

/// A page with all Nodes of a hostile cluster.
fn nodes_page(nodes: &[Value]) -> String {
    json!({
        "kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
        "items": nodes,
    })
    .to_string()
}

#[tokio::test]
async fn a_workload_cluster_with_objects_that_no_api_server_stores_is_dropped() {
    let many = "an object of the workload cluster has more than 100000 values";
    let long = "an object of the workload cluster has a name, uid or resourceVersion that \
                is too long";
    let node = |uid: &str, finalizers: Value| json!({"metadata": {"name": "x", "uid": uid, "finalizers": finalizers}});
    for (nodes, expected) in [
        (vec![node("u", json!(vec![0; 200_000]))], many),
        (vec![node(&"u".repeat(1 << 20), json!([])); 100], long),
    ] {
        let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
        let page = nodes_page(&nodes);
        cluster.inject_fault(usize::MAX, "GET /api/v1/nodes", (200, &page));
        let _controller = cluster.run_until_joined("abc").await;
        cluster.clock.wait_until_idle().await;
        let status = cluster.status("worker").await;
        let access = TestCluster::condition(&status, "NodeAccess");
        assert_eq!(access["reason"], "TooLarge", "{status:#}");
        assert_eq!(access["message"], expected);
    }
}

#[tokio::test]
async fn only_the_message_of_a_kubernetes_status_is_repeated() {
    let page = format!("<html>db_password=hunter2 {}</html>", "x".repeat(1 << 20));
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
        "message": format!("no\u{1b}[31m\n{}", "y".repeat(1_000)),
    });
    let long = format!("no [31m {}…", "y".repeat(247));
    for (body, expected) in [
        (page, "the API server answered 500"),
        (status.to_string(), long.as_str()),
    ] {
        let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
        cluster.inject_fault(usize::MAX, "GET /api/v1/nodes", (500, &body));
        let _controller = cluster.run_until_joined("abc").await;
        cluster.clock.wait_until_idle().await;
        let status = cluster.status("worker").await;
        let access = TestCluster::condition(&status, "NodeAccess");
        assert_eq!(access["reason"], "Unreachable");
        assert_eq!(access["message"], expected);
    }
}

#[tokio::test]
async fn a_loopback_kubeconfig_is_rejected_unless_the_operator_allows_it() {
    for (is_allowed, expected) in [(false, "KubeconfigRefused"), (true, "Connected")] {
        let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
        cluster
            .create_wanted_machine(&json!({"token": "abc"}))
            .await;
        cluster
            .serve_kubeconfig_at("https://127.0.0.1:6443", &json!({"token": "abc"}))
            .await;
        let _controller = cluster.run(|client, clock| {
            let mut options = cluster.options(client, clock);
            options.workload_servers.local = is_allowed;
            options
        });
        cluster.advance_to("2026-03-06T15:01:00Z").await;
        cluster.join("worker").await;
        cluster.clock.wait_until_idle().await;
        let status = cluster.status("worker").await;
        let access = TestCluster::condition(&status, "NodeAccess");
        assert_eq!(access["reason"], expected, "{status:#}");
    }
}

#[tokio::test]
async fn pods_are_listed_once_before_and_once_after_the_cordon() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &[]).await;
    let before = cluster.requests().len();
    cluster.advance_to("2026-03-06T23:06:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
    let requests = cluster.requests();
    let of_leaving = requests[before..].iter();
    let lists = of_leaving.filter(|line| line.starts_with("list /api/v1/pods"));
    assert_eq!(lists.count(), 2, "{:#?}", &requests[before..]);
}
