//! The operator crashes after its n-th write, for every n, and restarts with empty memory.

use fivespot_api::{NodeTaint, TaintEffect};
use fivespot_capi::Contract;
use fivespot_plan::Memory;

use crate::simulation::{Simulation, at, pod};

/// The final state of the simulation, without what differs from run to run.
fn end(simulation: &Simulation) -> String {
    let status = simulation.sm.as_ref().map(|sm| {
        let status = sm.status.clone().unwrap_or_default();
        (
            status.phase,
            status.shutdown,
            status.message,
            sm.metadata.finalizers.clone(),
        )
    });
    let node = simulation
        .get("Node")
        .map(|node| node["spec"]["unschedulable"].clone());
    let annotations = simulation
        .get("Machine")
        .map(|machine| machine["metadata"]["annotations"].clone());
    format!(
        "{status:?} {:?} {node:?} {annotations:?}",
        simulation.kinds()
    )
}

/// Runs `scenario` without a crash and with one after each write; all end in the same state.
fn for_every_crash(
    scenario: impl Fn(&mut Simulation, &mut dyn FnMut(&mut Simulation, &str)),
) {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let run = |writes: usize| {
            let mut simulation = Simulation::new(contract, "2026-03-06T08:00:00Z");
            simulation.writes_left = writes;
            let mut memory = Memory::default();
            scenario(&mut simulation, &mut |simulation, until| {
                simulation.run_until(&mut memory, until);
                if simulation.writes_left == 0 {
                    simulation.writes_left = usize::MAX;
                    memory = Memory::default();
                    simulation.run_until(&mut memory, until);
                }
                simulation.now = at(until);
            });
            simulation
        };
        let whole = run(usize::MAX);
        let expected = end(&whole);
        for writes in 1..=whole.log.len() {
            let crashed = run(writes);
            assert_eq!(
                end(&crashed),
                expected,
                "{contract:?}, crash after {writes}: {:#?}",
                crashed.log
            );
            assert_eq!(
                crashed.count("CreateMachine"),
                whole.count("CreateMachine"),
                "{contract:?}, crash after {writes}",
            );
        }
    }
}

const NOON: &str = "2026-03-06T12:00:00Z";
const EVENING: &str = "2026-03-06T20:00:00Z";

#[test]
fn an_opening_survives_a_crash_after_every_write() {
    for_every_crash(|simulation, run| run(simulation, NOON));
}

#[test]
fn a_closing_survives_a_crash_after_every_write() {
    for_every_crash(|simulation, run| {
        run(simulation, NOON);
        simulation.pods = vec![pod("a"), pod("b")];
        simulation.budget_until = Some(at("2026-03-06T18:01:00Z"));
        run(simulation, EVENING);
    });
}

#[test]
fn a_cancelled_closing_survives_a_crash_after_every_write() {
    for_every_crash(|simulation, run| {
        run(simulation, NOON);
        simulation.pods = vec![pod("a")];
        simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
        run(simulation, "2026-03-06T18:02:00Z");
        simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-20".to_owned()]);
        run(simulation, EVENING);
    });
}

#[test]
fn a_deletion_survives_a_crash_after_every_write() {
    for_every_crash(|simulation, run| {
        run(simulation, NOON);
        simulation.pods = vec![pod("a")];
        simulation.delete_sm();
        run(simulation, EVENING);
    });
}

#[test]
fn a_kill_and_a_return_survive_a_crash_after_every_write() {
    for_every_crash(|simulation, run| {
        run(simulation, NOON);
        simulation.edit(|sm| sm.spec.kill_switch = true);
        run(simulation, "2026-03-06T13:00:00Z");
        simulation.edit(|sm| sm.spec.kill_switch = false);
        run(simulation, "2026-03-06T14:00:00Z");
    });
}

#[test]
fn taints_that_are_added_changed_and_removed_survive_a_crash_after_every_write() {
    let taint = |value: &str| NodeTaint {
        key: "team".to_owned(),
        value: value.to_owned(),
        effect: TaintEffect::NoSchedule,
    };
    for_every_crash(|simulation, run| {
        simulation.edit(|sm| sm.spec.node_taints = vec![taint("a")]);
        run(simulation, NOON);
        simulation.edit(|sm| sm.spec.node_taints = vec![taint("b")]);
        run(simulation, "2026-03-06T13:00:00Z");
        let taints = &simulation.get("Node").unwrap()["spec"]["taints"];
        assert_eq!(taints[0]["value"], "b");
        simulation.edit(|sm| sm.spec.node_taints.clear());
        run(simulation, "2026-03-06T14:00:00Z");
        let taints = &simulation.get("Node").unwrap()["spec"]["taints"];
        assert_eq!(taints.as_array().map(Vec::len), Some(0));
        assert!(simulation.status().applied_node_taints.is_empty());
    });
}

/// The creation of the owned objects is interrupted, and then the machine is no longer wanted.
#[test]
fn unfinished_objects_are_removed_without_a_trace() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        for writes in 1..12 {
            let mut simulation = Simulation::new(contract, "2026-03-06T09:00:00Z");
            simulation.writes_left = writes;
            simulation.run_until(&mut Memory::default(), NOON);
            simulation.writes_left = usize::MAX;
            simulation.delete_sm();
            simulation.run_until(&mut Memory::default(), EVENING);
            assert!(simulation.sm.is_none(), "after {writes} writes");
            assert!(
                simulation.kinds().is_empty(),
                "after {writes} writes: {:?}",
                simulation.kinds()
            );
        }
    }
}
