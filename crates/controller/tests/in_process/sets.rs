//! Sets of which the server refuses something.

#![expect(clippy::unwrap_used, reason = "what goes wrong here ends the test")]

use serde_json::{Value, json};

use crate::cluster::{RunningController, SCHEDULED, TestCluster};
use crate::faults::refusal;

const SETS: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachinesets";

/// A running controller and the set `desks` with two machines, of a class that does not exist.
async fn set_of_two() -> (TestCluster, RunningController) {
    let cluster = TestCluster::with_cluster_api("2026-03-06T12:00:00Z").await;
    let set = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineSet",
        "metadata": {"name": "desks", "namespace": "default"},
        "spec": {"replicas": 2, "template": {"spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["20-23"]},
            "classRef": {"name": "desks"},
        }}},
    });
    cluster.client.create(SETS, set).await.unwrap();
    let controller = cluster.run(|client, clock| cluster.options(client, clock));
    cluster.advance_to("2026-03-06T12:01:00Z").await;
    assert_eq!(cluster.names(SCHEDULED).await, ["desks-0", "desks-1"]);
    (cluster, controller)
}

async fn edit(cluster: &TestCluster, spec: Value) {
    let patch = json!({"spec": spec});
    cluster.merge(&format!("{SETS}/desks"), patch).await;
    cluster.clock.wait_until_idle().await;
}

async fn spec_of(cluster: &TestCluster, name: &str) -> Value {
    let found = cluster.get(&format!("{SCHEDULED}/{name}")).await.unwrap();
    found["spec"].clone()
}

async fn ready(cluster: &TestCluster) -> (String, String) {
    let set = cluster.get(&format!("{SETS}/desks")).await.unwrap();
    let ready = TestCluster::condition(&set["status"], "Ready");
    let text = |field: &str| ready[field].as_str().unwrap().to_owned();
    (text("reason"), text("message"))
}

/// Sets the kill switch of the set in one edit with another field, which one machine refuses once.
async fn kill_with_a_refused_field(cluster: &TestCluster) {
    let response = refusal(422, "priority is too high");
    let patch = format!("PATCH {SCHEDULED}/desks-0");
    cluster.inject_fault(1, &patch, (422, &response));
    let spec = json!({"killSwitch": true, "priority": 90});
    edit(cluster, json!({"template": {"spec": spec}})).await;
    assert_eq!(spec_of(cluster, "desks-0").await["killSwitch"], true);
}

/// Sends an event of a machine of the set.
async fn touch(cluster: &TestCluster, name: &str, value: &str) {
    let labels = json!({"metadata": {"labels": {"touched": value}}});
    cluster.merge(&format!("{SCHEDULED}/{name}"), labels).await;
}

#[tokio::test]
async fn the_kill_switch_of_a_set_reaches_its_machines_although_no_machine_may_be_created()
 {
    let (cluster, _controller) = set_of_two().await;
    let response = refusal(403, "exceeded quota");
    cluster.inject_fault(usize::MAX, &format!("POST {SCHEDULED}"), (403, &response));
    edit(&cluster, json!({"replicas": 100})).await;
    let (_, message) = ready(&cluster).await;
    assert_eq!(message, "2 of 100 ScheduledMachines exist: exceeded quota");
    edit(
        &cluster,
        json!({"template": {"spec": {"killSwitch": true}}}),
    )
    .await;
    cluster.advance_to("2026-03-06T12:02:00Z").await;
    for name in ["desks-0", "desks-1"] {
        assert_eq!(spec_of(&cluster, name).await["killSwitch"], true);
    }
    let (_, message) = ready(&cluster).await;
    assert_eq!(message, "2 of 100 ScheduledMachines exist: exceeded quota");
}

#[tokio::test]
async fn the_kill_switch_gets_through_where_the_server_refuses_another_field_of_the_edit()
{
    let (cluster, _controller) = set_of_two().await;
    kill_with_a_refused_field(&cluster).await;
    assert_ne!(spec_of(&cluster, "desks-0").await["priority"], 90);
    assert_eq!(spec_of(&cluster, "desks-1").await["priority"], 90);
    // It is tried again, and reported until then.
    let (reason, message) = ready(&cluster).await;
    assert_eq!(reason, "WriteRejected");
    assert!(message.ends_with("priority is too high"), "{message}");
    cluster.advance_to("2026-03-06T12:02:00Z").await;
    assert_eq!(spec_of(&cluster, "desks-0").await["priority"], 90);
    assert_eq!(ready(&cluster).await.0, "Scaled");
}

#[tokio::test]
async fn a_refused_edit_is_tried_again_after_its_backoff_and_not_at_each_event() {
    let (cluster, _controller) = set_of_two().await;
    let response = refusal(422, "priority is too high");
    let patch = format!("PATCH {SCHEDULED}/desks-0");
    // More than are sent, and a way to count them.
    cluster.inject_fault(20, &patch, (422, &response));
    edit(&cluster, json!({"template": {"spec": {"priority": 90}}})).await;
    for second in 10..59 {
        touch(&cluster, "desks-1", &second.to_string()).await;
        cluster
            .advance_to(&format!("2026-03-06T12:01:{second}Z"))
            .await;
    }
    let left = cluster.faults_left(&patch);
    assert!((12..17).contains(&left), "{left} of 20");
    // An edit is tried at once.
    edit(&cluster, json!({"template": {"spec": {"priority": 80}}})).await;
    assert_eq!(cluster.faults_left(&patch), left - 1);
}

#[tokio::test]
async fn a_switch_that_was_sent_alone_is_taken_back_with_the_edit() {
    for reverted in [
        json!({"killSwitch": null, "priority": null}),
        json!({"killSwitch": null, "priority": 80}),
    ] {
        let (cluster, _controller) = set_of_two().await;
        kill_with_a_refused_field(&cluster).await;
        edit(&cluster, json!({"template": {"spec": reverted}})).await;
        for name in ["desks-0", "desks-1"] {
            let spec = spec_of(&cluster, name).await;
            assert_ne!(spec["killSwitch"], true, "{name} {reverted}");
        }
    }
}

#[tokio::test]
async fn an_outage_is_not_taken_for_machines_that_refuse_an_edit() {
    let (cluster, _controller) = set_of_two().await;
    let response = refusal(503, "the server is currently unable to handle the request");
    for name in ["desks-0", "desks-1"] {
        let patch = format!("PATCH {SCHEDULED}/{name}");
        cluster.inject_fault(8, &patch, (503, &response));
    }
    edit(
        &cluster,
        json!({"template": {"spec": {"killSwitch": true}}}),
    )
    .await;
    assert_eq!(ready(&cluster).await.0, "WriteFailed");
    for second in 10..40 {
        cluster
            .advance_to(&format!("2026-03-06T12:01:{second}Z"))
            .await;
        touch(&cluster, "desks-1", &second.to_string()).await;
    }
    for name in ["desks-0", "desks-1"] {
        assert_eq!(spec_of(&cluster, name).await["killSwitch"], true, "{name}");
    }
    assert_eq!(ready(&cluster).await.0, "Scaled");
}

/// Each names itself in the message.
#[tokio::test]
async fn machines_that_refuse_an_edit_for_long_cost_few_requests() {
    let (cluster, _controller) = set_of_two().await;
    edit(&cluster, json!({"replicas": 40})).await;
    cluster.advance_to("2026-03-06T12:02:00Z").await;
    let patches = (0..40).map(|index| format!("PATCH {SCHEDULED}/desks-{index}"));
    let patches: Vec<String> = patches.collect();
    for patch in &patches {
        let response = refusal(422, &format!("{patch} is invalid"));
        cluster.inject_fault(1_000, patch, (422, &response));
    }
    let left = || -> usize { patches.iter().map(|it| cluster.faults_left(it)).sum() };
    edit(&cluster, json!({"template": {"spec": {"priority": 90}}})).await;
    assert_eq!(left(), 39_960);
    cluster.advance_to("2026-03-06T13:00:00Z").await;
    let (before, version) = (left(), set_version(&cluster).await);
    cluster.advance_to("2026-03-06T14:00:00Z").await;
    let sent = before - left();
    assert!((40..=200).contains(&sent), "{sent} in an hour");
    assert_eq!(set_version(&cluster).await, version, "the status changes");
    cluster.clear_faults();
    cluster.advance_to("2026-03-06T14:06:00Z").await;
    for index in 0..40 {
        let spec = spec_of(&cluster, &format!("desks-{index}")).await;
        assert_eq!(spec["priority"], 90, "{index}");
    }
}

async fn set_version(cluster: &TestCluster) -> Value {
    let set = cluster.get(&format!("{SETS}/desks")).await.unwrap();
    set["metadata"]["resourceVersion"].clone()
}
