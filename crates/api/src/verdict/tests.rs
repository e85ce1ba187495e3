use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Lease, State, Verdict, verdict};
use crate::ScheduledMachine;
use crate::condition::{Actor, Reason, Remedy};

const NOW: &str = "2026-03-06T15:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A time before now.
fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

/// An object, observed in its present generation, with this status.
fn object(status: &Value) -> Value {
    let mut status = status.clone();
    status["observedGeneration"] = json!(2);
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {
            "name": "worker", "namespace": "team-a", "generation": 2,
            "creationTimestamp": "2026-03-01T00:00:00Z",
        },
        "spec": {
            "schedule": {"cron": "0 9 * * *"}, "clusterName": "production",
            "bootstrapSpec": {"apiVersion": "a/v1", "kind": "K", "spec": {}},
            "infrastructureSpec": {"apiVersion": "a/v1", "kind": "K", "spec": {}},
        },
        "status": status,
    })
}

fn condition(kind: &str, status: &str, reason: &str, since: i64) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "lastTransitionTime": ago(since),
        "message": format!("message of {kind}"),
    })
}

/// A status with this phase and these conditions.
fn status(phase: &str, conditions: &[Value]) -> Value {
    json!({"phase": phase, "conditions": conditions})
}

fn judged(object: &Value) -> Verdict {
    let object: ScheduledMachine = serde_json::from_value(object.clone()).unwrap();
    verdict(&object, &Lease::Held, now())
}

fn judge(phase: &str, conditions: &[Value]) -> Verdict {
    judged(&object(&status(phase, conditions)))
}

#[test]
fn each_phase_has_a_state_and_time_makes_it_late_or_blocked() {
    let ready = |is_true: &str, reason: &str, since: i64| {
        condition("Ready", is_true, reason, since)
    };
    let running = ready("True", "MachineRunning", 30);
    for (phase, ready, expected) in [
        ("Active", running, State::Serving),
        ("Active", ready("True", "PendingChanges", 9), State::Serving),
        ("Active", ready("False", "NodeNotReady", 9), State::Late),
        (
            "Pending",
            ready("False", "Provisioning", 599),
            State::Starting,
        ),
        ("Pending", ready("False", "Provisioning", 600), State::Late),
        (
            "Error",
            ready("False", "MachineCreationFailed", 299),
            State::Starting,
        ),
        (
            "Error",
            ready("False", "MachineCreationFailed", 300),
            State::Blocked,
        ),
        (
            "ShuttingDown",
            ready("False", "ShuttingDown", 9),
            State::Leaving,
        ),
        (
            "EmergencyRemove",
            ready("False", "EmergencyReclaim", 9),
            State::Leaving,
        ),
        ("Inactive", ready("True", "Inactive", 9_999), State::Off),
        (
            "Inactive",
            ready("False", "ClusterNotFound", 9_999),
            State::Off,
        ),
        (
            "Disabled",
            ready("True", "Disabled", 9_999),
            State::Disabled,
        ),
        (
            "Terminated",
            ready("True", "Terminated", 9_999),
            State::Killed,
        ),
        ("Active", ready("False", "Paused", 9_999), State::Held),
        ("Inactive", ready("True", "Audited", 9_999), State::Held),
        ("Active", ready("False", "Audited", 9_999), State::Held),
    ] {
        let since = ready["lastTransitionTime"].clone();
        let found = judge(phase, &[ready]);
        assert_eq!(found.state, expected, "{phase}: {found:?}");
        assert_eq!(json!(found.since), since, "{phase}");
        assert_eq!(found.cause, "message of Ready", "{phase}");
        assert!(!found.is_stale, "{phase}");
    }
}

#[test]
fn a_removal_that_audit_mode_prevents_is_blocked() {
    let ready = condition("Ready", "False", "Audited", 60);
    let mut machine = object(&status("Active", &[ready]));
    assert_eq!(judged(&machine).state, State::Held);
    assert_eq!(judged(&machine).reason, "Audited");
    machine["spec"]["killSwitch"] = json!(true);
    assert_eq!(judged(&machine).state, State::Blocked);
}

#[test]
fn a_lead_time_says_what_provisioning_usually_takes() {
    let ready = condition("Ready", "False", "Provisioning", 30 * 60);
    let mut machine = object(&status("Pending", &[ready]));
    machine["status"]["leadTime"] = json!("45m");
    assert_eq!(judged(&machine).state, State::Starting);
    machine["status"]["leadTime"] = json!("20m");
    assert_eq!(judged(&machine).state, State::Late);
}

#[test]
fn a_machine_is_late_from_the_opening_of_its_window_and_not_from_an_earlier_one() {
    let ready = condition("Ready", "False", "ClusterNotReady", 9_999);
    let opened = condition("Scheduled", "True", "ScheduleActive", 60);
    let found = judge("Pending", &[ready, opened]);
    assert_eq!(found.state, State::Starting);
    assert_eq!(json!(found.since), json!(ago(60)));
}

#[test]
fn a_machine_is_held_since_its_override_is_in_force() {
    let ready = condition("Ready", "True", "MachineRunning", 9_999);
    let scheduled = condition("Scheduled", "Unknown", "OverrideHold", 60);
    let mut status = status("Active", &[ready, scheduled]);
    status["override"] = json!({"name": "demo", "mode": "Hold", "endTime": NOW});
    let found = judged(&object(&status));
    assert_eq!(found.state, State::Held);
    assert_eq!(json!(found.since), json!(ago(60)));
}

/// `Ready` does not change when the schedule of a machine is disabled that is off already.
#[test]
fn a_state_has_no_beginning_if_the_spec_changed_after_the_last_change_of_readiness() {
    for (phase, reason) in [("Disabled", "Disabled"), ("Terminated", "Terminated")] {
        let mut machine =
            object(&status(phase, &[condition("Ready", "True", reason, 500)]));
        let mut changed = |seconds: i64| {
            machine["metadata"]["managedFields"] = json!([{
                "manager": "kubectl", "operation": "Update", "time": ago(seconds),
                "fieldsV1": {"f:spec": {}},
            }]);
            judged(&machine).since
        };
        assert_eq!(json!(changed(501)), json!(ago(500)), "{phase}");
        assert_eq!(changed(499), None, "{phase}");
    }
}

#[test]
fn a_machine_is_late_a_minute_after_its_deadline() {
    let leaving = |deadline: i64| {
        let ready = condition("Ready", "False", "ShuttingDown", 900);
        let mut status = status("ShuttingDown", &[ready]);
        status["shutdown"] = json!({
            "machineUID": "m1", "reason": "ScheduleEnded", "startedAt": ago(900),
            "deadline": ago(deadline),
        });
        judged(&object(&status)).state
    };
    assert_eq!(leaving(59), State::Leaving);
    assert_eq!(leaving(60), State::Late);
}

#[test]
fn every_reason_that_stalls_a_machine_blocks_it_with_its_remedy_and_actor() {
    for row in Reason::TABLE {
        let ready = condition("Ready", "False", "Provisioning", 20);
        let stalled = condition("Stalled", "True", row.name, 10);
        let found = judge("Pending", &[ready, stalled]);
        let remedy = row.remedy.map(|it| it.text.replace("NAMESPACE", "team-a"));
        assert_eq!(found.state, State::Blocked, "{}", row.name);
        assert_eq!((&*found.reason, found.remedy), (row.name, remedy));
        assert_eq!(found.actor, row.actor, "{}", row.name);
        assert_eq!(
            found.page,
            row.remedy.and_then(|it| it.section).map(|it| it.path)
        );
    }
}

#[test]
fn every_reason_of_ready_has_the_remedy_and_the_actor_of_the_table() {
    for row in Reason::TABLE {
        let found = judge("Pending", &[condition("Ready", "False", row.name, 10)]);
        let remedy = row.remedy.map(|it| it.text.replace("NAMESPACE", "team-a"));
        assert_eq!((&*found.reason, found.remedy), (row.name, remedy));
        assert_eq!(found.actor, row.actor, "{}", row.name);
    }
}

#[test]
fn a_reason_without_a_remedy_needs_nobody_and_no_remedy_says_to_wait() {
    for row in Reason::TABLE {
        if row.remedy.is_none() {
            assert_eq!(row.actor, Actor::Nobody, "{}", row.name);
        }
        let text = row.remedy.map_or("", |it| it.text);
        assert!(!text.starts_with("Wait"), "{}: {text}", row.name);
    }
}

#[test]
fn a_problem_beside_a_machine_in_service_is_its_cause() {
    let ready = condition("Ready", "True", "MachineRunning", 30);
    let access = condition("NodeAccess", "False", "KubeconfigMissing", 20);
    let found = judge("Active", &[ready.clone(), access]);
    assert_eq!(found.state, State::Serving);
    assert_eq!(found.reason, "KubeconfigMissing");
    assert_eq!(found.cause, "message of Ready; message of NodeAccess");
    assert_eq!(found.actor, Actor::PlatformTeam);

    let access = condition("NodeAccess", "True", "Connected", 20);
    let found = judge("Active", &[ready, access]);
    assert_eq!((&*found.reason, found.remedy), ("MachineRunning", None));
}

#[test]
fn a_failure_that_a_provider_reports_is_remedied_at_its_object() {
    let said = "waiting for Machine worker to get a Node; RemoteMachine worker: ProvisionFailed: \
                secrets \"worker-key\" not found";
    let mut ready = condition("Ready", "False", "Provisioning", 30);
    ready["message"] = json!(said);
    let found = judge("Pending", &[ready.clone()]);
    assert_eq!(
        (found.state, found.actor),
        (State::Starting, Actor::Provider)
    );
    assert_eq!(found.cause, said);
    let remedy = found.remedy.unwrap();
    assert!(
        remedy.ends_with("`kubectl describe remotemachine worker -n team-a`."),
        "{remedy}"
    );
    let stalled = condition("Stalled", "True", "ProvisioningTimeout", 10);
    let found = judge("Pending", &[ready, stalled]);
    assert_eq!(found.state, State::Blocked);
    assert_eq!((found.remedy, &*found.cause), (Some(remedy), said));
}

#[test]
fn a_kill_switch_or_a_deletion_that_waits_for_a_pause_blocks() {
    let paused = condition("Ready", "False", "Paused", 30);
    let mut killed = object(&status("Active", &[paused]));
    killed["spec"]["killSwitch"] = json!(true);
    let found = judged(&killed);
    assert_eq!((found.state, &*found.reason), (State::Blocked, "Paused"));
    killed["spec"]["killSwitch"] = json!(false);
    assert_eq!(judged(&killed).state, State::Held);
    killed["metadata"]["deletionTimestamp"] = json!(ago(5));
    assert_eq!(judged(&killed).state, State::Blocked);
}

#[test]
fn a_held_and_a_disabled_machine_say_what_ends_it() {
    let ready = condition("Ready", "True", "MachineRunning", 30);
    let scheduled = condition("Scheduled", "Unknown", "OverrideHold", 10);
    let mut held = status("Active", &[ready, scheduled]);
    held["override"] = json!({"name": "inc-1", "mode": "Hold", "endTime": NOW});
    let found = judged(&object(&held));
    assert_eq!((found.state, &*found.reason), (State::Held, "OverrideHold"));

    let ready = condition("Ready", "True", "Disabled", 30);
    let scheduled =
        condition("Scheduled", "False", "EmergencyReclaimDisabledSchedule", 10);
    let found = judge("Disabled", &[ready, scheduled]);
    assert_eq!(found.state, State::Disabled);
    assert_eq!(found.reason, "EmergencyReclaimDisabledSchedule");
}

#[test]
fn nothing_is_known_while_no_operator_holds_a_lease() {
    let stalled = condition("Stalled", "True", "NameTaken", 10);
    let ready = condition("Ready", "False", "NameTaken", 10);
    let machine = object(&status("Error", &[ready, stalled]));
    let machine: ScheduledMachine = serde_json::from_value(machine).unwrap();
    let lease = Lease::NotHeld {
        cause: "no operator runs".to_owned(),
        since: Some(now()),
    };
    let found = verdict(&machine, &lease, now());
    assert_eq!((found.state, found.is_stale), (State::Unknown, true));
    assert_eq!(
        found.cause,
        "no operator runs; the last report was: message of Ready"
    );
    assert_eq!(found.remedy.as_deref(), Some(Remedy::NO_OPERATOR.text));
    // Who may not read the Lease is not told that no operator runs.
    let lease = Lease::NotReadable {
        cause: "forbidden".to_owned(),
    };
    assert_eq!(verdict(&machine, &lease, now()).state, State::Blocked);
}

#[test]
fn a_status_older_than_the_spec_by_more_than_a_minute_says_nothing() {
    let ready = condition("Ready", "True", "Inactive", 500);
    let mut machine = object(&status("Inactive", &[ready]));
    machine["metadata"]["generation"] = json!(3);
    let mut changed = |seconds: i64| {
        let entry = |subresource: &str, of: &str, seconds: i64| {
            json!({
                "manager": "kubectl", "operation": "Update", "subresource": subresource,
                "time": ago(seconds), "fieldsV1": {of: {}},
            })
        };
        machine["metadata"]["managedFields"] = json!([
            entry("", "f:spec", seconds),
            entry("status", "f:status", 1),
            entry("", "f:metadata", 1),
        ]);
        judged(&machine)
    };
    let found = changed(60);
    assert_eq!((found.state, found.is_stale), (State::Off, true));
    let found = changed(61);
    assert_eq!((found.state, found.is_stale), (State::Unknown, true));
    assert_eq!(json!(found.since), json!(ago(61)));
    assert!(found.cause.contains("generation 3"), "{}", found.cause);
    assert!(found.remedy.unwrap().contains("namespace team-a"));
}

#[test]
fn an_object_that_no_operator_has_seen_is_unknown() {
    let mut new = object(&json!({}));
    new["status"] = json!({"observedGeneration": -1});
    new["metadata"]["creationTimestamp"] = json!(ago(10));
    let found = judged(&new);
    assert_eq!((found.state, found.is_stale), (State::Unknown, true));
    let cause = "the operator has not reported on this object yet";
    assert_eq!((&*found.cause, found.remedy), (cause, None));
    new["metadata"]["creationTimestamp"] = json!(ago(100));
    let found = judged(&new);
    assert_eq!((found.state, &*found.cause), (State::Unknown, cause));
    assert!(found.remedy.is_some());
}

#[test]
fn states_are_listed_with_what_to_look_at_first() {
    let mut ranked = State::ALL;
    ranked.sort_by_key(|it| it.rank());
    assert_eq!(ranked, State::ALL);
    assert_eq!(ranked[..3], [State::Blocked, State::Unknown, State::Late]);
}
