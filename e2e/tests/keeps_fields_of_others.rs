//! The operator changes only its own fields of the status: conditions and finalizers of other
//! controllers stay, times are kept, and nothing of an old machine is reported for its successor.

use fivespot_api::name;
use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, condition, instant, machine_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(finalizers_and_conditions_of_others_stay),
    promise!(a_condition_that_stays_as_it_was_keeps_its_time),
    promise!(references_are_removed_with_the_machine_and_set_with_the_next),
];

const THEIRS: &str = "example.com/theirs";

async fn finalizers_and_conditions_of_others_stay() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let worker = machine_path("worker");
    let finalizers = json!({"metadata": {"finalizers": [THEIRS, name::FINALIZER]}});
    cluster.patch(&worker, &finalizers).await;
    let mut conditions = active["status"]["conditions"].as_array().unwrap().clone();
    let audited = json!({
        "type": "example.com/Audited", "status": "True", "reason": "Audited",
        "message": "by hand", "lastTransitionTime": "2026-03-06T12:00:00Z",
    });
    conditions.push(audited.clone());
    let path = format!("{worker}/status");
    cluster
        .patch(&path, &json!({"status": {"conditions": conditions}}))
        .await;
    let limit = instant("2026-03-06T23:10:00Z");
    let inactive = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(
        inactive["metadata"]["finalizers"],
        json!([THEIRS, name::FINALIZER])
    );
    assert_eq!(
        condition(&inactive["status"], "example.com/Audited"),
        audited
    );

    cluster.delete(&worker).await;
    let only_theirs =
        |object: &Value| object["metadata"]["finalizers"] == json!([THEIRS]);
    cluster.wait_briefly(&worker, only_theirs).await;
    cluster.advance_to("2026-03-06T23:30:00Z").await;
    let left = cluster.get(&worker).await.unwrap();
    assert_eq!(left["metadata"]["finalizers"], json!([THEIRS]));
    let release = json!({"metadata": {"finalizers": []}});
    cluster.patch(&worker, &release).await;
    cluster
        .wait_until_gone(&worker, instant("2026-03-06T23:31:00Z"))
        .await;
}

async fn a_condition_that_stays_as_it_was_keeps_its_time() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.settle().await;
    let worker = machine_path("worker");
    let before = cluster.status("worker").await;
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    let edit = json!({"spec": {"machineTemplate": {"labels": {"team": "blue"}}}});
    cluster.patch(&worker, &edit).await;
    let is_reported = |object: &Value| {
        condition(&object["status"], "Ready")["reason"] == "PendingChanges"
    };
    let after = cluster.wait_briefly(&worker, is_reported).await;
    // Another reason is not another state.
    for kind in [
        "Ready",
        "Scheduled",
        "ScheduleValid",
        "ReferencesValid",
        "NodeAccess",
    ] {
        let [before, after] = [&before, &after["status"]].map(|it| condition(it, kind));
        assert_eq!(before["status"], "True", "{kind}");
        assert_eq!(
            before["lastTransitionTime"], after["lastTransitionTime"],
            "{kind}"
        );
    }
    let ready = condition(&after["status"], "Ready");
    assert_eq!(ready["observedGeneration"], after["metadata"]["generation"]);
}

async fn references_are_removed_with_the_machine_and_set_with_the_next() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeTaints"] = json!([{"key": "workload", "effect": "NoSchedule"}]);
    let first = cluster.bring_up(&worker).await;
    let limit = instant("2026-03-06T23:10:00Z");
    let inactive = cluster.wait_for_phase("worker", "Inactive", limit).await;
    for field in [
        "machineRef",
        "nodeRef",
        "providerID",
        "appliedNodeTaints",
        "shutdown",
    ] {
        assert_eq!(inactive["status"].get(field), None, "{field}");
    }
    // The references of the next machine are already set, without a uid.
    for field in ["bootstrapRef", "infrastructureRef"] {
        let reference = &inactive["status"][field];
        assert_eq!(reference["name"], "worker", "{field}");
        assert_eq!(reference.get("uid"), None, "{field}");
    }
    let longer = json!({"spec": {"schedule": {"hoursOfDay": ["9-22"]}}});
    cluster.patch(&machine_path("worker"), &longer).await;
    let limit = instant("2026-03-06T23:20:00Z");
    let second = cluster.wait_for_phase("worker", "Active", limit).await;
    for field in ["machineRef", "bootstrapRef", "infrastructureRef", "nodeRef"] {
        let [first, second] =
            [&first, &second].map(|object| object["status"][field]["uid"].clone());
        assert!(second.is_string(), "{field}");
        assert_ne!(first, second, "{field}");
    }
}
