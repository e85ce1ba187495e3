//! The condition `Stalled` with each of its reasons, and the Warning of a machine that left late.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{EndPolicy, Phase};
use fivespot_capi::Contract;
use fivespot_plan::{Cause, EventType, Memory, Specs, Step, Unknown};
use serde_json::json;

use crate::simulation::{
    BEFORE, CLOSES, CONTRACTS, EVENING, NAME, NOON, OPENS, Simulation, at, in_service,
    pod,
};

/// The reason for which the machine is Stalled; `None` if it is not.
fn stalled(simulation: &Simulation) -> Option<String> {
    let conditions = simulation.status().conditions;
    let found = condition::find(&conditions, ConditionType::Stalled)?;
    Some(found.reason.clone())
}

/// How many Warnings have reported the machine as Stalled for this reason.
fn warnings(simulation: &Simulation, reason: &str) -> usize {
    let of_reason = simulation
        .events
        .iter()
        .filter(|event| event.reason == reason);
    of_reason
        .filter(|event| event.kind == EventType::Warning && event.action == "Stalled")
        .count()
}

/// How many events have this reason.
fn events(simulation: &Simulation, reason: &str) -> usize {
    let all = simulation.events.iter();
    all.filter(|event| event.reason == reason).count()
}

fn new_world() -> (Simulation, Memory) {
    (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    )
}

/// The message of the condition.
fn reported(simulation: &Simulation) -> String {
    let conditions = simulation.status().conditions;
    let found = condition::find(&conditions, ConditionType::Stalled);
    found.map(|of| of.message.clone()).unwrap_or_default()
}

#[test]
fn an_invalid_schedule_is_stalled_until_it_is_corrected() {
    for (field, value, reason) in [
        ("timezone", json!("Nowhere"), "UnknownTimeZone"),
        ("daysOfWeek", json!(["someday"]), "InvalidDays"),
        ("hoursOfDay", json!(["25"]), "InvalidHours"),
    ] {
        let (mut simulation, mut memory) = new_world();
        let usual = simulation.sm().spec.schedule.clone();
        let mut schedule = serde_json::to_value(&usual).unwrap();
        schedule[field] = value;
        let schedule: fivespot_api::ScheduleSpec =
            serde_json::from_value(schedule).unwrap();
        simulation.edit(|sm| sm.spec.schedule = schedule);
        simulation.run_until(&mut memory, NOON);
        assert_eq!(stalled(&simulation).as_deref(), Some(reason));
        assert_eq!(warnings(&simulation, reason), 1, "{:#?}", simulation.events);
        assert_eq!(events(&simulation, reason), 1, "{:#?}", simulation.events);
        simulation.edit(|sm| sm.spec.schedule = usual);
        simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
        assert_eq!(stalled(&simulation), None);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
    }
}

#[test]
fn a_schedule_that_is_missing_is_stalled_after_ten_minutes() {
    let (mut simulation, mut memory) = new_world();
    let usual = simulation.sm().spec.schedule.clone();
    let reference = json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1", "kind": "ManualSchedule",
        "name": "office",
    });
    simulation.edit(|sm| sm.spec.schedule = serde_json::from_value(reference).unwrap());
    simulation.run_until(&mut memory, "2026-03-06T08:09:59Z");
    assert_eq!(stalled(&simulation), None);
    simulation.run_until(&mut memory, "2026-03-06T08:10:00Z");
    let reason = "ProviderNotFound";
    assert_eq!(stalled(&simulation).as_deref(), Some(reason));
    assert_eq!(warnings(&simulation, reason), 1, "{:#?}", simulation.events);
    simulation.edit(|sm| sm.spec.schedule = usual);
    simulation.run_until(&mut memory, NOON);
    assert_eq!(stalled(&simulation), None);
}

#[test]
fn a_schedule_that_has_never_existed_is_the_reason_why_no_machine_is_wanted() {
    let mut simulation = Simulation::new(CONTRACTS[1], OPENS);
    let reference = json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1", "kind": "ManualSchedule",
        "name": "office",
    });
    simulation.edit(|sm| sm.spec.schedule = serde_json::from_value(reference).unwrap());
    simulation.settle(&mut Memory::default());
    assert_eq!(
        simulation.status().message.as_deref(),
        Some(
            "no machine is wanted: there is no ManualSchedule office in this namespace: create it; \
             what was decided last holds on"
        )
    );
    assert_eq!(warnings(&simulation, "NeverNeeded"), 0);
}

#[test]
fn a_cluster_that_is_missing_is_stalled_while_a_machine_is_wanted() {
    let (mut simulation, mut memory) = new_world();
    let key = ("Cluster".to_owned(), "prod".to_owned());
    let cluster = simulation.objects.remove(&key).unwrap();
    simulation.run_until(&mut memory, "2026-03-06T08:30:00Z");
    assert_eq!(stalled(&simulation), None, "no machine is wanted yet");
    simulation.run_until(&mut memory, NOON);
    assert_eq!(stalled(&simulation).as_deref(), Some("ClusterNotFound"));
    assert!(
        reported(&simulation).contains("spec.clusterName"),
        "{}",
        reported(&simulation)
    );
    assert_eq!(warnings(&simulation, "ClusterNotFound"), 1);
    simulation.objects.insert(key, cluster);
    simulation.run_until(&mut memory, "2026-03-06T13:00:00Z");
    assert_eq!(stalled(&simulation), None);
}

#[test]
fn a_forbidden_read_is_stalled_after_five_minutes() {
    let (mut simulation, mut memory) = new_world();
    simulation.schedule.unknown = Some(Unknown::Forbidden {
        message: "User \"operator\" cannot list resource \"scheduleoverrides\""
            .to_owned(),
    });
    simulation.run_until(&mut memory, "2026-03-06T08:04:59Z");
    assert_eq!(stalled(&simulation), None);
    simulation.run_until(&mut memory, "2026-03-06T08:05:00Z");
    assert_eq!(stalled(&simulation).as_deref(), Some("Forbidden"));
    assert!(reported(&simulation).contains("extend the ClusterRole"));
    simulation.run_until(&mut memory, NOON);
    assert_eq!(warnings(&simulation, "Forbidden"), 1);
    simulation.schedule.unknown = None;
    simulation.settle(&mut memory);
    assert_eq!(stalled(&simulation), None);
}

#[test]
fn a_name_that_is_taken_is_stalled_until_it_is_free() {
    let (mut simulation, mut memory) = new_world();
    let foreign = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine",
        "metadata": {"name": NAME, "namespace": "default"}, "spec": {},
    });
    simulation.put(foreign);
    simulation.run_until(&mut memory, NOON);
    assert_eq!(stalled(&simulation).as_deref(), Some("NameTaken"));
    assert_eq!(events(&simulation, "NameTaken"), 1);
    assert_eq!(
        warnings(&simulation, "NameTaken"),
        1,
        "{:#?}",
        simulation.events
    );
    let key = ("RemoteMachine".to_owned(), NAME.to_owned());
    simulation.objects.remove(&key);
    simulation.run_until(&mut memory, "2026-03-06T13:00:00Z");
    assert_eq!(stalled(&simulation), None);
}

#[test]
fn specs_that_are_too_large_are_stalled() {
    let (mut simulation, mut memory) = new_world();
    simulation.specs = Specs::TooLarge {
        message: "spec.bootstrapSpec.spec is too large".to_owned(),
    };
    simulation.run_until(&mut memory, NOON);
    assert_eq!(stalled(&simulation).as_deref(), Some("SpecTooLarge"));
    assert_eq!(
        warnings(&simulation, "SpecTooLarge"),
        1,
        "{:#?}",
        simulation.events
    );
}

#[test]
fn a_create_that_is_refused_is_stalled_after_five_minutes() {
    for (cause, reason, cure) in [
        (Cause::Forbidden, "Forbidden", "extend the ClusterRole"),
        (Cause::Rejected, "Rejected", "correct the spec"),
    ] {
        let (mut simulation, mut memory) = new_world();
        simulation.failing = Some((Step::CreateBootstrap, cause));
        simulation.run_until(&mut memory, "2026-03-06T09:04:30Z");
        assert_eq!(stalled(&simulation), None, "{reason}");
        simulation.run_until(&mut memory, "2026-03-06T09:12:00Z");
        assert_eq!(stalled(&simulation).as_deref(), Some(reason));
        assert!(
            reported(&simulation).contains(cure),
            "{}",
            reported(&simulation)
        );
        assert_eq!(warnings(&simulation, reason), 1, "{:#?}", simulation.events);
        simulation.failing = None;
        simulation.run_until(&mut memory, NOON);
        assert_eq!(stalled(&simulation), None, "{reason}");
        assert_eq!(simulation.status().phase, Some(Phase::Active));
    }
}

#[test]
fn a_kind_that_is_not_served_is_stalled_at_once() {
    let (mut simulation, mut memory) = new_world();
    simulation.failing = Some((Step::CreateInfrastructure, Cause::NotServed));
    simulation.run_until(&mut memory, "2026-03-06T09:01:00Z");
    assert_eq!(stalled(&simulation).as_deref(), Some("KindNotServed"));
    assert_eq!(
        warnings(&simulation, "KindNotServed"),
        1,
        "{:#?}",
        simulation.events
    );
}

#[test]
fn the_provisioning_timeout_counts_from_the_first_create_that_failed() {
    let (mut simulation, mut memory) = new_world();
    simulation.edit(|sm| sm.spec.provisioning.timeout = "10m".to_owned());
    simulation.failing = Some((Step::CreateBootstrap, Cause::Unavailable));
    simulation.run_until(&mut memory, "2026-03-06T09:09:30Z");
    assert_eq!(stalled(&simulation), None);
    simulation.run_until(&mut memory, "2026-03-06T09:16:00Z");
    assert_eq!(stalled(&simulation).as_deref(), Some("ProvisioningTimeout"));
    assert!(simulation.first("CreateBootstrap") >= at(OPENS));
    assert_eq!(warnings(&simulation, "ProvisioningTimeout"), 1);
}

#[test]
fn a_removal_without_progress_is_stalled_after_ten_minutes() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:08:00Z");
    assert_eq!(stalled(&simulation), None);
    simulation.run_until(&mut memory, "2026-03-06T18:20:00Z");
    assert_eq!(stalled(&simulation).as_deref(), Some("RemovalStalled"));
    assert!(
        reported(&simulation).contains("finalizer"),
        "{}",
        reported(&simulation)
    );
    assert_eq!(
        warnings(&simulation, "RemovalStalled"),
        1,
        "{:#?}",
        simulation.events
    );
    simulation.is_moving = true;
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(stalled(&simulation), None);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
}

#[test]
fn a_removal_without_progress_reports_the_remaining_finalizers() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:05:30Z");
    let metadata = &mut simulation.get_mut("RemoteMachine").unwrap()["metadata"];
    metadata["deletionTimestamp"] = json!("2026-03-06T18:05:30Z");
    metadata["finalizers"] = json!(["example.com/hangs"]);
    simulation.run_until(&mut memory, "2026-03-06T18:30:00Z");
    let message = simulation.status().message.unwrap();
    let kept = "RemoteMachine worker has the finalizers example.com/hangs";
    assert!(message.ends_with(kept), "{message}");
}

/// A machine in service with the end policy CompleteByWindowEnd.
fn to_be_gone_by_the_end(memory: &mut Memory) -> Simulation {
    let mut simulation = in_service(Contract::V1Beta2, memory);
    simulation.edit(|sm| sm.spec.shutdown.end_policy = EndPolicy::CompleteByWindowEnd);
    simulation
}

#[test]
fn a_machine_that_is_gone_after_the_end_of_its_window_has_left_late() {
    let mut memory = Memory::default();
    let mut simulation = to_be_gone_by_the_end(&mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at(EVENING));
    simulation.run_until(&mut memory, "2026-03-06T17:59:00Z");
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:02:00Z");
    simulation.is_moving = true;
    simulation.run_until(&mut memory, EVENING);
    assert!(simulation.first("DeleteMachine") <= at(CLOSES));
    let late: Vec<_> = simulation
        .events
        .iter()
        .filter(|event| event.reason == "LeftLate")
        .collect();
    let [late] = late[..] else {
        panic!("{:#?}", simulation.events);
    };
    assert_eq!(late.kind, EventType::Warning);
    assert!(
        late.note.contains("after the end of its window"),
        "{}",
        late.note
    );
}

#[test]
fn a_machine_that_is_gone_by_the_end_of_its_window_has_not_left_late() {
    let mut memory = Memory::default();
    let mut simulation = to_be_gone_by_the_end(&mut memory);
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
    let mut reasons = simulation.events.iter().map(|event| &event.reason);
    assert!(reasons.all(|reason| reason != "LeftLate"));
}

/// The note of the only Warning `LeftLate`.
fn lateness(simulation: &Simulation) -> &str {
    let mut late = simulation
        .events
        .iter()
        .filter(|event| event.reason == "LeftLate");
    let first = late.next().unwrap();
    assert_eq!(late.next(), None);
    &first.note
}

#[test]
fn a_machine_whose_shutdown_began_after_the_end_of_its_window_has_left_late() {
    let paused_until = "2026-03-06T18:15:00Z";
    let mut memory = Memory::default();
    let mut simulation = to_be_gone_by_the_end(&mut memory);
    simulation.run_until(&mut memory, "2026-03-06T17:45:00Z");
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    simulation.run_until(&mut memory, paused_until);
    assert!(simulation.status().shutdown.is_none());
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2026-03-06T18:17:00Z"));
    simulation.settle(&mut memory);
    let shutdown = simulation.status().shutdown.unwrap();
    assert_eq!(shutdown.window_end, Some(at(CLOSES)));
    assert_eq!(
        shutdown.deadline,
        at("2026-03-06T18:20:00Z"),
        "its full grace"
    );
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(
        lateness(&simulation),
        "the machine was removed 17m after the end of its window at 2026-03-06T18:00:00Z; its \
         shutdown began only at 2026-03-06T18:15:00Z"
    );
}

#[test]
fn a_machine_without_time_to_leave_has_left_late() {
    let mut memory = Memory::default();
    let mut simulation = to_be_gone_by_the_end(&mut memory);
    simulation.edit(|sm| sm.spec.graceful_shutdown_timeout = "0s".to_owned());
    simulation.run_until(&mut memory, "2026-03-06T17:59:00Z");
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:00:03Z");
    simulation.is_moving = true;
    simulation.settle(&mut memory);
    assert_eq!(
        lateness(&simulation),
        "the machine was removed 3s after the end of its window at 2026-03-06T18:00:00Z; a \
         longer spec.gracefulShutdownTimeout starts its shutdown earlier"
    );
}

#[test]
fn a_machine_that_is_wanted_again_before_it_is_gone_has_not_left_late() {
    let mut memory = Memory::default();
    let mut simulation = to_be_gone_by_the_end(&mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at(EVENING));
    simulation.edit(|sm| sm.spec.graceful_shutdown_timeout = "30m".to_owned());
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    simulation.run_until(&mut memory, "2026-03-06T18:01:00Z");
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    simulation.settle(&mut memory);
    assert!(simulation.status().shutdown.is_some());
    simulation.schedule.overrides = vec![fivespot_schedule::Override {
        name: "it".to_owned(),
        mode: fivespot_schedule::OverrideMode::Run,
        start: None,
        end: at("2026-03-06T23:00:00Z"),
        created: None,
    }];
    simulation.run_until(&mut memory, EVENING);
    let status = simulation.status();
    assert_eq!((status.phase, status.shutdown), (Some(Phase::Active), None));
    let mut reasons = simulation.events.iter().map(|event| &event.reason);
    assert!(reasons.all(|reason| reason != "LeftLate"));
}

#[test]
fn a_machine_that_had_no_window_has_not_left_late() {
    let mut memory = Memory::default();
    let mut simulation = Simulation::new(Contract::V1Beta2, "2026-03-07T08:00:00Z");
    simulation.edit(|sm| sm.spec.shutdown.end_policy = EndPolicy::CompleteByWindowEnd);
    let run = fivespot_schedule::Override {
        name: "it".to_owned(),
        mode: fivespot_schedule::OverrideMode::Run,
        start: None,
        end: at("2026-03-09T00:00:00Z"),
        created: None,
    };
    simulation.schedule.overrides = vec![run];
    simulation.run_until(&mut memory, "2026-03-07T10:00:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    // Friday's window ended before the machine was created.
    simulation.schedule.overrides.clear();
    simulation.run_until(&mut memory, "2026-03-07T12:00:00Z");
    assert_eq!(simulation.kinds(), [""; 0]);
    let mut reasons = simulation.events.iter().map(|event| &event.reason);
    assert!(reasons.all(|reason| reason != "LeftLate"));
}
