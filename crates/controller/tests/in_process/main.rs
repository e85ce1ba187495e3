//! Tests the controller with the embedded API server; the tests play the part of Cluster API.

mod bounds;
mod faults;
mod outdated;
mod timing;
mod world;

use std::sync::{Arc, Mutex};

use fivespot_api::Phase;
use fivespot_controller::{Listener, Namespaces, NodeAccess, Options, Transition};
use serde_json::json;

use world::{SCHEDULED, World, instant};

const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";

#[tokio::test]
async fn the_three_objects_are_created_exactly_at_the_edge() {
    let world = World::with_cluster_api("2026-03-06T13:50:00Z").await;
    world.create_scheduled_machine("worker").await;
    let _controller = world.run(Options::new);
    world.until("2026-03-06T13:59:59Z").await;
    assert_eq!(world.status("worker").await["phase"], "Inactive");
    assert_eq!(world.names(MACHINES).await, [""; 0]);
    world.until("2026-03-06T14:00:00Z").await;
    for path in world::OWNED {
        let object = world.get(&format!("{path}/worker")).await.unwrap();
        let made = &object["metadata"]["creationTimestamp"];
        assert_eq!(*made, json!("2026-03-06T14:00:00Z"), "{path}");
    }
    let status = world.status("worker").await;
    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["machineRef"]["kind"], "Machine");
}

#[tokio::test]
async fn an_idle_machine_causes_no_requests() {
    let world = World::with_cluster_api("2026-03-06T23:10:00Z").await;
    world.create_scheduled_machine("worker").await;
    let _controller = world.run(Options::new);
    world.until("2026-03-06T23:11:00Z").await;
    assert_eq!(world.status("worker").await["phase"], "Inactive");
    let before = world.requests();
    world.until("2026-03-08T23:11:00Z").await;
    assert_eq!(world.requests()[before.len()..], [""; 0]);
}

#[tokio::test]
async fn cluster_api_may_be_installed_later() {
    let world = World::at("2026-03-06T15:00:00Z").await;
    world.create_scheduled_machine("worker").await;
    let _controller = world.run(Options::new);
    world.until("2026-03-06T15:10:00Z").await;
    let status = world.status("worker").await;
    assert_eq!(
        World::condition(&status, "ReferencesValid")["reason"],
        "KindNotServed"
    );
    world.install_cluster_api().await;
    world.create_cluster().await;
    world.clock.quiet().await;
    assert_eq!(world.names(MACHINES).await, ["worker"]);
}

#[tokio::test]
async fn a_node_that_becomes_ready_makes_the_machine_active_at_that_instant() {
    let world = World::with_cluster_api("2026-03-06T15:00:00Z").await;
    world.wanted(&json!({"token": "abc"})).await;
    let _controller = world.run(|client, clock| world.options(client, clock));
    world.until("2026-03-06T15:01:00Z").await;
    world.join("worker").await;
    world.clock.quiet().await;
    let status = world.status("worker").await;
    assert_eq!(status["phase"], "Pending", "{status:#}");
    assert_eq!(World::condition(&status, "NodeAccess")["status"], "True");
    world.ready("worker", true).await;
    world.clock.quiet().await;
    let status = world.status("worker").await;
    assert_eq!(status["phase"], "Active", "{status:#}");
    assert_eq!(status["nodeRef"]["name"], "worker");
    assert_eq!(world.clock.now(), instant("2026-03-06T15:01:00Z"));
}

#[tokio::test]
async fn the_lateness_of_a_machine_with_lead_time_starts_at_the_opening() {
    for (ready, late) in [
        ("2026-03-06T13:58:00Z", "0.0"),
        ("2026-03-06T14:00:30Z", "30.0"),
    ] {
        let world = World::with_cluster_api("2026-03-06T13:00:00Z").await;
        world.wanted(&json!({"token": "abc"})).await;
        let lead = json!({"spec": {"provisioning": {"leadTime": "10m"}}});
        world.merge(&format!("{SCHEDULED}/worker"), lead).await;
        let instruments = Arc::new(Mutex::new(None));
        let kept = instruments.clone();
        let _controller = world.run(|client, clock| {
            let options = world.options(client, clock);
            *kept.lock().unwrap() = Some(options.instruments.clone());
            options
        });
        world.until("2026-03-06T13:50:00Z").await;
        assert_eq!(world.names(MACHINES).await, ["worker"]);
        world.join("worker").await;
        world.until(ready).await;
        world.ready("worker", true).await;
        world.until("2026-03-06T14:01:00Z").await;
        let instruments = instruments.lock().unwrap().clone().unwrap();
        let metrics = instruments.metrics();
        let sum = format!("fivespot_ready_lateness_seconds_sum {late}\n");
        assert!(metrics.contains(&sum), "{metrics}");
    }
}

#[tokio::test]
async fn the_lateness_of_a_machine_created_late_starts_at_the_opening() {
    let world = World::at("2026-03-06T13:00:00Z").await;
    world.install_cluster_api().await;
    world.wanted(&json!({"token": "abc"})).await;
    let instruments = Arc::new(Mutex::new(None));
    let kept = instruments.clone();
    let _controller = world.run(|client, clock| {
        let options = world.options(client, clock);
        *kept.lock().unwrap() = Some(options.instruments.clone());
        options
    });
    // The window opens at 14:00.
    world.until("2026-03-06T14:20:00Z").await;
    world.create_cluster().await;
    world.clock.quiet().await;
    world.join("worker").await;
    world.until("2026-03-06T14:25:00Z").await;
    world.ready("worker", true).await;
    world.clock.quiet().await;
    let instruments = instruments.lock().unwrap().clone().unwrap();
    let metrics = instruments.metrics();
    let sum = "fivespot_ready_lateness_seconds_sum 1500.0\n";
    assert!(metrics.contains(sum), "{metrics}");
}

#[tokio::test]
async fn a_kubeconfig_with_exec_is_rejected() {
    let world = World::with_cluster_api("2026-03-06T15:00:00Z").await;
    world
        .create_kubeconfig(&json!({"exec": {"command": "sh"}}))
        .await;
    world.create_scheduled_machine("worker").await;
    let _controller = world.run(|client, clock| world.options(client, clock));
    world.until("2026-03-06T15:01:00Z").await;
    world.join("worker").await;
    world.clock.quiet().await;
    let status = world.status("worker").await;
    let access = World::condition(&status, "NodeAccess");
    assert_eq!(access["reason"], "KubeconfigRefused", "{status:#}");
    assert!(
        access["message"].as_str().unwrap().contains("user.exec"),
        "{access}"
    );
}

#[tokio::test]
async fn an_unlabelled_object_of_that_name_is_reported_and_not_changed() {
    let world = World::with_cluster_api("2026-03-06T15:00:00Z").await;
    let foreign = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {"clusterName": "prod"},
    });
    world.client.create(MACHINES, foreign).await.unwrap();
    world.create_scheduled_machine("worker").await;
    let controller = world.run(Options::new);
    world.until("2026-03-06T15:10:00Z").await;
    let status = world.status("worker").await;
    let condition = World::condition(&status, "ReferencesValid");
    assert_eq!(condition["reason"], "NameTaken", "{status:#}");
    let writes = world.writes();
    world.until("2026-03-06T16:10:00Z").await;
    assert_eq!(world.writes()[writes.len()..], [""; 0]);
    drop(controller);
}

#[tokio::test]
async fn a_controller_may_be_dropped_and_restarted() {
    let world = World::at("2026-03-06T15:00:00Z").await;
    world.install_cluster_api().await;
    world.create_scheduled_machine("worker").await;
    let first = world.run(Options::new);
    world.until("2026-03-06T15:05:00Z").await;
    drop(first);
    world.create_cluster().await;
    world.until("2026-03-06T15:30:00Z").await;
    assert_eq!(world.names(MACHINES).await, [""; 0]);
    let _second = world.run(Options::new);
    world.clock.quiet().await;
    assert_eq!(world.names(MACHINES).await, ["worker"]);
}

#[tokio::test]
async fn rotated_credentials_are_used_at_once() {
    let world = World::with_cluster_api("2026-03-06T15:00:00Z").await;
    world.wanted(&json!({"token": "refused"})).await;
    let _controller = world.run(|client, clock| world.options(client, clock));
    world.until("2026-03-06T15:01:00Z").await;
    world.join("worker").await;
    world.ready("worker", true).await;
    world.clock.quiet().await;
    let status = world.status("worker").await;
    assert_eq!(
        World::condition(&status, "NodeAccess")["reason"],
        "Unauthorized"
    );
    world.rotate_kubeconfig(&json!({"token": "abc"})).await;
    world.clock.quiet().await;
    let status = world.status("worker").await;
    assert_eq!(
        World::condition(&status, "NodeAccess")["reason"],
        "Connected"
    );
    assert_eq!(status["phase"], "Active", "{status:#}");
}

#[tokio::test]
async fn all_watches_restart_after_a_rotation_of_credentials() {
    const CONFIG: &str =
        "/api/v1/namespaces/5spot-system/configmaps/reclaim-agent-worker";
    let world = World::with_cluster_api("2026-03-06T15:00:00Z").await;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "5spot-system"},
    });
    let namespaces = "/api/v1/namespaces";
    world.client.create(namespaces, namespace).await.unwrap();
    world.wanted(&json!({"token": "abc"})).await;
    let commands = json!({"spec": {"killIfCommands": ["steam"]}});
    world.merge(&format!("{SCHEDULED}/worker"), commands).await;
    let _controller = world.run(|client, clock| world.options(client, clock));
    world.until("2026-03-06T15:01:00Z").await;
    world.join("worker").await;
    world.ready("worker", true).await;
    world.clock.quiet().await;
    world.rotate_kubeconfig(&json!({"token": "def"})).await;
    world.clock.quiet().await;
    world.delete(CONFIG).await;
    world.clock.quiet().await;
    assert!(world.get(CONFIG).await.is_ok(), "it is created again");
}

#[tokio::test]
async fn an_unreachable_workload_cluster_does_not_delay_the_deadline() {
    let world = World::with_cluster_api("2026-03-06T15:00:00Z").await;
    world.wanted(&json!({"token": "silent"})).await;
    let _controller = world.run(|client, clock| world.options(client, clock));
    world.until("2026-03-06T15:01:00Z").await;
    world.join("worker").await;
    world.until("2026-03-06T23:04:59Z").await;
    let status = world.status("worker").await;
    assert_eq!(
        World::condition(&status, "NodeAccess")["reason"],
        "Unreachable"
    );
    assert_eq!(world.names(MACHINES).await, ["worker"]);
    world.until("2026-03-06T23:05:00Z").await;
    assert_eq!(world.names(MACHINES).await, [""; 0]);
}

#[tokio::test]
async fn nodes_are_read_from_the_management_cluster_if_configured() {
    let world = World::with_cluster_api("2026-03-06T15:00:00Z").await;
    world.create_scheduled_machine("worker").await;
    let _controller = world.run(|client, clock| {
        let mut options = Options::new(client, clock);
        options.node_access = NodeAccess::Management;
        options
    });
    world.until("2026-03-06T15:01:00Z").await;
    world.join("worker").await;
    world.ready("worker", true).await;
    world.clock.quiet().await;
    assert_eq!(world.status("worker").await["phase"], "Active");
    assert!(
        !world
            .requests()
            .iter()
            .any(|line| line.contains("/secrets"))
    );
}

#[tokio::test]
async fn only_the_configured_namespaces_are_read() {
    let world = World::with_cluster_api("2026-03-06T15:00:00Z").await;
    world.create_scheduled_machine("worker").await;
    let before = world.requests().len();
    let _controller = world.run(|client, clock| {
        let mut options = Options::new(client, clock);
        options.namespaces = Namespaces::Only(["elsewhere".to_owned()].into());
        options
    });
    world.until("2026-03-06T15:10:00Z").await;
    for line in &world.requests()[before..] {
        let is_foreign =
            line.contains("/default/") || line.contains("/v1alpha1/scheduled");
        assert!(!is_foreign, "{line}");
    }
    assert_eq!(world.names(MACHINES).await, [""; 0]);
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
    let world = World::with_cluster_api("2026-03-06T13:50:00Z").await;
    world.wanted(&json!({"token": "abc"})).await;
    let recorder = Arc::new(TransitionLog::default());
    let _controller = world.run(|client, clock| {
        let mut options = world.options(client, clock);
        options.listener = recorder.clone();
        options
    });
    world.until("2026-03-06T14:01:00Z").await;
    world.join("worker").await;
    world.ready("worker", true).await;
    world.until("2026-03-06T15:00:00Z").await;
    let printed = recorder.printed();
    assert_eq!(
        printed,
        [
            "2026-03-06T13:50:00Z nothing Inactive",
            "2026-03-06T14:00:00Z Inactive Pending",
            "2026-03-06T14:01:00Z Pending Active",
        ]
    );
    let object = world.get(&format!("{SCHEDULED}/worker")).await.unwrap();
    let events = world
        .items("/apis/events.k8s.io/v1/namespaces/default/events")
        .await;
    assert_eq!(events.len(), printed.len());
    for event in events {
        assert_eq!(event["regarding"]["uid"], object["metadata"]["uid"]);
        assert_eq!(event["reportingController"], "5spot-controller");
    }
}
