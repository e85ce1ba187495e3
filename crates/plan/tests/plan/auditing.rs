//! Audit mode: what would be done is reported, and nothing is done.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{AccountedState, Enforcement, OverrideMode, Phase, name};
use fivespot_capi::Contract;
use fivespot_plan::{EventType, Memory, usage_until};
use fivespot_schedule::Override;
use serde_json::json;

use crate::simulation::{
    BEFORE, CLOSES, EVENING, NAME, NOON, OPENS, Simulation, at, in_service,
};

/// A machine in audit mode, an hour before its window.
fn audited() -> (Simulation, Memory) {
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    simulation.edit(|sm| sm.spec.enforcement = Enforcement::Audit);
    (simulation, Memory::default())
}

/// The writes other than those of the status.
fn writes(simulation: &Simulation) -> Vec<&str> {
    let steps = simulation.log.iter().map(|(_, step)| step.as_str());
    steps.filter(|step| *step != "Status").collect()
}

fn reasons(simulation: &Simulation) -> Vec<&str> {
    let events = simulation.events.iter();
    events.map(|event| event.reason.as_str()).collect()
}

/// The reason and the status of `Ready`.
fn ready(simulation: &Simulation) -> (String, String) {
    let conditions = simulation.status().conditions;
    let ready = condition::find(&conditions, ConditionType::Ready).unwrap();
    (ready.reason.clone(), ready.status.clone())
}

fn message(simulation: &Simulation) -> String {
    simulation.status().message.unwrap()
}

#[test]
fn a_day_in_audit_mode_is_reported_and_nothing_is_written_but_the_status() {
    let (mut simulation, mut memory) = audited();
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(writes(&simulation), [""; 0]);
    assert_eq!(simulation.kinds(), [""; 0]);
    assert_eq!(simulation.sm().metadata.finalizers, None);
    insta::assert_snapshot!(simulation.reported.join("\n"), @r"
    2026-03-06T08:00:00Z Inactive audit: no machine is wanted until 2026-03-06T09:00:00Z
    2026-03-06T09:00:00Z Audited audit: Machine worker would be created and kept until 2026-03-06T18:00:00Z
    2026-03-06T18:00:00Z Inactive audit: no machine is wanted until 2026-03-09T09:00:00Z
    ");
    let events: Vec<_> = simulation
        .events
        .iter()
        .map(|event| format!("{} {} {}", event.kind.as_str(), event.reason, event.note))
        .collect();
    insta::assert_snapshot!(events.join("\n"), @r"
    Normal ScheduleInactive Inactive: audit: no machine is wanted until 2026-03-06T09:00:00Z
    Normal WouldCreate audit: Machine worker would be created and kept until 2026-03-06T18:00:00Z
    Normal WouldShutDown audit: no machine is wanted until 2026-03-09T09:00:00Z
    ");
}

#[test]
fn the_time_in_audit_mode_is_wanted_and_neither_active_nor_late() {
    let (mut simulation, mut memory) = audited();
    simulation.run_until(&mut memory, EVENING);
    let status = simulation.status();
    let usage = usage_until(&status, None, simulation.now);
    assert_eq!(usage.accounted_state, Some(AccountedState::Audited));
    let march = &usage.months[0];
    let wanted = at(CLOSES).duration_since(at(OPENS)).as_secs();
    assert_eq!(march.wanted_seconds, wanted);
    assert_eq!(march.audited_seconds, wanted);
    let spent = [
        march.active_seconds,
        march.provisioning_seconds,
        march.late_seconds,
    ];
    assert_eq!(spent, [0; 3]);
}

#[test]
fn what_would_prevent_the_creation_is_reported_as_for_an_enforced_machine() {
    let (mut simulation, mut memory) = audited();
    let key = ("Cluster".to_owned(), "prod".to_owned());
    let cluster = simulation.objects.remove(&key).unwrap();
    simulation.run_until(&mut memory, NOON);
    let status = simulation.status();
    assert_eq!(status.phase, Some(Phase::Pending));
    assert_eq!(ready(&simulation).0, "ClusterNotFound");
    let stalled = condition::find(&status.conditions, ConditionType::Stalled);
    assert_eq!(stalled.unwrap().reason, "ClusterNotFound");
    assert!(message(&simulation).starts_with("audit: "));
    simulation.objects.insert(key, cluster);
    simulation.run_until(&mut memory, "2026-03-06T13:00:00Z");
    assert_eq!(ready(&simulation).0, "Audited");
    assert_eq!(reasons(&simulation).last(), Some(&"WouldCreate"));
    assert_eq!(writes(&simulation), [""; 0]);
}

#[test]
fn the_kill_switch_ends_what_would_run() {
    let (mut simulation, mut memory) = audited();
    simulation.run_until(&mut memory, NOON);
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Terminated));
    assert!(reasons(&simulation).contains(&"WouldShutDown"));
    assert_eq!(writes(&simulation), [""; 0]);
}

#[test]
fn a_hold_ends_nothing_that_would_run() {
    let (mut simulation, mut memory) = audited();
    simulation.run_until(&mut memory, NOON);
    simulation.schedule.overrides = vec![Override {
        name: "hold".to_owned(),
        mode: OverrideMode::Hold.into(),
        start: None,
        end: at(EVENING),
        created: None,
    }];
    simulation.settle(&mut memory);
    assert!(!reasons(&simulation).contains(&"WouldShutDown"));
    assert_eq!(writes(&simulation), [""; 0]);
}

#[test]
fn a_machine_is_created_once_it_is_enforced_inside_its_window() {
    let (mut simulation, mut memory) = audited();
    simulation.run_until(&mut memory, NOON);
    simulation.edit(|sm| sm.spec.enforcement = Enforcement::Enforce);
    simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert!(!reasons(&simulation).contains(&"WouldShutDown"));
    assert!(!message(&simulation).contains("audit"));
    let march = usage_until(&simulation.status(), None, simulation.now);
    assert!(march.months[0].active_seconds > 0);
}

#[test]
fn the_finalizer_of_an_enforced_machine_is_removed_once_it_is_audited() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.run_until(&mut memory, EVENING);
    let finalizers = |simulation: &Simulation| {
        let finalizers = simulation.sm().metadata.finalizers.clone();
        finalizers.unwrap_or_default()
    };
    assert_eq!(finalizers(&simulation), [name::FINALIZER]);
    simulation.edit(|sm| sm.spec.enforcement = Enforcement::Audit);
    simulation.settle(&mut memory);
    assert_eq!(finalizers(&simulation), [""; 0]);
    simulation.delete_sm();
    assert_eq!(simulation.sm, None);
}

#[test]
fn objects_that_exist_are_left_as_they_are_and_that_they_would_be_removed_is_reported() {
    for at_end in ["window", "kill switch", "deletion"] {
        let mut memory = Memory::default();
        let mut simulation = in_service(Contract::V1Beta2, &mut memory);
        // Admission rejects this; it may not be installed.
        simulation.edit(|sm| sm.spec.enforcement = Enforcement::Audit);
        simulation.settle(&mut memory);
        assert_eq!(ready(&simulation).0, "MachineRunning", "{at_end}");
        let before = writes(&simulation).len();
        let objects = simulation.objects.keys().cloned().collect::<Vec<_>>();
        match at_end {
            "kill switch" => simulation.edit(|sm| sm.spec.kill_switch = true),
            "deletion" => simulation.delete_sm(),
            _ => {}
        }
        simulation.run_until(&mut memory, EVENING);
        assert_eq!(writes(&simulation).len(), before, "{at_end}");
        assert!(simulation.objects.keys().eq(&objects), "{at_end}");
        let status = simulation.status();
        assert_eq!(status.shutdown, None, "{at_end}");
        assert_eq!(status.phase, Some(Phase::Active), "{at_end}");
        let expected = ("Audited".to_owned(), "False".to_owned());
        assert_eq!(ready(&simulation), expected, "{at_end}");
        let said = message(&simulation);
        assert!(
            said.contains("once spec.enforcement is Enforce"),
            "{at_end}: {said}"
        );
        let would = reasons(&simulation)
            .into_iter()
            .filter(|reason| *reason == "WouldShutDown");
        assert_eq!(would.count(), 1, "{at_end}: {:#?}", simulation.events);

        simulation.edit(|sm| sm.spec.enforcement = Enforcement::Enforce);
        simulation.run_until(&mut memory, "2026-03-06T21:00:00Z");
        assert_eq!(simulation.kinds(), [""; 0], "{at_end}");
    }
}

#[test]
fn a_reclaim_is_reported_and_not_carried_out() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| sm.spec.enforcement = Enforcement::Audit);
    let machine = simulation.get_mut("Machine").unwrap();
    machine["metadata"]["annotations"][name::RECLAIM_ANNOTATION] = json!("by hand");
    let before = writes(&simulation).len();
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(writes(&simulation).len(), before, "{:?}", simulation.log);
    assert!(simulation.get("Machine").is_some(), "{NAME}");
    assert!(simulation.sm().spec.schedule.enabled);
    assert!(reasons(&simulation).contains(&"WouldShutDown"));
}

#[test]
fn no_event_in_audit_mode_is_a_warning_about_the_machine_itself() {
    let (mut simulation, mut memory) = audited();
    simulation.run_until(&mut memory, EVENING);
    let mut kinds = simulation.events.iter().map(|event| event.kind);
    assert!(kinds.all(|kind| kind == EventType::Normal));
}
