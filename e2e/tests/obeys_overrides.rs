//! ScheduleOverrides and ScheduleCalendars change the result of a schedule without a change of any
//! spec.

use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, condition, instant, machine_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_run_override_keeps_a_machine_to_its_end_and_is_deleted_an_hour_later),
    promise!(a_stop_override_by_labels_stops_what_it_selects),
    promise!(a_hold_override_keeps_what_is_there),
    promise!(a_hold_override_that_ends_within_a_second_ends_with_it),
    promise!(a_calendar_keeps_a_machine_off_on_its_dates),
];

fn override_path(name: &str) -> String {
    format!("/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduleoverrides/{name}")
}

fn overriding(spec: &Value) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduleOverride",
        "metadata": {"name": "tonight", "namespace": "default"},
        "spec": spec,
    })
}

async fn a_run_override_keeps_a_machine_to_its_end_and_is_deleted_an_hour_later() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let run = overriding(&json!({
        "targetRef": {"name": "worker"}, "mode": "Run", "endTime": "2026-03-07T00:30:00Z",
    }));
    cluster.apply(&run).await;
    cluster.advance_to("2026-03-07T00:20:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active");
    assert_eq!(status["override"]["name"], "tonight");
    assert_eq!(condition(&status, "Scheduled")["reason"], "OverrideRun");
    assert_eq!(
        status["machineRef"]["uid"],
        active["status"]["machineRef"]["uid"]
    );
    let path = override_path("tonight");
    let is_active =
        |object: &Value| condition(&object["status"], "Active")["status"] == "True";
    let found = cluster.wait_briefly(&path, is_active).await;
    assert_eq!(found["status"]["matchedMachines"], 1);
    let limit = instant("2026-03-07T01:00:00Z");
    let inactive = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(inactive["status"].get("override"), None);
    cluster.advance_to("2026-03-07T01:29:00Z").await;
    let kept = cluster.get(&path).await.unwrap();
    assert_eq!(condition(&kept["status"], "Expired")["status"], "True");
    cluster
        .wait_until_gone(&path, instant("2026-03-07T01:31:00Z"))
        .await;
    let after = cluster.get(&machine_path("worker")).await.unwrap();
    assert_eq!(
        after["spec"], active["spec"],
        "nothing of the spec is written"
    );
}

async fn a_stop_override_by_labels_stops_what_it_selects() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["metadata"]["labels"] = json!({"team": "x"});
    cluster.bring_up(&worker).await;
    let stop = overriding(&json!({
        "selector": {"matchLabels": {"team": "x"}}, "mode": "Stop",
        "endTime": "2026-03-07T00:30:00Z",
    }));
    cluster.apply(&stop).await;
    let limit = instant("2026-03-06T22:58:00Z");
    let inactive = cluster.wait_for_phase("worker", "Inactive", limit).await;
    let scheduled = condition(&inactive["status"], "Scheduled");
    assert_eq!(scheduled["reason"], "OverrideStop");
}

async fn a_hold_override_keeps_what_is_there() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let hold = overriding(&json!({
        "targetRef": {"name": "worker"}, "mode": "Hold", "endTime": "2026-03-07T00:30:00Z",
    }));
    cluster.apply(&hold).await;
    cluster.advance_to("2026-03-07T00:29:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active");
    assert_eq!(status.get("shutdown"), None);
    assert_eq!(condition(&status, "Ready")["status"], "True");
    assert_eq!(
        status["machineRef"]["uid"],
        active["status"]["machineRef"]["uid"]
    );
    // Ended early by its deletion.
    cluster.delete(&override_path("tonight")).await;
    let limit = instant("2026-03-07T01:00:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_hold_override_that_ends_within_a_second_ends_with_it() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let mut hold = overriding(&json!({
        "targetRef": {"name": "worker"}, "mode": "Hold", "endTime": "2026-03-06T23:10:00.500Z",
    }));
    hold["metadata"]["annotations"] = json!({"5spot.finos.org/keep": "true"});
    cluster.apply(&hold).await;
    cluster.advance_to("2026-03-06T23:10:00Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Active");
    assert_eq!(status["override"]["endTime"], "2026-03-06T23:10:01Z");
    let limit = instant("2026-03-06T23:20:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_calendar_keeps_a_machine_off_on_its_dates() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"]["exceptions"] = json!([
        {"name": "holidays", "action": "Stop", "calendarRef": {"name": "company"}},
    ]);
    let active = cluster.bring_up(&worker).await;
    let ready = condition(&active["status"], "ReferencesValid");
    assert_eq!(ready["reason"], "CalendarNotFound");
    cluster
        .apply(&json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduleCalendar",
            "metadata": {"name": "company", "namespace": "default"},
            "spec": {"dates": [{"name": "friday", "date": "2026-03-06"}]},
        }))
        .await;
    let limit = instant("2026-03-06T22:58:00Z");
    let inactive = cluster.wait_for_phase("worker", "Inactive", limit).await;
    let scheduled = condition(&inactive["status"], "Scheduled");
    assert_eq!(scheduled["reason"], "ExceptionStop");
}
