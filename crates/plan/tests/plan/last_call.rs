//! The last call during the lifecycle of a machine.

use fivespot_api::{Phase, name};
use fivespot_capi::Contract;
use fivespot_plan::{Cause, Memory, Step};
use fivespot_schedule::{Override, OverrideMode};
use serde_json::{Value, json};

use crate::taints::{keys, said, taint};
use crate::world::{EVENING, World, at, in_service, pod};

const LAST_CALL: &str = "5spot.finos.org/last-call";

/// A machine in service until 18:00 whose spec has a last call of half an hour.
fn with_last_call(memory: &mut Memory) -> World {
    let mut world = in_service(Contract::V1Beta2, memory);
    world.edit(|sm| "30m".clone_into(&mut sm.spec.shutdown.last_call));
    world
}

fn leaves_at(world: &World) -> Value {
    world.get("Node").unwrap()["metadata"]["annotations"][name::LEAVES_AT_ANNOTATION]
        .clone()
}

#[test]
fn the_last_call_taints_and_annotates_the_node_that_long_before_the_end() {
    let mut memory = Memory::default();
    let mut world = with_last_call(&mut memory);
    world.run_until(&mut memory, "2026-03-06T17:29:59Z");
    assert_eq!(keys(&world), [""; 0]);
    assert_eq!(leaves_at(&world), Value::Null);
    let before = world.log.len();
    world.run_until(&mut memory, "2026-03-06T17:30:00Z");
    assert_eq!(
        world.get("Node").unwrap()["spec"]["taints"],
        json!([{ "key": LAST_CALL, "effect": "PreferNoSchedule" }])
    );
    assert_eq!(leaves_at(&world), "2026-03-06T18:00:00Z");
    let steps: Vec<_> = world.log[before..].iter().map(|(_, step)| step).collect();
    assert_eq!(steps, ["Status", "TaintNode"], "two writes");
    assert_eq!(said(&world), "", "NodeTainted is about spec.nodeTaints");
    world.run_until(&mut memory, EVENING);
    assert_eq!(world.count("TaintNode"), 1);
    assert_eq!(world.status().phase, Some(Phase::Inactive));
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
        let mut world = with_last_call(&mut memory);
        world.run_until(&mut memory, late);
        assert_eq!(keys(&world), [LAST_CALL]);
        world.edit(edit);
        world.settle(&mut memory);
        assert_eq!(keys(&world), [""; 0]);
        assert_eq!(leaves_at(&world), Value::Null);
        assert!(world.status().applied_node_taints.is_empty());
    }
}

#[test]
fn the_last_call_follows_the_end_and_keeps_the_taints_of_the_spec() {
    let mut memory = Memory::default();
    let mut world = with_last_call(&mut memory);
    world.edit(|sm| sm.spec.node_taints = vec![taint("team", "a")]);
    world.run_until(&mut memory, "2026-03-06T17:45:00Z");
    assert_eq!(keys(&world), ["team", LAST_CALL]);
    assert_eq!(
        said(&world),
        "True Applied: Node worker has the desired taint"
    );
    world.edit(|sm| sm.spec.schedule.duration = None);
    world.schedule.overrides = vec![Override {
        name: "longer".to_owned(),
        mode: OverrideMode::Run,
        start: None,
        created: None,
        end: at("2026-03-06T18:10:00Z"),
    }];
    world.settle(&mut memory);
    assert_eq!(leaves_at(&world), "2026-03-06T18:10:00Z");
    assert_eq!(keys(&world), ["team", LAST_CALL]);
}

#[test]
fn a_foreign_last_call_taint_is_reported_in_an_event_and_left_alone() {
    let mut memory = Memory::default();
    let mut world = with_last_call(&mut memory);
    let theirs = json!([{ "key": LAST_CALL, "effect": "PreferNoSchedule" }]);
    world.get_mut("Node").unwrap()["spec"]["taints"] = theirs.clone();
    world.run_until(&mut memory, "2026-03-06T17:45:00Z");
    assert_eq!(leaves_at(&world), "2026-03-06T18:00:00Z");
    assert_eq!(said(&world), "");
    let conflicts = || {
        world
            .events
            .iter()
            .filter(|of| of.reason == "LastCallConflict")
    };
    assert_eq!(conflicts().count(), 1);
    assert!(conflicts().all(|of| of.note.contains("remove it from the Node")));
    world.edit(|sm| sm.spec.schedule.enabled = false);
    world.settle(&mut memory);
    assert_eq!(world.get("Node").unwrap()["spec"]["taints"], theirs);
    assert_eq!(leaves_at(&world), Value::Null);
}

/// Whether the Node has neither the taint of the last call nor the annotation.
fn is_withdrawn(world: &World) -> bool {
    keys(world).iter().all(|key| key != LAST_CALL) && leaves_at(world).is_null()
}

#[test]
fn the_last_call_is_removed_in_the_patch_that_cordons_the_node() {
    let mut memory = Memory::default();
    let mut world = with_last_call(&mut memory);
    world.edit(|sm| sm.spec.node_taints = vec![taint("team", "a")]);
    world.pods = vec![pod("a")];
    world.budget_until = Some(at("2026-03-06T18:02:00Z"));
    world.run_until(&mut memory, "2026-03-06T17:59:59Z");
    assert_eq!(keys(&world), ["team", LAST_CALL]);
    let before = world.log.len();
    world.run_until(&mut memory, "2026-03-06T18:01:00Z");
    assert_eq!(keys(&world), ["team"], "the others stay");
    assert!(is_withdrawn(&world));
    assert_eq!(world.get("Node").unwrap()["spec"]["unschedulable"], true);
    let count = |step: &str| {
        world.log[before..]
            .iter()
            .filter(|(_, it)| it == step)
            .count()
    };
    assert_eq!((count("CordonNode"), count("TaintNode")), (1, 0));
    let text = "True Applied: Node worker has the desired taint";
    assert_eq!(said(&world), text);
    world.run_until(&mut memory, EVENING);
    assert!(world.status().applied_node_taints.is_empty());
}

#[test]
fn the_last_call_is_removed_also_without_a_cordon() {
    let edits: [fn(&mut World); 3] = [
        |world| world.edit(|sm| sm.spec.kill_switch = true),
        World::delete_sm,
        |world| world.edit(|sm| "0s".clone_into(&mut sm.spec.graceful_shutdown_timeout)),
    ];
    for edit in edits {
        let mut memory = Memory::default();
        let mut world = with_last_call(&mut memory);
        world.run_until(&mut memory, "2026-03-06T17:45:00Z");
        // Another client has cordoned it, so that a drain need not.
        world.get_mut("Node").unwrap()["spec"]["unschedulable"] = json!(true);
        world.is_moving = false;
        edit(&mut world);
        world.run_until(&mut memory, "2026-03-06T18:00:01Z");
        assert_eq!(world.count("DeleteMachine"), 1);
        assert!(is_withdrawn(&world), "{:#?}", world.log);
        assert_eq!(
            (world.count("CordonNode"), world.count("TaintNode")),
            (0, 2)
        );
    }
}

#[test]
fn a_last_call_that_cannot_be_removed_does_not_block_the_shutdown() {
    let mut memory = Memory::default();
    let mut world = with_last_call(&mut memory);
    world.run_until(&mut memory, "2026-03-06T17:45:00Z");
    world.failing = Some((Step::TaintNode, Cause::Forbidden));
    world.edit(|sm| sm.spec.kill_switch = true);
    world.settle(&mut memory);
    assert_eq!(world.count("DeleteMachine"), 1);
    assert_eq!(world.status().phase, Some(Phase::Terminated));
}

#[test]
fn a_shutdown_that_is_cancelled_announces_the_last_call_again() {
    let mut memory = Memory::default();
    let mut world = with_last_call(&mut memory);
    world.pods = vec![pod("a")];
    world.budget_until = Some(at("2027-01-01T00:00:00Z"));
    world.run_until(&mut memory, "2026-03-06T18:01:00Z");
    assert!(is_withdrawn(&world));
    world.schedule.overrides = vec![Override {
        name: "longer".to_owned(),
        mode: OverrideMode::Run,
        start: None,
        created: None,
        end: at("2026-03-06T18:20:00Z"),
    }];
    world.settle(&mut memory);
    assert_eq!(keys(&world), [LAST_CALL]);
    assert_eq!(leaves_at(&world), "2026-03-06T18:20:00Z");
    world.schedule.overrides[0].end = at("2026-03-06T20:00:00Z");
    world.settle(&mut memory);
    assert!(is_withdrawn(&world));
    assert!(world.status().applied_node_taints.is_empty());
}

#[test]
fn a_crash_between_the_two_writes_of_a_last_call_ends_in_the_same_state() {
    for writes in 0..4 {
        let mut memory = Memory::default();
        let mut world = with_last_call(&mut memory);
        world.run_until(&mut memory, "2026-03-06T17:29:00Z");
        world.writes_left = writes;
        world.run_until(&mut memory, "2026-03-06T17:31:00Z");
        world.writes_left = usize::MAX;
        let mut memory = Memory::default();
        world.run_until(&mut memory, "2026-03-06T17:40:00Z");
        assert_eq!(keys(&world), [LAST_CALL], "{writes}");
        world.edit(|sm| sm.spec.schedule.enabled = false);
        world.settle(&mut memory);
        assert_eq!(keys(&world), [""; 0], "{writes}");
    }
}
