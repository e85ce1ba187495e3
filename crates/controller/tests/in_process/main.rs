//! Tests the controller with the embedded API server; the tests play the part of Cluster API.

mod bounds;
mod capacities;
mod cluster;
mod faults;
mod hosts;
mod leases;
mod outdated;
mod overrides;
mod sets;
mod taken_names;
mod timing;

use std::sync::{Arc, Mutex};

use fivespot_api::Phase;
use fivespot_controller::{Listener, Namespaces, NodeAccess, Options, Transition};
use serde_json::json;

use cluster::{SCHEDULED, TestCluster, instant};

const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";

#[tokio::test]
async fn the_three_objects_are_created_exactly_at_the_edge() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T13:50:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T13:59:59Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    assert_eq!(cluster.names(MACHINES).await, [""; 0]);
    cluster.advance_to("2026-03-06T14:00:00Z").await;
    for path in cluster::OWNED {
        let object = cluster.get(&format!("{path}/worker")).await.unwrap();
        let made = &object["metadata"]["creationTimestamp"];
        assert_eq!(*made, json!("2026-03-06T14:00:00Z"), "{path}");
    }
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["machineRef"]["kind"], "Machine");
}

#[tokio::test]
async fn an_idle_machine_causes_no_requests() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T23:10:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T23:11:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    let before = cluster.requests();
    cluster.advance_to("2026-03-08T23:11:00Z").await;
    assert_eq!(cluster.requests()[before.len()..], [""; 0]);
}

#[tokio::test]
async fn a_class_serves_the_namespaces_whose_labels_it_selects() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let path = format!("{SCHEDULED}/worker");
    let inline = cluster.get(&path).await.unwrap();
    cluster.delete(&path).await;
    let spec = &inline["spec"];
    let class = json!({
        "apiVersion": inline["apiVersion"], "kind": "ScheduledMachineClass",
        "metadata": {"name": "desks"},
        "spec": {
            "clusterNames": [spec["clusterName"]],
            "namespaceSelector": {"matchLabels": {"desks": "yes"}},
            "bootstrapSpec": spec["bootstrapSpec"],
            "infrastructureSpec": spec["infrastructureSpec"],
        },
    });
    let classes = "/apis/5spot.finos.org/v1alpha1/scheduledmachineclasses";
    cluster.client.create(classes, class).await.unwrap();
    let machine = json!({
        "apiVersion": inline["apiVersion"], "kind": inline["kind"],
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {"schedule": spec["schedule"], "classRef": {"name": "desks"}},
    });
    cluster.client.create(SCHEDULED, machine).await.unwrap();
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    assert_eq!(cluster.names(MACHINES).await, [""; 0]);
    let labels = json!({"metadata": {"labels": {"desks": "yes"}}});
    cluster.merge("/api/v1/namespaces/default", labels).await;
    cluster.advance_to("2026-03-06T15:02:00Z").await;
    assert_eq!(cluster.names(MACHINES).await, ["worker"]);
}

#[tokio::test]
async fn cluster_api_may_be_installed_later() {
    let cluster = TestCluster::at("2026-03-06T15:00:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(
        TestCluster::condition(&status, "ReferencesValid")["reason"],
        "KindNotServed"
    );
    cluster.install_cluster_api().await;
    cluster.create_cluster().await;
    cluster.clock.wait_until_idle().await;
    assert_eq!(cluster.names(MACHINES).await, ["worker"]);
}

#[tokio::test]
async fn a_node_that_becomes_ready_makes_the_machine_active_at_that_instant() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = cluster.run_until_joined("abc").await;
    cluster.clock.wait_until_idle().await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Pending", "{status:#}");
    assert_eq!(
        TestCluster::condition(&status, "NodeAccess")["status"],
        "True"
    );
    cluster.ready("worker", true).await;
    cluster.clock.wait_until_idle().await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active", "{status:#}");
    assert_eq!(status["nodeRef"]["name"], "worker");
    assert_eq!(cluster.clock.now(), instant("2026-03-06T15:01:00Z"));
}

#[tokio::test]
async fn the_lateness_of_a_machine_with_lead_time_starts_at_the_opening() {
    for (ready, late) in [
        ("2026-03-06T13:58:00Z", "0.0"),
        ("2026-03-06T14:00:30Z", "30.0"),
    ] {
        let cluster = TestCluster::with_cluster_api("2026-03-06T13:00:00Z").await;
        cluster
            .create_wanted_machine(&json!({"token": "abc"}))
            .await;
        let lead = json!({"spec": {"provisioning": {"leadTime": "10m"}}});
        cluster.merge(&format!("{SCHEDULED}/worker"), lead).await;
        let instruments = Arc::new(Mutex::new(None));
        let kept = instruments.clone();
        let _controller = cluster.run(|client, clock| {
            let options = cluster.options(client, clock);
            *kept.lock().unwrap() = Some(options.instruments.clone());
            options
        });
        cluster.advance_to("2026-03-06T13:50:00Z").await;
        assert_eq!(cluster.names(MACHINES).await, ["worker"]);
        cluster.join("worker").await;
        cluster.advance_to(ready).await;
        cluster.ready("worker", true).await;
        cluster.advance_to("2026-03-06T14:01:00Z").await;
        let instruments = instruments.lock().unwrap().clone().unwrap();
        let metrics = instruments.metrics();
        let sum = format!("fivespot_ready_lateness_seconds_sum {late}\n");
        assert!(metrics.contains(&sum), "{metrics}");
    }
}

#[tokio::test]
async fn the_lateness_of_a_machine_created_late_starts_at_the_opening() {
    let cluster = TestCluster::at("2026-03-06T13:00:00Z").await;
    cluster.install_cluster_api().await;
    cluster
        .create_wanted_machine(&json!({"token": "abc"}))
        .await;
    let instruments = Arc::new(Mutex::new(None));
    let kept = instruments.clone();
    let _controller = cluster.run(|client, clock| {
        let options = cluster.options(client, clock);
        *kept.lock().unwrap() = Some(options.instruments.clone());
        options
    });
    // The window opens at 14:00.
    cluster.advance_to("2026-03-06T14:20:00Z").await;
    cluster.create_cluster().await;
    cluster.clock.wait_until_idle().await;
    cluster.join("worker").await;
    cluster.advance_to("2026-03-06T14:25:00Z").await;
    cluster.ready("worker", true).await;
    cluster.clock.wait_until_idle().await;
    let instruments = instruments.lock().unwrap().clone().unwrap();
    let metrics = instruments.metrics();
    let sum = "fivespot_ready_lateness_seconds_sum 1500.0\n";
    assert!(metrics.contains(sum), "{metrics}");
}

#[tokio::test]
async fn a_kubeconfig_with_exec_is_rejected() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster
        .create_kubeconfig(&json!({"exec": {"command": "sh"}}))
        .await;
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(|client, clock| cluster.options(client, clock));
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    cluster.join("worker").await;
    cluster.clock.wait_until_idle().await;
    let status = cluster.status("worker").await;
    let access = TestCluster::condition(&status, "NodeAccess");
    assert_eq!(access["reason"], "KubeconfigRefused", "{status:#}");
    assert!(
        access["message"].as_str().unwrap().contains("user.exec"),
        "{access}"
    );
}

#[tokio::test]
async fn an_unlabelled_object_of_that_name_is_reported_and_not_changed() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let foreign = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {"clusterName": "prod"},
    });
    cluster.client.create(MACHINES, foreign).await.unwrap();
    cluster.create_scheduled_machine("worker").await;
    let controller = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    let status = cluster.status("worker").await;
    let condition = TestCluster::condition(&status, "ReferencesValid");
    assert_eq!(condition["reason"], "NameTaken", "{status:#}");
    let writes = cluster.writes();
    cluster.advance_to("2026-03-06T16:10:00Z").await;
    assert_eq!(cluster.writes()[writes.len()..], [""; 0]);
    drop(controller);
}

#[tokio::test]
async fn a_controller_may_be_dropped_and_restarted() {
    let cluster = TestCluster::at("2026-03-06T15:00:00Z").await;
    cluster.install_cluster_api().await;
    cluster.create_scheduled_machine("worker").await;
    let first = cluster.run(Options::new);
    cluster.advance_to("2026-03-06T15:05:00Z").await;
    drop(first);
    cluster.create_cluster().await;
    cluster.advance_to("2026-03-06T15:30:00Z").await;
    assert_eq!(cluster.names(MACHINES).await, [""; 0]);
    let _second = cluster.run(Options::new);
    cluster.clock.wait_until_idle().await;
    assert_eq!(cluster.names(MACHINES).await, ["worker"]);
}

#[tokio::test]
async fn rotated_credentials_are_used_at_once() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = cluster.run_until_joined("refused").await;
    cluster.ready("worker", true).await;
    cluster.clock.wait_until_idle().await;
    let status = cluster.status("worker").await;
    assert_eq!(
        TestCluster::condition(&status, "NodeAccess")["reason"],
        "Unauthorized"
    );
    cluster.rotate_kubeconfig(&json!({"token": "abc"})).await;
    cluster.clock.wait_until_idle().await;
    let status = cluster.status("worker").await;
    assert_eq!(
        TestCluster::condition(&status, "NodeAccess")["reason"],
        "Connected"
    );
    assert_eq!(status["phase"], "Active", "{status:#}");
}

#[tokio::test]
async fn all_watches_restart_after_a_rotation_of_credentials() {
    const CONFIG: &str =
        "/api/v1/namespaces/5spot-system/configmaps/reclaim-agent-worker";
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "5spot-system"},
    });
    let namespaces = "/api/v1/namespaces";
    cluster.client.create(namespaces, namespace).await.unwrap();
    cluster
        .create_wanted_machine(&json!({"token": "abc"}))
        .await;
    let commands = json!({"spec": {"killIfCommands": ["steam"]}});
    cluster
        .merge(&format!("{SCHEDULED}/worker"), commands)
        .await;
    let _controller = cluster.run(|client, clock| cluster.options(client, clock));
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    cluster.join("worker").await;
    cluster.ready("worker", true).await;
    cluster.clock.wait_until_idle().await;
    cluster.rotate_kubeconfig(&json!({"token": "def"})).await;
    cluster.clock.wait_until_idle().await;
    cluster.delete(CONFIG).await;
    cluster.clock.wait_until_idle().await;
    assert!(cluster.get(CONFIG).await.is_ok(), "it is created again");
}

#[tokio::test]
async fn an_unreachable_workload_cluster_does_not_delay_the_deadline() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = cluster.run_until_joined("silent").await;
    cluster.advance_to("2026-03-06T23:04:59Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(
        TestCluster::condition(&status, "NodeAccess")["reason"],
        "Unreachable"
    );
    assert_eq!(cluster.names(MACHINES).await, ["worker"]);
    cluster.advance_to("2026-03-06T23:05:00Z").await;
    assert_eq!(cluster.names(MACHINES).await, [""; 0]);
}

#[tokio::test]
async fn nodes_are_read_from_the_management_cluster_if_configured() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(|client, clock| {
        let mut options = Options::new(client, clock);
        options.node_access = NodeAccess::Management;
        options
    });
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    cluster.join("worker").await;
    cluster.ready("worker", true).await;
    cluster.clock.wait_until_idle().await;
    assert_eq!(cluster.status("worker").await["phase"], "Active");
    assert!(
        !cluster
            .requests()
            .iter()
            .any(|line| line.contains("/secrets"))
    );
}

#[tokio::test]
async fn only_the_configured_namespaces_are_read() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let before = cluster.requests().len();
    let _controller = cluster.run(|client, clock| {
        let mut options = Options::new(client, clock);
        options.namespaces = Namespaces::Only(["elsewhere".to_owned()].into());
        options
    });
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    for line in &cluster.requests()[before..] {
        let is_foreign =
            line.contains("/default/") || line.contains("/v1alpha1/scheduled");
        assert!(!is_foreign, "{line}");
    }
    assert_eq!(cluster.names(MACHINES).await, [""; 0]);
}

#[derive(Default)]
struct TransitionLog(Mutex<Vec<String>>);

impl TransitionLog {
    fn printed(&self) -> Vec<String> {
        self.0
            .lock()
            .map(|printed| printed.clone())
            .unwrap_or_default()
    }
}

impl Listener for TransitionLog {
    fn transition(&self, transition: &Transition) {
        let Transition { at, from, to, .. } = transition;
        let from = from.map_or("nothing", Phase::as_str);
        let line = format!("{at} {from} {to}");
        if let Ok(mut printed) = self.0.lock() {
            printed.push(line);
        }
    }
}

#[tokio::test]
async fn each_transition_is_reported_once_and_has_an_event() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T13:50:00Z").await;
    cluster
        .create_wanted_machine(&json!({"token": "abc"}))
        .await;
    let recorder = Arc::new(TransitionLog::default());
    let _controller = cluster.run(|client, clock| {
        let mut options = cluster.options(client, clock);
        options.listener = recorder.clone();
        options
    });
    cluster.advance_to("2026-03-06T14:01:00Z").await;
    cluster.join("worker").await;
    cluster.ready("worker", true).await;
    cluster.advance_to("2026-03-06T15:00:00Z").await;
    let printed = recorder.printed();
    assert_eq!(
        printed,
        [
            "2026-03-06T13:50:00Z nothing Inactive",
            "2026-03-06T14:00:00Z Inactive Pending",
            "2026-03-06T14:01:00Z Pending Active",
        ]
    );
    let object = cluster.get(&format!("{SCHEDULED}/worker")).await.unwrap();
    let events = cluster
        .items("/apis/events.k8s.io/v1/namespaces/default/events")
        .await;
    assert_eq!(events.len(), printed.len());
    for event in events {
        assert_eq!(event["regarding"]["uid"], object["metadata"]["uid"]);
        assert_eq!(event["reportingController"], "5spot-controller");
    }
}
