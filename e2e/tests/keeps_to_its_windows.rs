//! A machine is created in time for its window and removed by its end, if the spec requires that.

use fivespot_testkit::{Cluster, condition, instant, machine_path, scheduled_machine};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_machine_is_created_the_lead_time_before_its_window),
    promise!(no_machine_is_created_for_less_than_its_minimum_run),
    promise!(an_exception_of_action_run_opens_its_dates),
    promise!(a_machine_that_completes_by_the_window_end_leaves_before_it),
    promise!(its_machine_is_deleted_by_the_end_while_a_budget_blocks_the_drain),
    promise!(a_machine_that_is_gone_after_the_end_has_left_late),
];

/// When the window of the worker ends.
const END: &str = "2026-03-06T23:00:00Z";

/// The worker with a window from nine to six in New York.
fn worker() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"] = json!({
        "timezone": "America/New_York",
        "windows": [{
            "name": "office", "days": ["mon-fri"], "start": "09:00", "end": "18:00",
        }],
    });
    worker
}

fn by_the_end() -> Value {
    let mut worker = worker();
    worker["spec"]["shutdown"] = json!({"endPolicy": "CompleteByWindowEnd"});
    worker
}

/// When the operator requested the deletion of the Machine.
fn deleted_at(cluster: &Cluster) -> Option<Timestamp> {
    let writes = cluster.operator_writes_to("machines");
    let deletion = writes.iter().find(|write| write.contains(" delete "))?;
    Some(instant(deletion.split(' ').next()?))
}

/// The notes of the Warnings `LeftLate` about the worker.
async fn late(cluster: &Cluster) -> Vec<String> {
    let worker = cluster.get(&machine_path("worker")).await.unwrap();
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let events = cluster.list(path).await;
    let about = events.iter().filter(|event| {
        event["regarding"]["uid"] == worker["metadata"]["uid"]
            && event["reason"] == "LeftLate"
            && event["type"] == "Warning"
    });
    about
        .map(|event| event["note"].as_str().unwrap_or_default().to_owned())
        .collect()
}

async fn a_machine_is_created_the_lead_time_before_its_window() {
    let cluster = Cluster::start(instant("2026-03-06T13:45:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let mut worker = worker();
    worker["spec"]["provisioning"] = json!({"leadTime": "10m"});
    cluster.apply(&worker).await;
    let limit = instant("2026-03-06T13:46:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    let early = "2026-03-06T13:50:00Z";
    cluster.advance_to("2026-03-06T13:49:59Z").await;
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "Inactive");
    assert_eq!(status["nextActivation"], early);
    cluster.advance_to(early).await;
    let limit = instant("2026-03-06T13:51:00Z");
    let active = cluster.wait_for_phase("worker", "Active", limit).await;
    let status = &active["status"];
    assert_eq!(status["lastScheduledTime"], early);
    assert_eq!(status["inSchedule"], false, "the window is not open yet");
    cluster.advance_to("2026-03-06T14:00:00Z").await;
    let is_open = |object: &Value| object["status"]["inSchedule"] == true;
    cluster.wait_briefly(&machine_path("worker"), is_open).await;
}

async fn no_machine_is_created_for_less_than_its_minimum_run() {
    let cluster = Cluster::start(instant("2026-03-06T22:40:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let mut worker = worker();
    worker["spec"]["provisioning"] = json!({"minimumRun": "30m"});
    cluster.apply(&worker).await;
    let limit = instant("2026-03-06T22:41:00Z");
    let inactive = cluster.wait_for_phase("worker", "Inactive", limit).await;
    let status = &inactive["status"];
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("minimumRun"), "{message}");
    assert_eq!(condition(status, "Ready")["status"], "True");
    assert_eq!(status["nextActivation"], "2026-03-09T13:00:00Z");
    cluster.advance_to(END).await;
    assert_eq!(cluster.operator_writes_to("machines"), [""; 0]);
}

async fn an_exception_of_action_run_opens_its_dates() {
    // Midnight in New York is at five in UTC.
    let cluster = Cluster::start(instant("2026-03-07T04:55:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let mut worker = worker();
    worker["spec"]["schedule"]["exceptions"] = json!([{
        "name": "migration", "action": "Run",
        "startDate": "2026-03-07", "endDate": "2026-03-07",
    }]);
    cluster.apply(&worker).await;
    let limit = instant("2026-03-07T04:56:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    cluster.advance_to("2026-03-07T04:59:59Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    let limit = instant("2026-03-07T05:01:00Z");
    let active = cluster.wait_for_phase("worker", "Active", limit).await;
    let scheduled = condition(&active["status"], "Scheduled");
    assert_eq!(scheduled["reason"], "ExceptionRun");
    cluster.advance_to("2026-03-08T04:59:59Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Active");
    let limit = instant("2026-03-08T05:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_machine_that_completes_by_the_window_end_leaves_before_it() {
    let cluster = Cluster::start(instant("2026-03-06T22:50:00Z")).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&by_the_end()).await;
    let start = "2026-03-06T22:55:00Z";
    assert_eq!(active["status"]["nextCleanup"], start);
    cluster.advance_to("2026-03-06T22:54:59Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "Active");
    let limit = instant("2026-03-06T22:59:00Z");
    let inactive = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(inactive["status"]["nextActivation"], "2026-03-09T13:00:00Z");
    cluster.advance_to("2026-03-06T23:10:00Z").await;
    assert_eq!(late(&cluster).await, [""; 0]);
}

async fn its_machine_is_deleted_by_the_end_while_a_budget_blocks_the_drain() {
    let cluster = Cluster::start(instant("2026-03-06T22:50:00Z")).await;
    let _operator = cluster.operator();
    cluster.bring_up(&by_the_end()).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    let limit = instant("2026-03-06T23:10:00Z");
    let leaving = cluster
        .wait_for_phase("worker", "ShuttingDown", limit)
        .await;
    assert_eq!(leaving["status"]["shutdown"]["windowEnd"], END);
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    let deleted = deleted_at(&cluster).unwrap();
    assert!(deleted <= instant(END), "{deleted}");
}

async fn a_machine_that_is_gone_after_the_end_has_left_late() {
    let cluster = Cluster::start(instant("2026-03-06T22:50:00Z")).await;
    let _operator = cluster.operator();
    cluster.bring_up(&by_the_end()).await;
    let [_, infrastructure, _] = cluster.owned_paths("worker");
    cluster.hold(&infrastructure).await;
    cluster.advance_to("2026-03-06T23:02:00Z").await;
    assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
    cluster.release(&infrastructure).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    let is_reported = async || !late(&cluster).await.is_empty();
    cluster.eventually(is_reported).await;
    let [note] = &late(&cluster).await[..] else {
        panic!("one Warning");
    };
    let end = format!("after the end of its window at {END}");
    assert!(note.contains(&end), "{note}");
}
