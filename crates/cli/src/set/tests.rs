//! Sets as a server has them.

use fivespot_api::verdict::Lease;
use fivespot_testkit::{instant, scheduled_machine};
use serde_json::{Value, json};

use super::*;

pub(crate) fn judge() -> Judge {
    Judge {
        lease: Lease::Held,
        capacity_lease: Lease::Held,
        now: instant("2026-03-06T22:00:00Z"),
    }
}

/// A set of that many machines, of which the operator has said this.
pub(crate) fn set(replicas: u32, ready: (&str, &str)) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineSet",
        "metadata": {"name": "desks", "namespace": "default", "uid": "set-1"},
        "spec": {"replicas": replicas, "template": {"spec": {
            "classRef": {"name": "lent-desks"},
            "schedule": {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["19-23"]},
        }}},
        "status": {"replicas": 3, "activeReplicas": 2, "readyReplicas": 2, "conditions": [{
            "type": "Ready", "status": ready.0, "reason": "Scaled", "message": ready.1,
            "lastTransitionTime": "2026-03-06T19:00:00Z",
        }]},
    })
}

/// A machine of the set, with its phase, whether it is Ready, and the reason and message of that.
pub(crate) fn member(index: u32, phase: &str, ready: [&str; 3]) -> Value {
    let mut machine = scheduled_machine(&format!("desks-{index}"));
    let metadata = &mut machine["metadata"];
    metadata["uid"] = json!(format!("uid-{index}"));
    metadata["labels"][name::SET_LABEL] = json!("desks");
    metadata["ownerReferences"] = json!([{
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineSet",
        "name": "desks", "uid": "set-1", "controller": true,
    }]);
    machine["status"] = json!({
        "phase": phase, "message": ready[2],
        "conditions": [{
            "type": "Ready", "status": ready[0], "reason": ready[1], "message": ready[2],
            "lastTransitionTime": "2026-03-06T21:59:00Z",
        }],
    });
    machine
}

/// Two desks are in service, one waits for a host, and one belongs to nobody.
pub(crate) fn two_of_three() -> Vec<Value> {
    let serving = ["True", "InService", "Node desk-1 is in service"];
    let none_free = "no host of ScheduledMachineClass lent-desks is free; the machine takes the \
                     next one";
    let mut other = member(9, "Active", serving);
    other["metadata"]["ownerReferences"] = json!([]);
    vec![
        member(0, "Active", serving),
        member(1, "Active", serving),
        member(2, "Pending", ["False", "NoHostFree", none_free]),
        other,
    ]
}

#[test]
fn a_set_counts_its_own_machines_and_says_why_not_more_are_active() {
    let found = set(3, ("True", "3 of 3 ScheduledMachines exist"));
    let state = SetState::of(&found, two_of_three().iter(), &judge());
    let SetState {
        wanted,
        exist,
        active,
        ready,
        ..
    } = state;
    assert_eq!((wanted, exist, active, ready), (3, 3, 2, 2));
    assert!(
        state
            .message
            .contains(": no host of ScheduledMachineClass lent-desks is free"),
        "{}",
        state.message
    );
    assert_eq!(state.machines[0].name, "desks-2");
}

#[test]
fn what_the_operator_says_of_a_set_comes_first_and_all_is_well_is_its_message() {
    let machines = two_of_three();
    let refused = "2 of 4 ScheduledMachines exist: exceeded quota";
    let state = SetState::of(&set(4, ("False", refused)), machines.iter(), &judge());
    assert!(
        state.message.starts_with(&format!("{refused}; 1 ")),
        "{}",
        state.message
    );
    let well = set(2, ("True", "2 of 2 ScheduledMachines exist"));
    let state = SetState::of(&well, machines[..2].iter(), &judge());
    assert_eq!(state.message, "2 of 2 ScheduledMachines exist");
    let broken = json!({"kind": "ScheduledMachineSet", "spec": {"replicas": "many"}});
    let state = SetState::of(&broken, machines.iter(), &judge());
    assert!(
        state.message.starts_with("cannot be decoded: "),
        "{}",
        state.message
    );
}
