//! If nothing changes, nothing is written: in every state of a machine, a reconcile that finds the
//! desired state writes nothing.

use fivespot_api::crd;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Operator, condition, instant, machine_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(without_its_cluster),
    promise!(without_the_kind_that_it_names),
    promise!(in_service_with_taints_and_the_agent),
    promise!(while_a_disruption_budget_blocks_its_drain),
    promise!(with_overrides_and_a_calendar),
    promise!(outside_its_window),
    promise!(switched_off),
    promise!(killed),
    promise!(with_its_name_taken),
    promise!(paused),
    promise!(with_an_invalid_schedule).disruptive(),
];

const IN_WINDOW: &str = "2026-03-06T15:00:00Z";
const POLICY: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/scheduledmachine-validation";
/// How many consecutive reconciles must write nothing.
const QUIET: u32 = 3;
/// The maximum number of reconciles until then. A real Cluster API changes its objects meanwhile.
const RECONCILES: u32 = 30;

/// Triggers reconciles of the worker until several in a row have written nothing. Only annotations
/// of the operator's group trigger a reconcile.
async fn rests(cluster: &Cluster, operator: &Operator) {
    cluster.settle().await;
    let mut quiet = 0;
    for round in 0..RECONCILES {
        let (writes, passes) = (cluster.operator_writes().len(), operator.reconciles());
        let touch = json!({"metadata": {"annotations": {"5spot.finos.org/touched": round.to_string()}}});
        cluster.patch(&machine_path("worker"), &touch).await;
        cluster
            .eventually(async || operator.reconciles() > passes)
            .await;
        cluster.settle().await;
        let has_written = cluster.operator_writes().len() > writes;
        quiet = if has_written { 0 } else { quiet + 1 };
        if quiet == QUIET {
            return;
        }
    }
    let last = cluster.operator_writes().pop();
    panic!("each of {RECONCILES} reconciles may write; the last: {last:?}");
}

/// Waits until a condition of the worker has this reason.
async fn until_condition(cluster: &Cluster, kind: &str, reason: &str) {
    let is_reported =
        |object: &Value| condition(&object["status"], kind)["reason"] == reason;
    cluster
        .wait_briefly(&machine_path("worker"), is_reported)
        .await;
}

async fn without_its_cluster() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    cluster.apply(&scheduled_machine("worker")).await;
    until_condition(&cluster, "ReferencesValid", "ClusterNotFound").await;
    rests(&cluster, &operator).await;
}

async fn without_the_kind_that_it_names() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    cluster.add_cluster().await;
    let mut worker = scheduled_machine("worker");
    worker["spec"]["infrastructureSpec"]["kind"] = json!("NowhereMachine");
    cluster.apply(&worker).await;
    until_condition(&cluster, "ReferencesValid", "KindNotServed").await;
    rests(&cluster, &operator).await;
}

async fn in_service_with_taints_and_the_agent() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["killIfCommands"] = json!(["steam"]);
    worker["spec"]["nodeTaints"] =
        json!([{"key": "workload", "value": "batch", "effect": "NoSchedule"}]);
    cluster.bring_up(&worker).await;
    until_condition(&cluster, "NodeTainted", "Applied").await;
    // A minute after the configuration, the agent is reported as missing.
    until_condition(&cluster, "AgentReady", "NotInstalled").await;
    rests(&cluster, &operator).await;
}

async fn while_a_disruption_budget_blocks_its_drain() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:01:00Z");
    cluster
        .wait_for_phase("worker", "ShuttingDown", limit)
        .await;
    rests(&cluster, &operator).await;
}

/// Keeps the worker on by one of two overrides, and off on the dates of a calendar.
pub(crate) async fn with_override_and_calendar(cluster: &Cluster) -> Value {
    let of = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "5spot.finos.org/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": "default"}, "spec": spec,
        })
    };
    let dates = json!({"dates": [{"name": "christmas", "date": "12-25"}]});
    cluster
        .apply(&of("ScheduleCalendar", "company", dates))
        .await;
    let run = json!({
        "targetRef": {"name": "worker"}, "mode": "Run", "endTime": "2026-03-06T22:30:00Z",
    });
    cluster.apply(&of("ScheduleOverride", "today", run)).await;
    let later = json!({
        "selector": {"matchLabels": {"team": "x"}}, "mode": "Stop",
        "startTime": "2026-03-09T14:00:00Z", "endTime": "2026-03-09T15:00:00Z",
    });
    cluster
        .apply(&of("ScheduleOverride", "monday", later))
        .await;
    let mut worker = scheduled_machine("worker");
    worker["metadata"]["labels"] = json!({"team": "x"});
    worker["spec"]["schedule"]["exceptions"] = json!([
        {"name": "holidays", "action": "Stop", "calendarRef": {"name": "company"}},
    ]);
    worker
}

async fn with_overrides_and_a_calendar() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    let worker = with_override_and_calendar(&cluster).await;
    cluster.bring_up(&worker).await;
    until_condition(&cluster, "Scheduled", "OverrideRun").await;
    rests(&cluster, &operator).await;
}

async fn outside_its_window() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    rests(&cluster, &operator).await;
}

async fn switched_off() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let disable = json!({"spec": {"schedule": {"enabled": false}}});
    cluster.patch(&machine_path("worker"), &disable).await;
    let limit = instant("2026-03-06T15:05:00Z");
    cluster.wait_for_phase("worker", "Disabled", limit).await;
    rests(&cluster, &operator).await;
}

async fn killed() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&machine_path("worker"), &kill).await;
    let limit = instant("2026-03-06T15:05:00Z");
    cluster.wait_for_phase("worker", "Terminated", limit).await;
    rests(&cluster, &operator).await;
}

async fn with_its_name_taken() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    cluster.add_cluster().await;
    let worker = scheduled_machine("worker");
    cluster
        .apply(&json!({
            "apiVersion": worker["spec"]["bootstrapSpec"]["apiVersion"],
            "kind": worker["spec"]["bootstrapSpec"]["kind"],
            "metadata": {"name": "worker", "namespace": "default"},
            "spec": {},
        }))
        .await;
    cluster.apply(&worker).await;
    until_condition(&cluster, "ReferencesValid", "NameTaken").await;
    rests(&cluster, &operator).await;
}

async fn paused() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let pause = json!({"spec": {"paused": true}});
    cluster.patch(&cluster.cluster_path(), &pause).await;
    until_condition(&cluster, "Ready", "Paused").await;
    rests(&cluster, &operator).await;
}

async fn with_an_invalid_schedule() {
    let cluster = Cluster::start(instant(IN_WINDOW)).await;
    let operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.apply(&crd::render_without_rules()).await;
    cluster.delete(POLICY).await;
    let broken = json!({"spec": {"schedule": {"timezone": "Mars/Olympus"}}});
    let worker = machine_path("worker");
    cluster.patch_once_admitted(&worker, &broken).await;
    until_condition(&cluster, "ScheduleValid", "UnknownTimeZone").await;
    rests(&cluster, &operator).await;
}
