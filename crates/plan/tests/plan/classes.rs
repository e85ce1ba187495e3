//! Machines whose class is missing or may not be used.

use std::collections::BTreeMap;

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{
    ClassProblem, ClassRef, InlineObject, Phase, ResolvedClass, ScheduledMachine,
};
use fivespot_capi::Contract;
use fivespot_plan::{Memory, Unknown};

use crate::simulation::{
    BEFORE, CLOSES, EVENING, MONDAY, NOON, Simulation, at, in_service, pod,
};

/// What is left of a machine whose class does not exist.
fn without_its_class(machine: &mut ScheduledMachine) {
    let spec = &mut machine.spec;
    spec.class = None;
    spec.class_ref = Some(ClassRef {
        name: "desks".to_owned(),
        host: None,
    });
    spec.cluster_name.clear();
    spec.bootstrap_spec = InlineObject::default();
    spec.infrastructure_spec = InlineObject::default();
    spec.resolve(None, &BTreeMap::new());
}

fn references(simulation: &Simulation) -> String {
    let conditions = simulation.status().conditions;
    let found = condition::find(&conditions, ConditionType::ReferencesValid).unwrap();
    format!("{} {}: {}", found.status, found.reason, found.message)
}

#[test]
fn a_machine_whose_class_is_gone_is_served_to_the_end_of_its_window_and_not_created_again()
 {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(without_its_class);
    let before = simulation.log.len();
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(simulation.status().cluster_name.as_deref(), Some("prod"));
    assert_eq!(
        references(&simulation),
        "False ClassNotFound: there is no ScheduledMachineClass desks; create it, or correct \
         spec.classRef.name"
    );
    let others = simulation.log[before..].iter();
    let others: Vec<_> = others.filter(|(_, step)| step != "Status").collect();
    assert!(others.is_empty(), "{others:?}");
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.first("DeleteMachine"), at(CLOSES));
    assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
    simulation.run_until(&mut memory, MONDAY);
    assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
}

#[test]
fn a_shutdown_that_has_begun_keeps_its_deadline_when_its_class_is_gone() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|machine| {
        "1h".clone_into(&mut machine.spec.graceful_shutdown_timeout);
        "1h".clone_into(&mut machine.spec.node_drain_timeout);
    });
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at(MONDAY));
    simulation.run_until(&mut memory, CLOSES);
    simulation.settle(&mut memory);
    let deadline = simulation.status().shutdown.unwrap().deadline;
    simulation.edit(without_its_class);
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.first("DeleteMachine"), deadline);
}

#[test]
fn a_deletion_waits_for_a_class_that_cannot_be_read_and_a_kill_switch_does_not() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|machine| {
        without_its_class(machine);
        machine.spec.class = None;
        machine.spec.class_ref = Some(ClassRef {
            name: "desks".to_owned(),
            host: None,
        });
    });
    let message = "etcdserver: request timed out".to_owned();
    simulation.schedule.unknown = Some(Unknown::Failed {
        message: message.clone(),
    });
    simulation.delete_sm();
    simulation.settle(&mut memory);
    assert!(simulation.get("Machine").is_some());
    assert_eq!(simulation.status().shutdown, None);
    let said = references(&simulation);
    assert!(said.ends_with(&message), "{said}");
    simulation.edit(|machine| machine.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert!(simulation.get("Machine").is_none());
}

#[test]
fn a_machine_whose_class_is_gone_can_be_killed_and_deleted() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(without_its_class);
    simulation.edit(|machine| machine.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
    simulation.delete_sm();
    simulation.settle(&mut memory);
    assert!(simulation.sm.is_none());
}

#[test]
fn nothing_is_created_from_a_class_that_may_not_be_used() {
    let allowed = vec!["staging".to_owned(), "test".to_owned()];
    for (problem, words) in [
        (
            ClassProblem::NamespaceNotSelected,
            "False ClassNotAllowed: ScheduledMachineClass desks does not select this namespace",
        ),
        (
            ClassProblem::ClusterNotAllowed(allowed),
            "False ClassNotAllowed: ScheduledMachineClass desks does not allow Cluster prod, only \
             staging, test",
        ),
    ] {
        let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
        let mut memory = Memory::default();
        simulation.edit(|machine| {
            machine.spec.class = Some(ResolvedClass {
                name: "desks".to_owned(),
                problem: Some(problem.clone()),
                ..ResolvedClass::default()
            });
        });
        simulation.run_until(&mut memory, NOON);
        assert_eq!(references(&simulation), words);
        assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
    }
}
