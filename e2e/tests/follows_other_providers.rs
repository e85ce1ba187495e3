//! A machine follows a schedule of another provider, by its status.

use std::process::Stdio;

use fivespot_testkit::{
    Cluster, condition, instant, machine_path, path_of, scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::kubectl::session::Session;
use crate::program;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_machine_follows_what_another_provider_publishes),
    promise!(a_provider_that_knows_its_next_transition_is_followed_beyond_it),
    promise!(what_may_not_be_followed_changes_nothing),
    promise!(
        a_provider_that_changes_to_and_fro_is_followed_once_a_minute_until_it_is_quiet
    ),
    promise!(the_example_of_a_provider_is_followed)
        .with_kubectl()
        .on_embedded_alone("publishes the schedules of all other promises, too"),
];

const OPENING: &str = "2026-03-06T15:00:00Z";

fn follower() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"] = json!({
        // Another version than the one that is served.
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": "ManualSchedule", "name": "office",
    });
    worker
}

/// The objects of a file of the example.
fn example(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

fn office() -> Value {
    let mut all = example(include_str!("../../examples/manual-schedule/office.yaml"));
    let mut office = all.remove(0);
    office["metadata"]["namespace"] = json!("default");
    office
}

/// Creates the kind, an object of it, and a machine that follows it.
async fn follow(cluster: &Cluster) {
    let definitions = example(include_str!(
        "../../examples/manual-schedule/definition.yaml"
    ));
    for object in &definitions {
        cluster.apply(object).await;
    }
    let limit = cluster.deadline_in(SignedDuration::from_mins(1));
    let is_served =
        |object: &Value| condition(&object["status"], "Established")["status"] == "True";
    let definition = path_of(&definitions[0]);
    cluster.wait_for(&definition, limit, is_served).await;
    cluster.add_cluster().await;
    cluster.apply(&office()).await;
    cluster.apply(&follower()).await;
}

async fn publish(cluster: &Cluster, status: &Value) {
    let path = format!("{}/status", path_of(&office()));
    cluster.patch(&path, &json!({"status": status})).await;
}

/// Waits until the reason of `SpotScheduleResolved` is this one.
async fn resolved(cluster: &Cluster, reason: &str) -> Value {
    let is_so = |object: &Value| {
        condition(&object["status"], "SpotScheduleResolved")["reason"] == reason
    };
    cluster.wait_briefly(&machine_path("worker"), is_so).await
}

async fn a_machine_follows_what_another_provider_publishes() {
    let cluster = Cluster::start(instant(OPENING)).await;
    let _operator = cluster.operator();
    follow(&cluster).await;
    let object = resolved(&cluster, "StatusActiveMissing").await;
    assert_eq!(object["status"]["phase"], "Inactive");
    publish(&cluster, &json!({"active": true})).await;
    let limit = instant("2026-03-06T15:20:00Z");
    let object = cluster.wait_for_phase("worker", "Active", limit).await;
    let followed = &object["status"]["spotSchedule"];
    assert_eq!(followed["active"], true);
    assert_eq!(followed.get("nextTransitionTime"), None);
    publish(&cluster, &json!({"active": false})).await;
    let limit = instant("2026-03-06T15:40:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_provider_that_knows_its_next_transition_is_followed_beyond_it() {
    let cluster = Cluster::start(instant(OPENING)).await;
    let _operator = cluster.operator();
    follow(&cluster).await;
    let next = "2026-03-06T16:00:00Z";
    let status = json!({"active": true, "nextTransitionTime": next});
    publish(&cluster, &status).await;
    let limit = instant("2026-03-06T15:20:00Z");
    let object = cluster.wait_for_phase("worker", "Active", limit).await;
    assert_eq!(object["status"]["nextCleanup"], next);
    // The provider is silent, and the machine leaves.
    cluster.advance_to(next).await;
    let limit = instant("2026-03-06T16:20:00Z");
    let object = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(object["status"]["spotSchedule"]["active"], false);
}

async fn what_may_not_be_followed_changes_nothing() {
    let cluster = Cluster::start(instant(OPENING)).await;
    let _operator = cluster.operator();
    follow(&cluster).await;
    publish(&cluster, &json!({"active": true})).await;
    let limit = instant("2026-03-06T15:20:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
    let ready = json!([{"type": "Ready", "status": "False", "reason": "Down", "message": "no feed"}]);
    publish(&cluster, &json!({"active": false, "conditions": ready})).await;
    let object = resolved(&cluster, "ProviderNotReady").await;
    assert_eq!(object["status"]["phase"], "Active");
    let now = cluster.clock().now();
    cluster
        .advance_to(&(now + SignedDuration::from_mins(11)).to_string())
        .await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active");
    assert_eq!(status["spotSchedule"]["active"], true);
    let stalled = condition(&status, "Stalled");
    assert_eq!(stalled["reason"], "ProviderNotReady");
    cluster.delete(&path_of(&office())).await;
    let object = resolved(&cluster, "ProviderNotFound").await;
    assert_eq!(object["status"]["phase"], "Active");
}

async fn a_provider_that_changes_to_and_fro_is_followed_once_a_minute_until_it_is_quiet()
{
    let cluster = Cluster::start(instant(OPENING)).await;
    let _operator = cluster.operator();
    follow(&cluster).await;
    for change in 0..8 {
        publish(&cluster, &json!({"active": change % 2 == 0})).await;
        // Each is seen.
        cluster
            .advance_until(cluster.deadline_in(SignedDuration::from_secs(1)))
            .await;
    }
    let object = resolved(&cluster, "ProviderFlapping").await;
    let resolved_at = condition(&object["status"], "SpotScheduleResolved");
    assert_eq!(resolved_at["status"], "True");
    let quiet = cluster.deadline_in(SignedDuration::from_mins(12));
    cluster.advance_until(quiet).await;
    let status = cluster.status("worker").await;
    let reason = &condition(&status, "SpotScheduleResolved")["reason"];
    assert_eq!(*reason, "Resolved");
    assert_eq!(status["spotSchedule"]["active"], false);
}

async fn the_example_of_a_provider_is_followed() {
    let session = Session::start(OPENING).await;
    follow(&session.cluster).await;
    let kubectl = program::path("kubectl").unwrap();
    let mut path = std::ffi::OsString::from(kubectl.parent().unwrap());
    path.push(":/usr/bin:/bin");
    let provider = Command::new("sh")
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../examples/manual-schedule/provider.sh"
        ))
        .env("KUBECONFIG", session.folder().join("kubeconfig"))
        .env("HOME", session.folder())
        .env("PATH", path)
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let _provider = Group(provider.id());
    // Nothing else tells that it has seen the object.
    while resolved_reason(&session).await != "Resolved" {
        tokio::task::yield_now().await;
    }
    let words = [
        "patch",
        "manualschedule",
        "office",
        "--type=merge",
        "--patch",
        r#"{"spec": {"enabled": true}}"#,
    ];
    session.kubectl_with(&words).await;
    while session.cluster.status("worker").await["spotSchedule"]["active"] != true {
        tokio::task::yield_now().await;
    }
}

/// A process and its children. Dropping it stops them.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.unwrap());
        let stopped = std::process::Command::new("kill")
            .args(["--", &group])
            .status();
        assert!(stopped.unwrap().success());
    }
}

async fn resolved_reason(session: &Session) -> Value {
    let status = session.cluster.status("worker").await;
    condition(&status, "SpotScheduleResolved")["reason"].clone()
}
