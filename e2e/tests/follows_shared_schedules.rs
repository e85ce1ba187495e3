//! A machine follows a schedule that is an object of its own.

use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, condition, instant, machine_path, path_of,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_machine_leaves_when_the_schedule_that_it_follows_closes),
    promise!(a_machine_leaves_at_the_early_close_of_a_market),
    promise!(an_edit_of_a_schedule_reaches_its_followers),
    promise!(an_exception_beside_the_reference_is_of_the_machine_alone),
    promise!(a_schedule_publishes_each_transition_once),
    promise!(an_invalid_schedule_publishes_what_it_published_last),
    promise!(while_the_schedule_is_missing_what_was_decided_last_holds_on),
];

const API_VERSION: &str = "spotschedules.5spot.finos.org/v1alpha1";

fn office() -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "TimeBasedSpotSchedule",
        "metadata": {"name": "office", "namespace": "default"},
        "spec": {
            "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "America/New_York",
        },
    })
}

fn follower(name: &str, kind: &str, schedule: &str) -> Value {
    let mut worker = scheduled_machine(name);
    worker["spec"]["schedule"] =
        json!({"apiVersion": API_VERSION, "kind": kind, "name": schedule});
    worker
}

async fn a_machine_leaves_when_the_schedule_that_it_follows_closes() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.apply(&office()).await;
    let worker = follower("worker", "TimeBasedSpotSchedule", "office");
    let status = cluster.bring_up(&worker).await["status"].clone();
    let followed = &status["spotSchedule"];
    assert_eq!(followed["name"], "office");
    assert_eq!(followed["active"], true);
    assert_eq!(followed["nextTransitionTime"], CLOSING);
    assert_eq!(followed["observedGeneration"], 1);
    let resolved = condition(&status, "SpotScheduleResolved");
    assert_eq!(
        (&resolved["status"], &resolved["reason"]),
        (&json!("True"), &json!("Resolved"))
    );
    assert_eq!(status["nextCleanup"], CLOSING);
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    let object = cluster.wait_for_phase("worker", "Inactive", limit).await;
    let status = &object["status"];
    assert_eq!(status["spotSchedule"]["active"], false);
    // Monday at 09:00 in New York, after the change of the clocks.
    assert_eq!(status["nextActivation"], "2026-03-09T13:00:00Z");
}

async fn a_machine_leaves_at_the_early_close_of_a_market() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let market = json!({
        "apiVersion": API_VERSION,
        "kind": "CapitalMarketsSchedule",
        "metadata": {"name": "market", "namespace": "default"},
        "spec": {
            "timezone": "America/New_York",
            "sessions": [{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-20"]}],
            "holidays": ["2026-03-09"],
            "earlyCloses": [{"date": "2026-03-06", "closeHour": 17}],
        },
    });
    cluster.apply(&market).await;
    let worker = follower("worker", "CapitalMarketsSchedule", "market");
    let active = cluster.bring_up(&worker).await;
    assert_eq!(active["status"]["nextCleanup"], CLOSING);
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    let object = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(object["status"]["nextActivation"], "2026-03-10T13:00:00Z");
}

async fn an_edit_of_a_schedule_reaches_its_followers() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply(&office()).await;
    for name in ["one", "two"] {
        let worker = follower(name, "TimeBasedSpotSchedule", "office");
        cluster.bring_up(&worker).await;
    }
    let night = json!({"spec": {"hoursOfDay": ["22-23"]}});
    cluster.patch(&path_of(&office()), &night).await;
    for name in ["one", "two"] {
        let is_leaving = |object: &Value| object["status"]["phase"] != "Active";
        cluster.wait_briefly(&machine_path(name), is_leaving).await;
        let limit = instant("2026-03-06T15:20:00Z");
        let object = cluster.wait_for_phase(name, "Inactive", limit).await;
        assert_eq!(object["status"]["spotSchedule"]["observedGeneration"], 2);
    }
}

/// Waits until the schedule `office` publishes this for the last generation.
async fn published(cluster: &Cluster, is_ready: &str, reason: &str) -> Value {
    let is_published = |object: &Value| {
        let ready = condition(&object["status"], "Ready");
        ready["status"] == is_ready
            && ready["reason"] == reason
            && object["status"]["observedGeneration"] == object["metadata"]["generation"]
    };
    cluster
        .wait_briefly(&path_of(&office()), is_published)
        .await
}

async fn a_schedule_publishes_each_transition_once() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply(&office()).await;
    let open = published(&cluster, "True", "WindowOpen").await;
    assert_eq!(open["status"]["active"], true);
    assert_eq!(open["status"]["nextTransitionTime"], CLOSING);
    cluster.advance_to(BEFORE_CLOSING).await;
    let before = cluster.get(&path_of(&office())).await.unwrap();
    assert_eq!(before, open);
    cluster.advance_to(CLOSING).await;
    let closed = published(&cluster, "True", "WindowClosed").await;
    let status = &closed["status"];
    assert_eq!(status["active"], false);
    assert_eq!(status["lastTransitionTime"], CLOSING);
    assert_eq!(status["nextTransitionTime"], "2026-03-09T13:00:00Z");
}

async fn an_invalid_schedule_publishes_what_it_published_last() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply(&office()).await;
    published(&cluster, "True", "WindowOpen").await;
    // The server checks the form of a zone, not whether there is one of that name.
    let unknown = json!({"spec": {"timezone": "Atlantis/City", "hoursOfDay": ["3"]}});
    cluster.patch(&path_of(&office()), &unknown).await;
    let invalid = published(&cluster, "False", "InvalidSchedule").await;
    assert_eq!(invalid["status"]["active"], true);
    assert_eq!(invalid["status"].get("nextTransitionTime"), None);
    let spec = json!({"spec": office()["spec"]});
    cluster.patch(&path_of(&office()), &spec).await;
    published(&cluster, "True", "WindowOpen").await;
}

async fn an_exception_beside_the_reference_is_of_the_machine_alone() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.apply(&office()).await;
    let mut worker = follower("worker", "TimeBasedSpotSchedule", "office");
    // The whole of Friday, in the zone of the machine.
    worker["spec"]["schedule"]["timezone"] = json!("UTC");
    worker["spec"]["schedule"]["exceptions"] = json!([
        {"name": "long-friday", "action": "Run",
         "startDate": "2026-03-06", "endDate": "2026-03-06"},
    ]);
    let active = cluster.bring_up(&worker).await;
    let status = &active["status"];
    assert_eq!(status["nextCleanup"], "2026-03-07T00:00:00Z");
    assert_eq!(status["spotSchedule"]["nextTransitionTime"], CLOSING);
}

async fn while_the_schedule_is_missing_what_was_decided_last_holds_on() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = follower("worker", "TimeBasedSpotSchedule", "office");
    cluster.apply(&worker).await;
    let limit = instant("2026-03-06T22:55:00Z");
    // It was never resolved, so the machine is not wanted.
    let object = cluster.wait_for_phase("worker", "Inactive", limit).await;
    let resolved = condition(&object["status"], "SpotScheduleResolved");
    assert_eq!(resolved["reason"], "ProviderNotFound");
    cluster.apply(&office()).await;
    cluster.wait_for_phase("worker", "Active", limit).await;
    cluster.delete(&path_of(&office())).await;
    let is_missing = |object: &Value| {
        condition(&object["status"], "SpotScheduleResolved")["status"] == "False"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_missing)
        .await;
    cluster.advance_to("2026-03-06T23:30:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active");
    assert_eq!(status["spotSchedule"]["active"], true);
    cluster.apply(&office()).await;
    let limit = instant("2026-03-06T23:50:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}
