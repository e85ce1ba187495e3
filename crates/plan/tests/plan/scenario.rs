//! The lifecycle of a machine.

use fivespot_api::Phase;
use fivespot_capi::Contract;
use fivespot_plan::{Cause, Memory, Step};
use serde_json::json;

use crate::simulation::{
    BEFORE, CLOSES, CONTRACTS, EVENING, MONDAY, NAME, NOON, OPENS, Simulation, at,
    in_service, pod,
};

fn phases(simulation: &Simulation) -> Vec<Phase> {
    simulation.phases.iter().map(|(_, phase)| *phase).collect()
}

#[test]
fn a_window_opens_and_closes_and_leaves_nothing_behind() {
    for contract in CONTRACTS {
        let (mut simulation, mut memory) =
            (Simulation::new(contract, BEFORE), Memory::default());
        simulation.run_until(&mut memory, NOON);
        assert_eq!(
            phases(&simulation),
            [Phase::Inactive, Phase::Pending, Phase::Active]
        );
        assert_eq!(simulation.first("CreateMachine"), at(OPENS));
        simulation.run_until(&mut memory, EVENING);
        let expected = [
            Phase::Inactive,
            Phase::Pending,
            Phase::Active,
            Phase::ShuttingDown,
            Phase::Inactive,
        ];
        assert_eq!(phases(&simulation), expected);
        assert_eq!(simulation.first("DeleteMachine"), at(CLOSES));
        assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
        let status = simulation.status();
        assert_eq!(status.next_activation, Some(at(MONDAY)));
        assert_eq!(status.next_transition, Some(at(MONDAY)));
        assert_eq!((status.machine_ref, status.shutdown), (None, None),);
        let uid = |of: Option<fivespot_api::ObjectRef>| of.unwrap().uid;
        assert_eq!(
            (uid(status.bootstrap_ref), uid(status.infrastructure_ref)),
            (None, None),
        );
        assert_eq!(
            simulation.events.len(),
            5,
            "one event for each transition: {:#?}",
            simulation.events
        );
    }
}

/// Name and uid of a reference.
fn name(of: Option<fivespot_api::ObjectRef>) -> Option<(String, Option<String>)> {
    of.map(|of| (of.name, of.uid))
}

#[test]
fn planned_objects_are_recorded_from_the_first_status_on() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    simulation.run_until(&mut memory, BEFORE);
    let status = simulation.status();
    let recorded = Some((NAME.to_owned(), None));
    assert_eq!(name(status.bootstrap_ref), recorded);
    assert_eq!(name(status.infrastructure_ref), recorded);
    assert!(status.spec_hash.is_some());
    assert_eq!(status.phase, Some(Phase::Inactive));
    assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
    let before = simulation.log.len();
    simulation.run_until(&mut memory, OPENS);
    let steps = simulation.log[before..]
        .iter()
        .map(|(_, step)| step.as_str());
    let expected = ["CreateBootstrap", "CreateInfrastructure", "CreateMachine"];
    assert!(steps.take(3).eq(expected), "{:?}", simulation.log);
}

#[test]
fn the_record_follows_the_spec_until_a_machine_exists() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    simulation.run_until(&mut memory, BEFORE);
    let recorded = |simulation: &Simulation| {
        let status = simulation.status();
        (
            status.spec_hash.unwrap(),
            status.bootstrap_ref.unwrap().kind,
        )
    };
    let first = recorded(&simulation);
    let change = |kind: &'static str| {
        move |sm: &mut fivespot_api::ScheduledMachine| {
            sm.spec.bootstrap_spec.kind = kind.into();
        }
    };
    simulation.edit(change("KubeadmConfig"));
    simulation.settle(&mut memory);
    let second = recorded(&simulation);
    assert_eq!(second.1, "KubeadmConfig");
    assert_ne!(second.0, first.0);
    simulation.run_until(&mut memory, NOON);
    simulation.edit(change("K0sWorkerConfig"));
    simulation.settle(&mut memory);
    assert_eq!(recorded(&simulation), second, "it waits");
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(recorded(&simulation), first);
}

#[test]
fn nothing_is_recorded_while_the_spec_violates_a_rule() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    simulation.run_until(&mut memory, BEFORE);
    simulation.edit(|sm| sm.spec.schedule.timezone = "Mars/Olympus".into());
    simulation.settle(&mut memory);
    let status = simulation.status();
    assert_eq!((status.bootstrap_ref, status.spec_hash), (None, None));
    simulation.edit(|sm| sm.spec.schedule.timezone = "UTC".into());
    simulation.settle(&mut memory);
    assert!(simulation.status().spec_hash.is_some());
}

#[test]
fn a_missing_object_is_not_created_elsewhere_than_recorded() {
    let (mut simulation, mut memory) =
        (Simulation::new(Contract::V1Beta2, OPENS), Memory::default());
    simulation.is_moving = false;
    simulation.failing = Some((Step::CreateMachine, Cause::Unavailable));
    simulation.settle(&mut memory);
    simulation
        .objects
        .retain(|(kind, _), _| kind != "K0sWorkerConfig");
    simulation.edit(|sm| sm.spec.bootstrap_spec.kind = "KubeadmConfig".into());
    simulation.failing = None;
    simulation.settle(&mut Memory::default());
    assert_eq!(
        simulation.count("DeleteInfrastructure"),
        1,
        "{:?}",
        simulation.log
    );
    let status = simulation.status();
    assert_eq!(status.bootstrap_ref.unwrap().kind, "KubeadmConfig");
    let machine = simulation.get("Machine").unwrap();
    let reference = &machine["spec"]["bootstrap"]["configRef"]["kind"];
    assert_eq!(*reference, "KubeadmConfig");
}

#[test]
fn a_machine_is_created_once_with_what_cluster_api_needs() {
    let (mut simulation, mut memory) =
        (Simulation::new(Contract::V1Beta2, OPENS), Memory::default());
    simulation.is_moving = false;
    simulation.settle(&mut memory);
    for step in ["CreateBootstrap", "CreateInfrastructure", "CreateMachine"] {
        assert_eq!(simulation.count(step), 1, "{step}");
    }
    let machine = simulation.get("Machine").unwrap();
    assert_eq!(machine["spec"]["clusterName"], "prod");
    assert_eq!(machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 300);
    let owners = machine["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners[0]["controller"], true);
    assert_eq!(
        (&owners[1]["kind"], &owners[1]["controller"]),
        (&json!("Cluster"), &json!(null))
    );
    let infrastructure = simulation.get("RemoteMachine").unwrap();
    assert_eq!(
        infrastructure["metadata"]["ownerReferences"][0]["controller"],
        json!(null)
    );
    assert_eq!(infrastructure["spec"]["address"], "192.0.2.7");
}

#[test]
fn a_machine_that_is_being_deleted_is_waited_for_and_then_created_again() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let uid = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
    simulation.delete(&("Machine".to_owned(), NAME.to_owned()), None);
    simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert_ne!(simulation.get("Machine").unwrap()["metadata"]["uid"], uid);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(simulation.status().last_scheduled_time, Some(at(NOON)));
}

#[test]
fn a_deleted_object_is_gone_only_after_its_machine() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        simulation.delete_sm();
        simulation.settle(&mut memory);
        assert!(simulation.sm.is_none());
        assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
    }
}

#[test]
fn an_object_without_our_finalizer_is_deleted_without_its_machine() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation
        .edit(|sm| sm.metadata.finalizers = Some(vec!["example.com/other".to_owned()]));
    simulation.delete_sm();
    let before = simulation.log.len();
    simulation.settle(&mut memory);
    assert_eq!(simulation.log.len(), before);
    assert!(simulation.get("Machine").is_some());
}

#[test]
fn the_kill_switch_removes_at_once_and_service_resumes_when_it_is_off() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        simulation.pods = vec![pod("a")];
        simulation.edit(|sm| sm.spec.kill_switch = true);
        simulation.settle(&mut memory);
        assert_eq!(
            simulation.count("EvictPod") + simulation.count("CordonNode"),
            0
        );
        assert_eq!(simulation.first("DeleteMachine"), at(NOON));
        assert_eq!(simulation.status().phase, Some(Phase::Terminated));
        assert!(simulation.kinds().is_empty());
        simulation.edit(|sm| sm.spec.kill_switch = false);
        simulation.settle(&mut memory);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
    }
}

#[test]
fn a_disabled_schedule_keeps_existing_objects_and_creates_none() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| sm.spec.schedule.enabled = false);
    simulation.run_until(&mut memory, MONDAY);
    assert_eq!(simulation.status().phase, Some(Phase::Disabled));
    assert_eq!(simulation.status().next_activation, None);
    assert!(simulation.get("Machine").is_some());
    simulation.edit(|sm| sm.spec.node_drain_timeout = "10m".into());
    simulation.settle(&mut memory);
    let machine = simulation.get("Machine").unwrap();
    assert_eq!(machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 600);
}

#[test]
fn a_paused_cluster_stops_all_writes_even_the_kill_switch() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.delete_sm();
    let before = simulation.log.len();
    simulation.run_until(&mut memory, EVENING);
    assert!(
        simulation.log[before..]
            .iter()
            .all(|(_, step)| step == "Status")
    );
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    simulation.settle(&mut memory);
    assert!(simulation.sm.is_none() && simulation.kinds().is_empty());
}

#[test]
fn an_edited_spec_waits_for_the_next_activation() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation
        .edit(|sm| sm.spec.infrastructure_spec.kind = "PooledRemoteMachine".to_owned());
    simulation.settle(&mut memory);
    let ready = simulation.status().conditions[0].clone();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("True", "PendingChanges")
    );
    simulation.run_until(&mut memory, EVENING);
    assert!(
        simulation.kinds().is_empty(),
        "the created objects are gone: {:?}",
        simulation.kinds()
    );
    simulation.is_moving = false;
    simulation.run_until(&mut memory, MONDAY);
    assert!(simulation.get("PooledRemoteMachine").is_some());
}

#[test]
fn idle_days_write_only_at_the_window_edges() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    simulation.run_until(&mut memory, EVENING);
    let before = simulation.log.len();
    for _ in 0..48 {
        simulation.pause(1800);
        simulation.settle(&mut memory);
    }
    assert_eq!(simulation.log.len(), before);
}

/// A Machine that never had its bootstrap data cannot come up without the object that has them.
#[test]
fn an_object_that_vanishes_while_its_machine_comes_up_is_created_again() {
    for (kind, step) in [
        ("K0sWorkerConfig", "CreateBootstrap"),
        ("RemoteMachine", "CreateInfrastructure"),
    ] {
        let mut memory = Memory::default();
        let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
        simulation.run_until(&mut memory, "2026-03-06T08:59:00Z");
        simulation.is_moving = false;
        simulation.run_until(&mut memory, OPENS);
        assert!(simulation.get("Machine").is_some());
        simulation.remove(kind);
        simulation.settle(&mut memory);
        assert_eq!(simulation.count(step), 2);
        simulation.is_moving = true;
        simulation.run_until(&mut memory, NOON);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
        assert_eq!(simulation.count("CreateMachine"), 1);
    }
}
