//! A grace period is kept to the second, whatever its value and however it was stored. Windows
//! follow local time.

use fivespot_api::crd;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, instant, machine_path, scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_grace_of_a_minute_and_a_half_ends_on_the_second),
    promise!(a_grace_beyond_a_day_that_got_past_admission_is_a_day).disruptive(),
    promise!(a_grace_that_cannot_be_parsed_is_the_default).disruptive(),
    promise!(a_disabled_machine_with_an_hour_of_grace_stays_beyond_it),
    promise!(a_night_that_begins_on_a_friday_is_the_fridays_hours),
    promise!(every_shipped_example_keeps_its_word)
        .on_embedded_alone("follows the annotations of the simulator"),
];

const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/scheduledmachine-validation";

/// Brings the worker up with a pod that cannot be evicted.
async fn bring_up_with_unevictable_pod(cluster: &Cluster) {
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
}

async fn set_timeouts(cluster: &Cluster, timeout: &str) {
    let patch = json!({"spec": {
        "gracefulShutdownTimeout": timeout, "nodeDrainTimeout": timeout,
    }});
    let worker = machine_path("worker");
    cluster.patch_once_admitted(&worker, &patch).await;
    cluster.settle().await;
}

/// Checks that the Machine exists until the second before `end`, and is being deleted at `end`.
async fn leaves_at(cluster: &Cluster, end: &str) {
    let [.., machine] = cluster.owned_paths("worker");
    let is_going = |machine: &Value| !machine["metadata"]["deletionTimestamp"].is_null();
    let end = instant(end);
    cluster
        .advance_until(end - SignedDuration::from_secs(1))
        .await;
    let there = cluster.get(&machine).await.unwrap_or_default();
    assert!(!is_going(&there) && !there.is_null(), "{there:#}");
    let is_leaving = |machine: &Value| machine.is_null() || is_going(machine);
    cluster.wait_for(&machine, end, is_leaving).await;
    assert_eq!(cluster.clock().now(), end);
}

async fn a_grace_of_a_minute_and_a_half_ends_on_the_second() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    bring_up_with_unevictable_pod(&cluster).await;
    set_timeouts(&cluster, "90s").await;
    cluster.advance_to(CLOSING).await;
    leaves_at(&cluster, "2026-03-06T23:01:30Z").await;
}

/// A worker with timeouts that admission would have refused.
async fn with_unadmitted_timeout(timeout: &str) -> (Cluster, fivespot_testkit::Operator) {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    bring_up_with_unevictable_pod(&cluster).await;
    cluster.apply(&crd::render_without_rules()).await;
    cluster.delete(POLICY).await;
    set_timeouts(&cluster, timeout).await;
    cluster.advance_to(CLOSING).await;
    (cluster, operator)
}

async fn a_grace_beyond_a_day_that_got_past_admission_is_a_day() {
    let (cluster, _operator) = with_unadmitted_timeout("99h").await;
    let is_committed = |object: &Value| !object["status"]["shutdown"].is_null();
    let reported = cluster
        .wait_briefly(&machine_path("worker"), is_committed)
        .await;
    let deadline = &reported["status"]["shutdown"]["deadline"];
    assert_eq!(deadline, "2026-03-07T23:00:00Z");
    cluster.release_last_pod().await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_grace_that_cannot_be_parsed_is_the_default() {
    let (cluster, _operator) = with_unadmitted_timeout("1.5m").await;
    leaves_at(&cluster, "2026-03-06T23:05:00Z").await;
}

async fn a_disabled_machine_with_an_hour_of_grace_stays_beyond_it() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    set_timeouts(&cluster, "1h").await;
    let disable = json!({"spec": {"schedule": {"enabled": false}}});
    cluster.patch(&machine_path("worker"), &disable).await;
    let is_disabled = |object: &Value| object["status"]["phase"] == "Disabled";
    cluster
        .wait_briefly(&machine_path("worker"), is_disabled)
        .await;
    for time in ["2026-03-06T15:59:00Z", "2026-03-06T16:01:00Z"] {
        cluster.advance_to(time).await;
        let status = cluster.status("worker").await;
        assert_eq!(status["phase"], "Disabled");
        assert_eq!(status["machineRef"], active["status"]["machineRef"]);
        assert_eq!(status.get("shutdown"), None);
    }
}

async fn a_night_that_begins_on_a_friday_is_the_fridays_hours() {
    let cluster = Cluster::start(instant("2026-03-06T06:30:00Z")).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"] =
        json!({"daysOfWeek": ["fri"], "hoursOfDay": ["22-6"], "timezone": "UTC"});
    let active = cluster.bring_up(&worker).await;
    assert_eq!(active["status"]["nextTransition"], "2026-03-06T07:00:00Z");
    let limit = instant("2026-03-06T07:10:00Z");
    let inactive = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(inactive["status"]["nextTransition"], "2026-03-06T22:00:00Z");
    let limit = instant("2026-03-06T22:01:00Z");
    let again = cluster.wait_for_phase("worker", "Active", limit).await;
    assert_eq!(again["status"]["nextTransition"], "2026-03-07T00:00:00Z");
    let limit = instant("2026-03-07T00:10:00Z");
    let inactive = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(inactive["status"]["nextTransition"], "2026-03-13T00:00:00Z");
}

async fn every_shipped_example_keeps_its_word() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        // Other providers are not simulated, and of a pool of hosts a machine may wait in vain.
        if !text.contains("kind: RemoteMachine") || text.contains("\n  hosts:\n") {
            continue;
        }
        let cluster = Cluster::start(instant("2026-03-06T13:00:00Z")).await;
        let _operator = cluster.operator();
        cluster.apply_yaml(&text).await;
        let machines =
            "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines";
        for machine in cluster.list(machines).await {
            let name = machine["metadata"]["name"].as_str().unwrap();
            let end = instant("2026-03-14T00:00:00Z");
            let active = cluster.wait_for_phase(name, "Active", end).await;
            // A machine that is lent until its owner takes it back has no end.
            if !active["status"]["nextTransition"].is_null() {
                cluster.wait_for_phase(name, "Inactive", end).await;
            }
            seen += 1;
        }
    }
    assert!(seen > 1, "{seen} examples");
}
