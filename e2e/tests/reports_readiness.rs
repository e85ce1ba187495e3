//! The responses of the health and metrics ports are correct: a replica is ready if it can act or
//! take over, and a metric counts what has happened, with a bounded set of names and labels.

use std::collections::BTreeSet;
use std::sync::Arc;

use fivespot_api::Phase;
use fivespot_controller::metrics::METRICS;
use fivespot_controller::{Detail, Instruments};
use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, ConnectionSwitch, instant, machine_path, scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::json;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(no_replica_is_ready_before_everything_is_listed),
    promise!(no_replica_is_ready_without_the_definition)
        .on_embedded_alone("deletes the CRD that all promises use, and its objects"),
    promise!(no_replica_is_ready_while_the_server_is_away),
    promise!(the_metrics_of_the_dashboards_exist_and_are_bounded),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scheduledmachines.5spot.finos.org";

fn readiness(instruments: &Instruments) -> (u16, String) {
    let answer = instruments.on_health_port("/readyz", Detail::Verbose);
    (answer.code, answer.body)
}

async fn no_replica_is_ready_before_everything_is_listed() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    let (code, reported) = readiness(operator.instruments());
    assert_eq!(code, 503, "{reported}");
    assert!(reported.ends_with("not ready\n"), "{reported}");
    // The details are only for users with access to the pod.
    let brief = operator
        .instruments()
        .on_health_port("/readyz", Detail::Brief);
    assert_eq!((brief.code, brief.body.as_str()), (503, "not ready\n"));
    let is_ready = async || readiness(operator.instruments()).0 == 200;
    cluster.eventually(is_ready).await;
    // Liveness is independent of readiness.
    let alive = operator
        .instruments()
        .on_health_port("/healthz", Detail::Brief);
    assert_eq!(alive.code, 200);
    let stranger = operator
        .instruments()
        .on_health_port("/healthz/x", Detail::Brief);
    assert_eq!(stranger.code, 404);
}

async fn no_replica_is_ready_without_the_definition() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    cluster.settle().await;
    assert_eq!(readiness(operator.instruments()).0, 200);
    cluster.delete(DEFINITION).await;
    cluster
        .advance_until(cluster.deadline_in(SignedDuration::from_mins(6)))
        .await;
    let (code, reported) = readiness(operator.instruments());
    assert_eq!(code, 503, "{reported}");
    assert!(
        reported.contains("[-]cache scheduledmachines.5spot.finos.org"),
        "{reported}"
    );
    let status = operator
        .instruments()
        .on_health_port("/health/status", Detail::Brief);
    assert!(status.body.contains("\"ready\":false"), "{}", status.body);

    for object in fivespot_api::manifest::installed(cluster.kube_minor()) {
        cluster.apply(&object).await;
    }
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let limit = cluster.deadline_in(SignedDuration::from_mins(6));
    cluster.wait_for_phase("worker", "Active", limit).await;
    assert_eq!(readiness(operator.instruments()).0, 200);
}

async fn no_replica_is_ready_while_the_server_is_away() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let connection = ConnectionSwitch::default();
    let operator = cluster.operator_behind(Arc::new(connection.clone()), |_| {});
    cluster.bring_up(&scheduled_machine("worker")).await;
    let instruments = operator.instruments();
    assert_eq!(readiness(instruments).0, 200);

    connection.disconnect();
    // A closed connection of a watch is noticed when an event is sent.
    let priority = json!({"spec": {"priority": 7}});
    cluster.patch(&machine_path("worker"), &priority).await;
    let is_away = async || readiness(instruments).0 == 503;
    cluster.eventually(is_away).await;
    let (_, reported) = readiness(instruments);
    assert!(reported.contains("[-]api-server failed: "), "{reported}");
    let reported = |path| instruments.on_health_port(path, Detail::Brief);
    let status = reported("/health/status").body;
    assert!(status.contains("\"k8s_connected\":false"), "{status}");
    // A restart would not help.
    assert_eq!(reported("/healthz").code, 200);

    connection.connect();
    let limit = cluster.deadline_in(SignedDuration::from_mins(2));
    cluster.advance_until(limit).await;
    assert_eq!(
        readiness(instruments).0,
        200,
        "{}",
        readiness(instruments).1
    );
}

/// The names that dashboards and alerts use.
const KNOWN: [&str; 12] = [
    "fivespot_reconciliations_total",
    "fivespot_reconciliation_duration_seconds",
    "fivespot_machines_active",
    "fivespot_machines_by_phase",
    "fivespot_schedule_evaluations_total",
    "fivespot_kill_switch_activations_total",
    "fivespot_controller_info",
    "fivespot_is_leader",
    "fivespot_errors_total",
    "fivespot_node_drains_total",
    "fivespot_pod_evictions_total",
    "fivespot_finalizer_cleanup_timeouts_total",
];

async fn the_metrics_of_the_dashboards_exist_and_are_bounded() {
    for known in KNOWN {
        assert!(METRICS.iter().any(|row| row.name == known), "{known}");
    }
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    // A user who may write a status cannot create a series.
    let path = format!("{}/status", machine_path("worker"));
    let forged = json!({"status": {"phase": "Forged"}});
    let is_taken = cluster.try_patch(&path, &forged).await.is_ok();
    assert!(!is_taken, "the CRD lists every phase");
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&machine_path("worker"), &kill).await;
    let limit = cluster.deadline_in(SignedDuration::from_mins(5));
    cluster.wait_for_phase("worker", "Terminated", limit).await;
    cluster.settle().await;

    let reported = operator.instruments().metrics();
    let phases: BTreeSet<&str> = Phase::ALL.iter().map(|phase| phase.as_str()).collect();
    let mut labelled = reported.lines().filter_map(|line| {
        let (_, rest) = line.split_once("phase=\"")?;
        rest.split('"').next()
    });
    assert!(labelled.all(|phase| phases.contains(phase)), "{reported}");
    for line in [
        "fivespot_machines_active 0",
        "fivespot_machines_by_phase{phase=\"Terminated\"} 1",
        "fivespot_machines_by_phase{phase=\"Active\"} 0",
        "fivespot_kill_switch_activations_total 1",
        "fivespot_is_leader 1",
    ] {
        assert!(
            reported.lines().any(|it| it == line),
            "{line} is not in\n{reported}"
        );
    }
    // Each series has a fixed name, and labels contain no object names.
    for series in reported.lines().filter(|line| !line.starts_with('#')) {
        assert!(!series.contains("\"worker\""), "{series}");
    }
}
