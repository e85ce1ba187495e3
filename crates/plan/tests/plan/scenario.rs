//! The lifecycle of a machine.

use fivespot_api::Phase;
use fivespot_capi::Contract;
use fivespot_plan::{Cause, Memory, Step};
use serde_json::json;

use crate::world::{
    BEFORE, CLOSES, CONTRACTS, EVENING, MONDAY, NAME, NOON, OPENS, World, at, in_service,
    pod,
};

fn phases(world: &World) -> Vec<Phase> {
    world.phases.iter().map(|(_, phase)| *phase).collect()
}

#[test]
fn a_window_opens_and_closes_and_leaves_nothing_behind() {
    for contract in CONTRACTS {
        let (mut world, mut memory) = (World::new(contract, BEFORE), Memory::default());
        world.run_until(&mut memory, NOON);
        assert_eq!(
            phases(&world),
            [Phase::Inactive, Phase::Pending, Phase::Active]
        );
        assert_eq!(world.first("CreateMachine"), at(OPENS));
        world.run_until(&mut memory, EVENING);
        let expected = [
            Phase::Inactive,
            Phase::Pending,
            Phase::Active,
            Phase::ShuttingDown,
            Phase::Inactive,
        ];
        assert_eq!(phases(&world), expected);
        assert_eq!(world.first("DeleteMachine"), at(CLOSES));
        assert!(world.kinds().is_empty(), "{:?}", world.kinds());
        let status = world.status();
        assert_eq!(status.next_activation, Some(at(MONDAY)));
        assert_eq!(status.next_transition, Some(at(MONDAY)));
        assert_eq!((status.machine_ref, status.shutdown), (None, None),);
        let uid = |of: Option<fivespot_api::ObjectRef>| of.unwrap().uid;
        assert_eq!(
            (uid(status.bootstrap_ref), uid(status.infrastructure_ref)),
            (None, None),
        );
        assert_eq!(
            world.events.len(),
            5,
            "one event for each transition: {:#?}",
            world.events
        );
    }
}

/// Name and uid of a reference.
fn name(of: Option<fivespot_api::ObjectRef>) -> Option<(String, Option<String>)> {
    of.map(|of| (of.name, of.uid))
}

#[test]
fn planned_objects_are_recorded_from_the_first_status_on() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, BEFORE), Memory::default());
    world.run_until(&mut memory, BEFORE);
    let status = world.status();
    let recorded = Some((NAME.to_owned(), None));
    assert_eq!(name(status.bootstrap_ref), recorded);
    assert_eq!(name(status.infrastructure_ref), recorded);
    assert!(status.spec_hash.is_some());
    assert_eq!(status.phase, Some(Phase::Inactive));
    assert!(world.kinds().is_empty(), "{:?}", world.kinds());
    let before = world.log.len();
    world.run_until(&mut memory, OPENS);
    let steps = world.log[before..].iter().map(|(_, step)| step.as_str());
    let expected = ["CreateBootstrap", "CreateInfrastructure", "CreateMachine"];
    assert!(steps.take(3).eq(expected), "{:?}", world.log);
}

#[test]
fn the_record_follows_the_spec_until_a_machine_exists() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, BEFORE), Memory::default());
    world.run_until(&mut memory, BEFORE);
    let recorded = |world: &World| {
        let status = world.status();
        (
            status.spec_hash.unwrap(),
            status.bootstrap_ref.unwrap().kind,
        )
    };
    let first = recorded(&world);
    let change = |kind: &'static str| {
        move |sm: &mut fivespot_api::ScheduledMachine| {
            sm.spec.bootstrap_spec.kind = kind.into();
        }
    };
    world.edit(change("KubeadmConfig"));
    world.settle(&mut memory);
    let second = recorded(&world);
    assert_eq!(second.1, "KubeadmConfig");
    assert_ne!(second.0, first.0);
    world.run_until(&mut memory, NOON);
    world.edit(change("K0sWorkerConfig"));
    world.settle(&mut memory);
    assert_eq!(recorded(&world), second, "it waits");
    world.run_until(&mut memory, EVENING);
    assert_eq!(recorded(&world), first);
}

#[test]
fn nothing_is_recorded_while_the_spec_violates_a_rule() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, BEFORE), Memory::default());
    world.run_until(&mut memory, BEFORE);
    world.edit(|sm| sm.spec.schedule.timezone = "Mars/Olympus".into());
    world.settle(&mut memory);
    let status = world.status();
    assert_eq!((status.bootstrap_ref, status.spec_hash), (None, None));
    world.edit(|sm| sm.spec.schedule.timezone = "UTC".into());
    world.settle(&mut memory);
    assert!(world.status().spec_hash.is_some());
}

#[test]
fn a_missing_object_is_not_created_elsewhere_than_recorded() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, OPENS), Memory::default());
    world.is_moving = false;
    world.failing = Some((Step::CreateMachine, Cause::Unavailable));
    world.settle(&mut memory);
    world
        .objects
        .retain(|(kind, _), _| kind != "K0sWorkerConfig");
    world.edit(|sm| sm.spec.bootstrap_spec.kind = "KubeadmConfig".into());
    world.failing = None;
    world.settle(&mut Memory::default());
    assert_eq!(world.count("DeleteInfrastructure"), 1, "{:?}", world.log);
    let status = world.status();
    assert_eq!(status.bootstrap_ref.unwrap().kind, "KubeadmConfig");
    let machine = world.get("Machine").unwrap();
    let reference = &machine["spec"]["bootstrap"]["configRef"]["kind"];
    assert_eq!(*reference, "KubeadmConfig");
}

#[test]
fn a_machine_is_created_once_with_what_cluster_api_needs() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, OPENS), Memory::default());
    world.is_moving = false;
    world.settle(&mut memory);
    for step in ["CreateBootstrap", "CreateInfrastructure", "CreateMachine"] {
        assert_eq!(world.count(step), 1, "{step}");
    }
    let machine = world.get("Machine").unwrap();
    assert_eq!(machine["spec"]["clusterName"], "prod");
    assert_eq!(machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 300);
    let owners = machine["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners[0]["controller"], true);
    assert_eq!(
        (&owners[1]["kind"], &owners[1]["controller"]),
        (&json!("Cluster"), &json!(null))
    );
    let infrastructure = world.get("RemoteMachine").unwrap();
    assert_eq!(
        infrastructure["metadata"]["ownerReferences"][0]["controller"],
        json!(null)
    );
    assert_eq!(infrastructure["spec"]["address"], "192.0.2.7");
}

#[test]
fn a_machine_that_is_being_deleted_is_waited_for_and_then_created_again() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    let uid = world.get("Machine").unwrap()["metadata"]["uid"].clone();
    world.delete(&("Machine".to_owned(), NAME.to_owned()), None);
    world.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert_ne!(world.get("Machine").unwrap()["metadata"]["uid"], uid);
    assert_eq!(world.status().phase, Some(Phase::Active));
    assert_eq!(world.status().last_scheduled_time, Some(at(NOON)));
}

#[test]
fn a_deleted_object_is_gone_only_after_its_machine() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = in_service(contract, &mut memory);
        world.delete_sm();
        world.settle(&mut memory);
        assert!(world.sm.is_none());
        assert!(world.kinds().is_empty(), "{:?}", world.kinds());
    }
}

#[test]
fn an_object_without_our_finalizer_is_deleted_without_its_machine() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.edit(|sm| sm.metadata.finalizers = Some(vec!["example.com/other".to_owned()]));
    world.delete_sm();
    let before = world.log.len();
    world.settle(&mut memory);
    assert_eq!(world.log.len(), before);
    assert!(world.get("Machine").is_some());
}

#[test]
fn the_kill_switch_removes_at_once_and_service_resumes_when_it_is_off() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = in_service(contract, &mut memory);
        world.pods = vec![pod("a")];
        world.edit(|sm| sm.spec.kill_switch = true);
        world.settle(&mut memory);
        assert_eq!(world.count("EvictPod") + world.count("CordonNode"), 0);
        assert_eq!(world.first("DeleteMachine"), at(NOON));
        assert_eq!(world.status().phase, Some(Phase::Terminated));
        assert!(world.kinds().is_empty());
        world.edit(|sm| sm.spec.kill_switch = false);
        world.settle(&mut memory);
        assert_eq!(world.status().phase, Some(Phase::Active));
    }
}

#[test]
fn a_disabled_schedule_keeps_existing_objects_and_creates_none() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.edit(|sm| sm.spec.schedule.enabled = false);
    world.run_until(&mut memory, MONDAY);
    assert_eq!(world.status().phase, Some(Phase::Disabled));
    assert_eq!(world.status().next_activation, None);
    assert!(world.get("Machine").is_some());
    world.edit(|sm| sm.spec.node_drain_timeout = "10m".into());
    world.settle(&mut memory);
    let machine = world.get("Machine").unwrap();
    assert_eq!(machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 600);
}

#[test]
fn a_paused_cluster_stops_all_writes_even_the_kill_switch() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    world.edit(|sm| sm.spec.kill_switch = true);
    world.delete_sm();
    let before = world.log.len();
    world.run_until(&mut memory, EVENING);
    assert!(world.log[before..].iter().all(|(_, step)| step == "Status"));
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    world.settle(&mut memory);
    assert!(world.sm.is_none() && world.kinds().is_empty());
}

#[test]
fn an_edited_spec_waits_for_the_next_activation() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.edit(|sm| sm.spec.infrastructure_spec.kind = "PooledRemoteMachine".to_owned());
    world.settle(&mut memory);
    let ready = world.status().conditions[0].clone();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("True", "PendingChanges")
    );
    world.run_until(&mut memory, EVENING);
    assert!(
        world.kinds().is_empty(),
        "the created objects are gone: {:?}",
        world.kinds()
    );
    world.is_moving = false;
    world.run_until(&mut memory, MONDAY);
    assert!(world.get("PooledRemoteMachine").is_some());
}

#[test]
fn idle_days_write_only_at_the_window_edges() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, BEFORE), Memory::default());
    world.run_until(&mut memory, EVENING);
    let before = world.log.len();
    for _ in 0..48 {
        world.pause(1800);
        world.settle(&mut memory);
    }
    assert_eq!(world.log.len(), before);
}
