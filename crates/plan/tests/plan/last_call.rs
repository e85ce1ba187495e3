//! The last call during the lifecycle of a machine.

use fivespot_api::{Phase, name};
use fivespot_capi::Contract;
use fivespot_plan::{Cause, Memory, Step};
use fivespot_schedule::{Override, OverrideMode};
use serde_json::{Value, json};

use crate::simulation::{EVENING, Simulation, at, in_service, pod};
use crate::taints::{condition_text, keys, taint};

const LAST_CALL: &str = "5spot.finos.org/last-call";

/// A machine in service until 18:00 whose spec has a last call of half an hour.
fn with_last_call(memory: &mut Memory) -> Simulation {
    let mut simulation = in_service(Contract::V1Beta2, memory);
    simulation.edit(|sm| "30m".clone_into(&mut sm.spec.shutdown.last_call));
    simulation
}

fn leaves_at(simulation: &Simulation) -> Value {
    simulation.get("Node").unwrap()["metadata"]["annotations"][name::LEAVES_AT_ANNOTATION]
        .clone()
}

#[test]
fn the_last_call_taints_and_annotates_the_node_that_long_before_the_end() {
    let mut memory = Memory::default();
    let mut simulation = with_last_call(&mut memory);
    simulation.run_until(&mut memory, "2026-03-06T17:29:59Z");
    assert_eq!(keys(&simulation), [""; 0]);
    assert_eq!(leaves_at(&simulation), Value::Null);
    let before = simulation.log.len();
    simulation.run_until(&mut memory, "2026-03-06T17:30:00Z");
    assert_eq!(
        simulation.get("Node").unwrap()["spec"]["taints"],
        json!([{ "key": LAST_CALL, "effect": "PreferNoSchedule" }])
    );
    assert_eq!(leaves_at(&simulation), "2026-03-06T18:00:00Z");
    let steps: Vec<_> = simulation.log[before..]
        .iter()
        .map(|(_, step)| step)
        .collect();
    assert_eq!(steps, ["Status", "TaintNode"], "two writes");
    assert_eq!(
        condition_text(&simulation),
        "",
        "NodeTainted is about spec.nodeTaints"
    );
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.count("TaintNode"), 1);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
}

#[test]
fn the_last_call_is_removed_when_the_end_is_postponed_or_the_schedule_disabled() {
    let late = "2026-03-06T17:45:00Z";
    let edits: [fn(&mut fivespot_api::ScheduledMachine); 3] = [
        |sm| sm.spec.schedule.hours_of_day = vec!["9-21".to_owned()],
        |sm| sm.spec.schedule.enabled = false,
        |sm| "0s".clone_into(&mut sm.spec.shutdown.last_call),
    ];
    for edit in edits {
        let mut memory = Memory::default();
        let mut simulation = with_last_call(&mut memory);
        simulation.run_until(&mut memory, late);
        assert_eq!(keys(&simulation), [LAST_CALL]);
        simulation.edit(edit);
        simulation.settle(&mut memory);
        assert_eq!(keys(&simulation), [""; 0]);
        assert_eq!(leaves_at(&simulation), Value::Null);
        assert!(simulation.status().applied_node_taints.is_empty());
    }
}

#[test]
fn the_last_call_follows_the_end_and_keeps_the_taints_of_the_spec() {
    let mut memory = Memory::default();
    let mut simulation = with_last_call(&mut memory);
    simulation.edit(|sm| sm.spec.node_taints = vec![taint("team", "a")]);
    simulation.run_until(&mut memory, "2026-03-06T17:45:00Z");
    assert_eq!(keys(&simulation), ["team", LAST_CALL]);
    assert_eq!(
        condition_text(&simulation),
        "True Applied: Node worker has the desired taint"
    );
    simulation.edit(|sm| sm.spec.schedule.duration = None);
    simulation.schedule.overrides = vec![Override {
        name: "longer".to_owned(),
        mode: OverrideMode::Run,
        start: None,
        created: None,
        end: at("2026-03-06T18:10:00Z"),
    }];
    simulation.settle(&mut memory);
    assert_eq!(leaves_at(&simulation), "2026-03-06T18:10:00Z");
    assert_eq!(keys(&simulation), ["team", LAST_CALL]);
}

#[test]
fn a_foreign_last_call_taint_is_reported_in_an_event_and_left_alone() {
    let mut memory = Memory::default();
    let mut simulation = with_last_call(&mut memory);
    let theirs = json!([{ "key": LAST_CALL, "effect": "PreferNoSchedule" }]);
    simulation.get_mut("Node").unwrap()["spec"]["taints"] = theirs.clone();
    simulation.run_until(&mut memory, "2026-03-06T17:45:00Z");
    assert_eq!(leaves_at(&simulation), "2026-03-06T18:00:00Z");
    assert_eq!(condition_text(&simulation), "");
    let conflicts = || {
        simulation
            .events
            .iter()
            .filter(|of| of.reason == "LastCallConflict")
    };
    assert_eq!(conflicts().count(), 1);
    assert!(conflicts().all(|of| of.note.contains("remove it from the Node")));
    simulation.edit(|sm| sm.spec.schedule.enabled = false);
    simulation.settle(&mut memory);
    assert_eq!(simulation.get("Node").unwrap()["spec"]["taints"], theirs);
    assert_eq!(leaves_at(&simulation), Value::Null);
}

/// Whether the Node has neither the taint of the last call nor the annotation.
fn is_withdrawn(simulation: &Simulation) -> bool {
    keys(simulation).iter().all(|key| key != LAST_CALL) && leaves_at(simulation).is_null()
}

#[test]
fn the_last_call_is_removed_in_the_patch_that_cordons_the_node() {
    let mut memory = Memory::default();
    let mut simulation = with_last_call(&mut memory);
    simulation.edit(|sm| sm.spec.node_taints = vec![taint("team", "a")]);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2026-03-06T18:02:00Z"));
    simulation.run_until(&mut memory, "2026-03-06T17:59:59Z");
    assert_eq!(keys(&simulation), ["team", LAST_CALL]);
    let before = simulation.log.len();
    simulation.run_until(&mut memory, "2026-03-06T18:01:00Z");
    assert_eq!(keys(&simulation), ["team"], "the others stay");
    assert!(is_withdrawn(&simulation));
    assert_eq!(
        simulation.get("Node").unwrap()["spec"]["unschedulable"],
        true
    );
    let count = |step: &str| {
        simulation.log[before..]
            .iter()
            .filter(|(_, it)| it == step)
            .count()
    };
    assert_eq!((count("CordonNode"), count("TaintNode")), (1, 0));
    let text = "True Applied: Node worker has the desired taint";
    assert_eq!(condition_text(&simulation), text);
    simulation.run_until(&mut memory, EVENING);
    assert!(simulation.status().applied_node_taints.is_empty());
}

#[test]
fn the_last_call_is_removed_also_without_a_cordon() {
    let edits: [fn(&mut Simulation); 3] = [
        |simulation| simulation.edit(|sm| sm.spec.kill_switch = true),
        Simulation::delete_sm,
        |simulation| {
            simulation.edit(|sm| "0s".clone_into(&mut sm.spec.graceful_shutdown_timeout));
        },
    ];
    for edit in edits {
        let mut memory = Memory::default();
        let mut simulation = with_last_call(&mut memory);
        simulation.run_until(&mut memory, "2026-03-06T17:45:00Z");
        // Another client has cordoned it, so that a drain need not.
        simulation.get_mut("Node").unwrap()["spec"]["unschedulable"] = json!(true);
        simulation.is_moving = false;
        edit(&mut simulation);
        simulation.run_until(&mut memory, "2026-03-06T18:00:01Z");
        assert_eq!(simulation.count("DeleteMachine"), 1);
        assert!(is_withdrawn(&simulation), "{:#?}", simulation.log);
        assert_eq!(
            (
                simulation.count("CordonNode"),
                simulation.count("TaintNode")
            ),
            (0, 2)
        );
    }
}

#[test]
fn a_last_call_that_cannot_be_removed_does_not_block_the_shutdown() {
    let mut memory = Memory::default();
    let mut simulation = with_last_call(&mut memory);
    simulation.run_until(&mut memory, "2026-03-06T17:45:00Z");
    simulation.failing = Some((Step::TaintNode, Cause::Forbidden));
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert_eq!(simulation.count("DeleteMachine"), 1);
    assert_eq!(simulation.status().phase, Some(Phase::Terminated));
}

#[test]
fn a_shutdown_that_is_cancelled_announces_the_last_call_again() {
    let mut memory = Memory::default();
    let mut simulation = with_last_call(&mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
    simulation.run_until(&mut memory, "2026-03-06T18:01:00Z");
    assert!(is_withdrawn(&simulation));
    simulation.schedule.overrides = vec![Override {
        name: "longer".to_owned(),
        mode: OverrideMode::Run,
        start: None,
        created: None,
        end: at("2026-03-06T18:20:00Z"),
    }];
    simulation.settle(&mut memory);
    assert_eq!(keys(&simulation), [LAST_CALL]);
    assert_eq!(leaves_at(&simulation), "2026-03-06T18:20:00Z");
    simulation.schedule.overrides[0].end = at("2026-03-06T20:00:00Z");
    simulation.settle(&mut memory);
    assert!(is_withdrawn(&simulation));
    assert!(simulation.status().applied_node_taints.is_empty());
}

#[test]
fn a_crash_between_the_two_writes_of_a_last_call_ends_in_the_same_state() {
    for writes in 0..4 {
        let mut memory = Memory::default();
        let mut simulation = with_last_call(&mut memory);
        simulation.run_until(&mut memory, "2026-03-06T17:29:00Z");
        simulation.writes_left = writes;
        simulation.run_until(&mut memory, "2026-03-06T17:31:00Z");
        simulation.writes_left = usize::MAX;
        let mut memory = Memory::default();
        simulation.run_until(&mut memory, "2026-03-06T17:40:00Z");
        assert_eq!(keys(&simulation), [LAST_CALL], "{writes}");
        simulation.edit(|sm| sm.spec.schedule.enabled = false);
        simulation.settle(&mut memory);
        assert_eq!(keys(&simulation), [""; 0], "{writes}");
    }
}
