//! Delays, deadlines and wrong clocks.

use std::sync::{Arc, Mutex, PoisonError};

use fivespot_controller::Coordination;
use jiff::SignedDuration;
use kubemu_clock::Host;
use serde_json::json;

use crate::cluster::{OWNED, RunningController, SCHEDULED, TestCluster, instant};
use crate::faults::{in_service, machine, refusal};

const AGENT_CONFIG: &str = "POST /api/v1/namespaces/5spot-system/configmaps";

/// A machine in service from 15:10 on, whose agent's ConfigMap cannot be created, because its
/// namespace does not exist. The first deletion of the Machine fails.
async fn without_agent(cluster: &TestCluster) -> RunningController {
    let running = in_service(cluster, &[]).await;
    let response = refusal(404, "namespaces \"5spot-system\" not found");
    cluster.inject_fault(usize::MAX, AGENT_CONFIG, (404, &response));
    let commands = json!({"spec": {"killIfCommands": ["steam"]}});
    cluster
        .merge(&format!("{SCHEDULED}/worker"), commands)
        .await;
    cluster.advance_to("2026-03-06T15:40:00Z").await;
    let delete = format!("DELETE {}", machine());
    cluster.inject_fault(1, &delete, (500, &refusal(500, "try again")));
    running
}

#[tokio::test]
async fn a_permanent_agent_failure_does_not_delay_a_kill_switch() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = without_agent(&cluster).await;
    set_kill_switch(&cluster).await;
    cluster.advance_to("2026-03-06T15:40:03Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn a_permanent_agent_failure_does_not_delay_a_closing() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = without_agent(&cluster).await;
    cluster.advance_to("2026-03-06T23:00:03Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

/// Limits starts to one per minute.
fn limit_starts_to_one_per_minute(options: &mut fivespot_controller::Options) {
    options.max_starts_per_minute = std::num::NonZeroU32::new(1);
}

#[tokio::test]
async fn the_start_limit_does_not_depend_on_a_clock_that_is_set_back() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let host = Host::default();
    host.set(SignedDuration::from_hours(1));
    let own = host.clone();
    let _controller = cluster.run(move |client, clock| {
        let mut options = options(client, clock.of_host(own.clone()));
        limit_starts_to_one_per_minute(&mut options);
        options
    });
    cluster.create_scheduled_machine("first").await;
    cluster.advance_to("2026-03-06T15:01:30Z").await;
    host.set(SignedDuration::ZERO);
    cluster.create_scheduled_machine("second").await;
    cluster.advance_to("2026-03-06T15:03:10Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["first", "second"]);
}

#[tokio::test]
async fn a_machine_that_has_nothing_to_start_any_more_keeps_no_place_ahead_of_others() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = cluster.run(|client, clock| {
        let mut options = options(client, clock);
        limit_starts_to_one_per_minute(&mut options);
        options
    });
    for name in ["a", "b", "c"] {
        cluster.create_scheduled_machine(name).await;
    }
    cluster.advance_to("2026-03-06T15:00:10Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["a"]);
    let disabled = serde_json::json!({"spec": {"enabled": false}});
    cluster.merge(&format!("{SCHEDULED}/b"), disabled).await;
    cluster.advance_to("2026-03-06T15:01:05Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["a", "c"]);
}

fn options(
    client: kube::Client,
    clock: kubemu_clock::Clock,
) -> fivespot_controller::Options {
    fivespot_controller::Options::new(client, clock)
}

#[tokio::test]
async fn a_retry_is_not_delayed_by_a_clock_that_is_set_back() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let host = Host::default();
    host.set(SignedDuration::from_hours(1));
    let own = host.clone();
    let _controller =
        cluster.run(move |client, clock| options(client, clock.of_host(own.clone())));
    let create = format!("POST {}", OWNED[2]);
    cluster.inject_fault(4, &create, (500, &refusal(500, "try again")));
    cluster.create_scheduled_machine("worker").await;
    cluster.advance_to("2026-03-06T15:00:05Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
    host.set(SignedDuration::ZERO);
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

#[tokio::test]
async fn a_window_that_has_opened_stays_open_for_an_operator_with_an_earlier_clock() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T13:59:00Z").await;
    cluster.create_scheduled_machine("worker").await;
    let first = cluster.run(options);
    cluster.advance_to("2026-03-06T14:00:30Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
    drop(first);
    let host = Host::default();
    host.set(-SignedDuration::from_mins(2));
    let _second =
        cluster.run(move |client, clock| options(client, clock.of_host(host.clone())));
    cluster.advance_to("2026-03-06T14:01:00Z").await;
    assert!(cluster.status("worker").await["shutdown"].is_null());
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

#[tokio::test]
async fn a_start_with_a_conflict_releases_its_slot() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = cluster.run(|client, clock| {
        let mut options = options(client, clock);
        limit_starts_to_one_per_minute(&mut options);
        options
    });
    let create = format!("POST {}", OWNED[0]);
    cluster.inject_fault(1, &create, (409, &refusal(409, "already exists")));
    cluster.create_scheduled_machine("worker").await;
    cluster.advance_to("2026-03-06T15:00:10Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

/// No event triggers a reconcile: the edge passes while the operator's host is suspended.
#[tokio::test]
async fn an_edge_during_a_suspension_is_handled_within_half_a_minute() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T13:00:00Z").await;
    let host = Host::default();
    let own = host.clone();
    cluster.create_scheduled_machine("worker").await;
    let _controller =
        cluster.run(move |client, clock| options(client, clock.of_host(own.clone())));
    cluster.advance_to("2026-03-06T13:30:00Z").await;
    host.suspend(instant("2026-03-06T13:30:00Z"));
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    host.resume(instant("2026-03-06T16:00:00Z"));
    cluster.advance_to("2026-03-06T16:00:30Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

/// The names of the pods of a full Node.
fn sixty_pods() -> Vec<String> {
    (0..60).map(|number| format!("pod-{number:02}")).collect()
}

const PODS: &str = "/api/v1/namespaces/default/pods/";

/// A webhook whose backend is down delays each deletion by ten seconds.
#[tokio::test]
async fn a_reclaim_waits_at_most_ten_seconds_for_slow_pod_deletions() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let pods = sixty_pods();
    let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
    let _controller = in_service(&cluster, &pods).await;
    let delete = format!("DELETE {PODS}");
    cluster.delay_requests(&delete, SignedDuration::from_secs(10));
    let request = json!({"metadata": {"annotations": {
        "5spot.finos.org/reclaim-requested": "true",
    }}});
    cluster.merge("/api/v1/nodes/worker", request).await;
    cluster.advance_to("2026-03-06T15:10:12Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn drain_requests_are_dropped_at_the_deadline() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &["a", "b", "c"]).await;
    let evict = format!("POST {PODS}");
    cluster.delay_requests(&evict, SignedDuration::from_mins(4));
    cluster.advance_to("2026-03-06T23:04:59Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
    cluster.advance_to("2026-03-06T23:05:01Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn evictions_of_one_batch_are_concurrent() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let pods = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let _controller = in_service(&cluster, &pods).await;
    let evict = format!("POST {PODS}");
    cluster.delay_requests(&evict, SignedDuration::from_secs(25));
    cluster.advance_to("2026-03-06T23:00:26Z").await;
    let evicted = |line: &&String| line.contains("/eviction");
    assert_eq!(cluster.writes().iter().filter(evicted).count(), 10);
}

async fn set_kill_switch(cluster: &TestCluster) {
    let patch = json!({"spec": {"killSwitch": true}});
    cluster.merge(&format!("{SCHEDULED}/worker"), patch).await;
}

#[tokio::test]
async fn a_kill_switch_does_not_wait_for_an_eviction() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &["a", "b", "c"]).await;
    let evict = format!("POST {PODS}");
    cluster.delay_requests(&evict, SignedDuration::from_secs(25));
    cluster.advance_to("2026-03-06T23:00:05Z").await;
    set_kill_switch(&cluster).await;
    cluster.advance_to("2026-03-06T23:00:06Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn a_reopened_window_stops_the_evictions() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &["a", "b"]).await;
    let evict = format!("POST {PODS}");
    cluster.delay_requests(&evict, SignedDuration::from_mins(2));
    cluster.advance_to("2026-03-06T23:00:05Z").await;
    let hours = json!({"spec": {"schedule": {"hoursOfDay": ["9-20"]}}});
    cluster.merge(&format!("{SCHEDULED}/worker"), hours).await;
    cluster.advance_to("2026-03-06T23:00:10Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active", "{status:#}");
    let node = cluster.get("/api/v1/nodes/worker").await.unwrap();
    assert!(node["spec"]["unschedulable"].is_null(), "{node:#}");
}

#[tokio::test]
async fn a_kill_switch_does_not_wait_for_a_read_of_the_node() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let _controller = in_service(&cluster, &["a"]).await;
    cluster.delay_requests("GET /api/v1/nodes/worker", SignedDuration::from_secs(30));
    cluster.advance_to("2026-03-06T23:00:05Z").await;
    set_kill_switch(&cluster).await;
    cluster.advance_to("2026-03-06T23:00:06Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
}

#[tokio::test]
async fn a_taken_name_is_used_as_soon_as_it_is_free() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let foreign = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {"clusterName": "prod"},
    });
    cluster.client.create(OWNED[2], foreign).await.unwrap();
    cluster.create_scheduled_machine("worker").await;
    let _controller = cluster.run(options);
    cluster.advance_to("2026-03-06T15:10:20Z").await;
    let before = cluster.requests();
    cluster.advance_to("2026-03-06T15:30:20Z").await;
    assert_eq!(cluster.requests()[before.len()..], [""; 0], "no polling");
    cluster.delete(&machine()).await;
    cluster.clock.wait_until_idle().await;
    let made = cluster.get(&machine()).await.unwrap();
    let label = &made["metadata"]["labels"]["5spot.finos.org/scheduled-machine"];
    assert_eq!(*label, "worker");
}

#[tokio::test]
async fn an_unreadable_secret_is_reported_as_a_management_cluster_problem() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let secrets = "GET /api/v1/namespaces/default/secrets";
    cluster.inject_fault(usize::MAX, secrets, (0, "connection timed out"));
    let _controller = cluster.run_until_joined("abc").await;
    cluster.advance_to("2026-03-06T15:03:00Z").await;
    let status = cluster.status("worker").await;
    let access = TestCluster::condition(&status, "NodeAccess");
    let message = access["message"].as_str().unwrap();
    assert!(message.contains("management cluster"), "{message}");
    assert!(message.contains("Secret prod-kubeconfig"), "{message}");
}

/// Captures the log of this thread while it is held.
pub(crate) struct LogCapture(Arc<Mutex<Vec<u8>>>, tracing::subscriber::DefaultGuard);

impl LogCapture {
    /// Captures the lines of this level and of more severe ones.
    pub(crate) fn begin(level: tracing::Level) -> Self {
        let lines = Arc::<Mutex<Vec<u8>>>::default();
        let sink = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || LogWriter(sink.clone()))
            .finish();
        Self(lines, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().map(str::to_owned).collect()
    }
}

struct LogWriter(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_outage_of_the_server_is_logged_once() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T13:59:00Z").await;
    for number in 0..20 {
        let name = format!("worker-{number:02}");
        cluster.create_scheduled_machine(&name).await;
    }
    let _controller = cluster.run(options);
    cluster.advance_to("2026-03-06T13:59:30Z").await;
    let logged = LogCapture::begin(tracing::Level::WARN);
    cluster.set_silent(true);
    cluster.advance_to("2026-03-06T14:05:00Z").await;
    let mut lines = logged.lines();
    lines.retain(|line| line.contains("management cluster"));
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("the management cluster does not respond"));
    cluster.set_silent(false);
    cluster.advance_to("2026-03-06T14:15:00Z").await;
    let mut lines = logged.lines();
    lines.retain(|line| line.contains("management cluster"));
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert_eq!(cluster.names(OWNED[2]).await.len(), 20);
    drop(logged.1);
}

/// The Lease of the leader election.
fn lease() -> fivespot_controller::Lease {
    fivespot_controller::Lease {
        namespace: "5spot-system".to_owned(),
        name: "5spot-leader".to_owned(),
        timing: fivespot_controller::LeaseTiming::default(),
    }
}

/// A cluster with the namespace of that Lease.
async fn with_election() -> TestCluster {
    let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "5spot-system"},
    });
    let namespaces = "/api/v1/namespaces";
    let created = cluster.client.create(namespaces, namespace).await;
    created.expect("the namespace is created");
    cluster
}

#[tokio::test]
async fn a_start_that_loses_its_lease_releases_its_slot() {
    let cluster = with_election().await;
    let _controller = cluster.run(|client, clock| {
        let mut options = options(client, clock);
        limit_starts_to_one_per_minute(&mut options);
        options.coordination = Coordination::Leader(lease());
        options
    });
    cluster.advance_to("2026-03-06T15:00:05Z").await;
    let create = format!("POST {}", OWNED[0]);
    cluster.delay_requests(&create, SignedDuration::from_secs(60));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases";
    for method in ["PUT", "PATCH"] {
        let renewal = format!("{method} {lease}");
        cluster.delay_requests(&renewal, SignedDuration::from_secs(60));
    }
    cluster.create_scheduled_machine("worker").await;
    cluster.advance_to("2026-03-06T15:00:25Z").await;
    assert_eq!(cluster.names(OWNED[0]).await, [""; 0]);
    cluster.clear_delays();
    cluster.advance_to("2026-03-06T15:00:55Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}

#[tokio::test]
async fn an_unelected_replica_writes_nothing_while_another_holds_the_lease() {
    let cluster = with_election().await;
    let leader = cluster.run(|client, clock| {
        let mut options = options(client, clock);
        options.coordination = Coordination::Leader(lease());
        options
    });
    cluster.advance_to("2026-03-06T15:01:00Z").await;
    let _other = cluster.run(|client, clock| {
        let mut options = options(client, clock);
        options.coordination = Coordination::Unelected(lease());
        options.identity = "other".to_owned();
        options
    });
    cluster.advance_to("2026-03-06T15:02:00Z").await;
    // The leader's create fails, and the other replica does not act in its place.
    let create = format!("POST {}", OWNED[0]);
    cluster.inject_fault(1, &create, (500, &refusal(500, "try again")));
    cluster.create_scheduled_machine("worker").await;
    cluster.clock.wait_until_idle().await;
    assert_eq!(cluster.names(OWNED[0]).await, [""; 0]);
    drop(leader);
    cluster.advance_to("2026-03-06T15:02:10Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, [""; 0]);
    // The Lease is not renewed any more and expires.
    cluster.advance_to("2026-03-06T15:02:20Z").await;
    assert_eq!(cluster.names(OWNED[2]).await, ["worker"]);
}
