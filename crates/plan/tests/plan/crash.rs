//! The shell crashes after its n-th write, for every n, and restarts with empty memory.

use fivespot_api::{NodeTaint, TaintEffect};
use fivespot_capi::Contract;
use fivespot_plan::Memory;

use crate::world::{World, at, pod};

/// The final state of the world, without what differs from run to run.
fn end(world: &World) -> String {
    let status = world.sm.as_ref().map(|sm| {
        let status = sm.status.clone().unwrap_or_default();
        (
            status.phase,
            status.shutdown,
            status.message,
            sm.metadata.finalizers.clone(),
        )
    });
    let node = world
        .get("Node")
        .map(|node| node["spec"]["unschedulable"].clone());
    let annotations = world
        .get("Machine")
        .map(|machine| machine["metadata"]["annotations"].clone());
    format!("{status:?} {:?} {node:?} {annotations:?}", world.kinds())
}

/// Runs `scenario` without a crash and with one after each write; all end in the same state.
fn for_every_crash(scenario: impl Fn(&mut World, &mut dyn FnMut(&mut World, &str))) {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let run = |writes: usize| {
            let mut world = World::new(contract, "2026-03-06T08:00:00Z");
            world.writes_left = writes;
            let mut memory = Memory::default();
            scenario(&mut world, &mut |world, until| {
                world.run_until(&mut memory, until);
                if world.writes_left == 0 {
                    world.writes_left = usize::MAX;
                    memory = Memory::default();
                    world.run_until(&mut memory, until);
                }
                world.now = at(until);
            });
            world
        };
        let whole = run(usize::MAX);
        let expected = end(&whole);
        for writes in 1..=whole.log.len() {
            let crashed = run(writes);
            assert_eq!(
                end(&crashed),
                expected,
                "{contract}, crash after {writes}: {:#?}",
                crashed.log
            );
            assert_eq!(
                crashed.count("CreateMachine"),
                whole.count("CreateMachine"),
                "{contract}, crash after {writes}",
            );
        }
    }
}

const NOON: &str = "2026-03-06T12:00:00Z";
const EVENING: &str = "2026-03-06T20:00:00Z";

#[test]
fn an_opening_survives_a_crash_after_every_write() {
    for_every_crash(|world, run| run(world, NOON));
}

#[test]
fn a_closing_survives_a_crash_after_every_write() {
    for_every_crash(|world, run| {
        run(world, NOON);
        world.pods = vec![pod("a"), pod("b")];
        world.budget_until = Some(at("2026-03-06T18:01:00Z"));
        run(world, EVENING);
    });
}

#[test]
fn a_cancelled_closing_survives_a_crash_after_every_write() {
    for_every_crash(|world, run| {
        run(world, NOON);
        world.pods = vec![pod("a")];
        world.budget_until = Some(at("2027-01-01T00:00:00Z"));
        run(world, "2026-03-06T18:02:00Z");
        world.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-20".to_owned()]);
        run(world, EVENING);
    });
}

#[test]
fn a_deletion_survives_a_crash_after_every_write() {
    for_every_crash(|world, run| {
        run(world, NOON);
        world.pods = vec![pod("a")];
        world.delete_sm();
        run(world, EVENING);
    });
}

#[test]
fn a_kill_and_a_return_survive_a_crash_after_every_write() {
    for_every_crash(|world, run| {
        run(world, NOON);
        world.edit(|sm| sm.spec.kill_switch = true);
        run(world, "2026-03-06T13:00:00Z");
        world.edit(|sm| sm.spec.kill_switch = false);
        run(world, "2026-03-06T14:00:00Z");
    });
}

#[test]
fn taints_that_are_added_changed_and_removed_survive_a_crash_after_every_write() {
    let taint = |value: &str| NodeTaint {
        key: "team".to_owned(),
        value: value.to_owned(),
        effect: TaintEffect::NoSchedule,
    };
    for_every_crash(|world, run| {
        world.edit(|sm| sm.spec.node_taints = vec![taint("a")]);
        run(world, NOON);
        world.edit(|sm| sm.spec.node_taints = vec![taint("b")]);
        run(world, "2026-03-06T13:00:00Z");
        let taints = &world.get("Node").unwrap()["spec"]["taints"];
        assert_eq!(taints[0]["value"], "b");
        world.edit(|sm| sm.spec.node_taints.clear());
        run(world, "2026-03-06T14:00:00Z");
        let taints = &world.get("Node").unwrap()["spec"]["taints"];
        assert_eq!(taints.as_array().map(Vec::len), Some(0));
        assert!(world.status().applied_node_taints.is_empty());
    });
}

/// The creation of the owned objects is interrupted, and then the machine is no longer wanted.
#[test]
fn unfinished_objects_are_removed_without_a_trace() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        for writes in 1..12 {
            let mut world = World::new(contract, "2026-03-06T09:00:00Z");
            world.writes_left = writes;
            world.run_until(&mut Memory::default(), NOON);
            world.writes_left = usize::MAX;
            world.delete_sm();
            world.run_until(&mut Memory::default(), EVENING);
            assert!(world.sm.is_none(), "after {writes} writes");
            assert!(
                world.kinds().is_empty(),
                "after {writes} writes: {:?}",
                world.kinds()
            );
        }
    }
}
