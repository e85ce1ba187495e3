//! Edits of a running machine take effect for its next one, except those that must not wait.

use fivespot_testkit::{Cluster, condition, instant, machine_path, scheduled_machine};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(an_edited_machine_runs_on_as_it_is_and_its_successor_is_made_anew),
    promise!(another_kind_of_infrastructure_leaves_the_old_one_to_be_removed),
    promise!(a_drain_timeout_is_written_to_the_machine_at_once),
    promise!(a_grace_that_is_edited_during_a_drain_may_shorten_it_and_never_lengthens_it),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";

async fn an_edited_machine_runs_on_as_it_is_and_its_successor_is_made_anew() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let (other, at) = cluster.other_host();
    let edit = json!({"spec": {
        "infrastructureSpec": {"spec": other},
        "machineTemplate": {"labels": {"team": "a"}},
    }});
    cluster.patch(&machine_path("worker"), &edit).await;
    let is_noted = |object: &Value| {
        condition(&object["status"], "Ready")["reason"] == "PendingChanges"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_noted)
        .await;
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active");
    let ready = condition(&status, "Ready");
    assert_eq!(ready["status"], "True");
    assert_eq!(ready["reason"], "PendingChanges");
    assert_eq!(
        status["machineRef"]["uid"],
        active["status"]["machineRef"]["uid"]
    );
    let [_, infrastructure, machine] = cluster.owned_paths("worker");
    let kept = cluster.get(&infrastructure).await.unwrap();
    assert_ne!(kept["spec"].pointer(at), other.pointer(at));

    cluster.advance_to("2026-03-09T13:01:00Z").await;
    let is_running = |object: &Value| {
        condition(&object["status"], "Ready")["reason"] == "MachineRunning"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_running)
        .await;
    let made = cluster.get(&infrastructure).await.unwrap();
    assert_eq!(made["spec"].pointer(at), other.pointer(at));
    let made = cluster.get(&machine).await.unwrap();
    assert_eq!(made["metadata"]["labels"]["team"], "a");
}

async fn another_kind_of_infrastructure_leaves_the_old_one_to_be_removed() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let edit = json!({"spec": {"infrastructureSpec": {"kind": "UnheardOfMachine"}}});
    cluster.patch(&machine_path("worker"), &edit).await;
    let limit = instant("2026-03-06T23:01:00Z");
    cluster.advance_to("2026-03-06T23:00:00Z").await;
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    cluster.advance_to("2026-03-09T13:30:00Z").await;
    let status = cluster.status("worker").await;
    let references = condition(&status, "ReferencesValid");
    assert_eq!(references["reason"], "KindNotServed", "{status:#}");
}

async fn a_drain_timeout_is_written_to_the_machine_at_once() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let edit = json!({"spec": {"nodeDrainTimeout": "90s"}});
    cluster.patch(&machine_path("worker"), &edit).await;
    cluster.settle().await;
    let [_, _, machine] = cluster.owned_paths("worker");
    let patched = cluster.get(&machine).await.unwrap();
    assert_eq!(cluster.drain_timeout(&patched).as_secs(), 90);
    let ready = condition(&cluster.status("worker").await, "Ready");
    assert_eq!(ready["reason"], "MachineRunning");
}

async fn a_grace_that_is_edited_during_a_drain_may_shorten_it_and_never_lengthens_it() {
    for (edited, ends) in [
        ("2m", "2026-03-06T23:02:00Z"),
        ("9m", "2026-03-06T23:05:00Z"),
    ] {
        let cluster = Cluster::start(instant("2026-03-06T22:50:00Z")).await;
        let _operator = cluster.operator();
        cluster.bring_up(&scheduled_machine("worker")).await;
        cluster.run_pod("only", "worker").await;
        cluster.hold_last_pod().await;
        cluster.advance_to("2026-03-06T23:01:00Z").await;
        let edit = json!({"spec": {
            "gracefulShutdownTimeout": edited, "nodeDrainTimeout": edited,
        }});
        cluster.patch(&machine_path("worker"), &edit).await;
        let [_, _, path] = cluster.owned_paths("worker");
        cluster.hold(&path).await;
        let limit = instant("2026-03-06T23:10:00Z");
        cluster
            .wait_for(&path, limit, |machine| {
                machine["metadata"].get("deletionTimestamp").is_some()
            })
            .await;
        assert_eq!(cluster.clock().now(), instant(ends));
    }
}
