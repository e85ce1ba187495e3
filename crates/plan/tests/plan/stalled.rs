//! The condition `Stalled` with each of its reasons, and the Warning of a machine that left late.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{EndPolicy, Phase};
use fivespot_capi::Contract;
use fivespot_plan::{Cause, EventType, Memory, Specs, Step, Unknown};
use serde_json::json;

use crate::world::{
    BEFORE, CLOSES, EVENING, NAME, NOON, OPENS, World, at, in_service, pod,
};

/// The reason for which the machine is Stalled; `None` if it is not.
fn stalled(world: &World) -> Option<String> {
    let conditions = world.status().conditions;
    let found = condition::find(&conditions, ConditionType::Stalled)?;
    Some(found.reason.clone())
}

/// How many Warnings have reported the machine as Stalled for this reason.
fn warnings(world: &World, reason: &str) -> usize {
    let of_reason = world.events.iter().filter(|event| event.reason == reason);
    of_reason
        .filter(|event| event.kind == EventType::Warning && event.action == "Stalled")
        .count()
}

fn new_world() -> (World, Memory) {
    (World::new(Contract::V1Beta2, BEFORE), Memory::default())
}

/// The message of the condition.
fn reported(world: &World) -> String {
    let conditions = world.status().conditions;
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
        let (mut world, mut memory) = new_world();
        let usual = world.sm().spec.schedule.clone();
        let mut schedule = serde_json::to_value(&usual).unwrap();
        schedule[field] = value;
        let schedule: fivespot_api::ScheduleSpec =
            serde_json::from_value(schedule).unwrap();
        world.edit(|sm| sm.spec.schedule = schedule);
        world.run_until(&mut memory, NOON);
        assert_eq!(stalled(&world).as_deref(), Some(reason));
        assert_eq!(warnings(&world, reason), 1, "{:#?}", world.events);
        world.edit(|sm| sm.spec.schedule = usual);
        world.run_until(&mut memory, "2026-03-06T12:10:00Z");
        assert_eq!(stalled(&world), None);
        assert_eq!(world.status().phase, Some(Phase::Active));
    }
}

#[test]
fn a_cluster_that_is_missing_is_stalled_while_a_machine_is_wanted() {
    let (mut world, mut memory) = new_world();
    let key = ("Cluster".to_owned(), "prod".to_owned());
    let cluster = world.objects.remove(&key).unwrap();
    world.run_until(&mut memory, "2026-03-06T08:30:00Z");
    assert_eq!(stalled(&world), None, "no machine is wanted yet");
    world.run_until(&mut memory, NOON);
    assert_eq!(stalled(&world).as_deref(), Some("ClusterNotFound"));
    assert!(
        reported(&world).contains("spec.clusterName"),
        "{}",
        reported(&world)
    );
    assert_eq!(warnings(&world, "ClusterNotFound"), 1);
    world.objects.insert(key, cluster);
    world.run_until(&mut memory, "2026-03-06T13:00:00Z");
    assert_eq!(stalled(&world), None);
}

#[test]
fn a_forbidden_read_is_stalled_after_five_minutes() {
    let (mut world, mut memory) = new_world();
    world.schedule.unknown = Some(Unknown::Forbidden {
        message: "User \"operator\" cannot list resource \"scheduleoverrides\""
            .to_owned(),
    });
    world.run_until(&mut memory, "2026-03-06T08:04:59Z");
    assert_eq!(stalled(&world), None);
    world.run_until(&mut memory, "2026-03-06T08:05:00Z");
    assert_eq!(stalled(&world).as_deref(), Some("Forbidden"));
    assert!(reported(&world).contains("extend the ClusterRole"));
    world.run_until(&mut memory, NOON);
    assert_eq!(warnings(&world, "Forbidden"), 1);
    world.schedule.unknown = None;
    world.settle(&mut memory);
    assert_eq!(stalled(&world), None);
}

#[test]
fn a_name_that_is_taken_is_stalled_until_it_is_free() {
    let (mut world, mut memory) = new_world();
    let foreign = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine",
        "metadata": {"name": NAME, "namespace": "default"}, "spec": {},
    });
    world.put(foreign);
    world.run_until(&mut memory, NOON);
    assert_eq!(stalled(&world).as_deref(), Some("NameTaken"));
    assert_eq!(warnings(&world, "NameTaken"), 1, "{:#?}", world.events);
    let key = ("RemoteMachine".to_owned(), NAME.to_owned());
    world.objects.remove(&key);
    world.run_until(&mut memory, "2026-03-06T13:00:00Z");
    assert_eq!(stalled(&world), None);
}

#[test]
fn specs_that_are_too_large_are_stalled() {
    let (mut world, mut memory) = new_world();
    world.specs = Specs::TooLarge {
        message: "spec.bootstrapSpec.spec is too large".to_owned(),
    };
    world.run_until(&mut memory, NOON);
    assert_eq!(stalled(&world).as_deref(), Some("SpecTooLarge"));
    assert_eq!(warnings(&world, "SpecTooLarge"), 1, "{:#?}", world.events);
}

#[test]
fn a_create_that_is_refused_is_stalled_after_five_minutes() {
    for (cause, reason, cure) in [
        (Cause::Forbidden, "Forbidden", "extend the ClusterRole"),
        (Cause::Rejected, "Rejected", "correct the spec"),
    ] {
        let (mut world, mut memory) = new_world();
        world.failing = Some((Step::CreateBootstrap, cause));
        world.run_until(&mut memory, "2026-03-06T09:04:30Z");
        assert_eq!(stalled(&world), None, "{reason}");
        world.run_until(&mut memory, "2026-03-06T09:12:00Z");
        assert_eq!(stalled(&world).as_deref(), Some(reason));
        assert!(reported(&world).contains(cure), "{}", reported(&world));
        assert_eq!(warnings(&world, reason), 1, "{:#?}", world.events);
        world.failing = None;
        world.run_until(&mut memory, NOON);
        assert_eq!(stalled(&world), None, "{reason}");
        assert_eq!(world.status().phase, Some(Phase::Active));
    }
}

#[test]
fn a_kind_that_is_not_served_is_stalled_at_once() {
    let (mut world, mut memory) = new_world();
    world.failing = Some((Step::CreateInfrastructure, Cause::NotServed));
    world.run_until(&mut memory, "2026-03-06T09:01:00Z");
    assert_eq!(stalled(&world).as_deref(), Some("KindNotServed"));
    assert_eq!(warnings(&world, "KindNotServed"), 1, "{:#?}", world.events);
}

#[test]
fn the_provisioning_timeout_counts_from_the_first_create_that_failed() {
    let (mut world, mut memory) = new_world();
    world.edit(|sm| sm.spec.provisioning.timeout = "10m".to_owned());
    world.failing = Some((Step::CreateBootstrap, Cause::Unavailable));
    world.run_until(&mut memory, "2026-03-06T09:09:30Z");
    assert_eq!(stalled(&world), None);
    world.run_until(&mut memory, "2026-03-06T09:16:00Z");
    assert_eq!(stalled(&world).as_deref(), Some("ProvisioningTimeout"));
    assert!(world.first("CreateBootstrap") >= at(OPENS));
    assert_eq!(warnings(&world, "ProvisioningTimeout"), 1);
}

#[test]
fn a_removal_without_progress_is_stalled_after_ten_minutes() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.is_moving = false;
    world.run_until(&mut memory, "2026-03-06T18:08:00Z");
    assert_eq!(stalled(&world), None);
    world.run_until(&mut memory, "2026-03-06T18:20:00Z");
    assert_eq!(stalled(&world).as_deref(), Some("RemovalStalled"));
    assert!(
        reported(&world).contains("finalizer"),
        "{}",
        reported(&world)
    );
    assert_eq!(warnings(&world, "RemovalStalled"), 1, "{:#?}", world.events);
    world.is_moving = true;
    world.run_until(&mut memory, EVENING);
    assert_eq!(stalled(&world), None);
    assert_eq!(world.status().phase, Some(Phase::Inactive));
}

#[test]
fn a_removal_without_progress_reports_the_remaining_finalizers() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.is_moving = false;
    world.run_until(&mut memory, "2026-03-06T18:05:30Z");
    let metadata = &mut world.get_mut("RemoteMachine").unwrap()["metadata"];
    metadata["deletionTimestamp"] = json!("2026-03-06T18:05:30Z");
    metadata["finalizers"] = json!(["example.com/hangs"]);
    world.run_until(&mut memory, "2026-03-06T18:30:00Z");
    let message = world.status().message.unwrap();
    let kept = "RemoteMachine worker has the finalizers example.com/hangs";
    assert!(message.ends_with(kept), "{message}");
}

/// A machine in service with the end policy CompleteByWindowEnd.
fn to_be_gone_by_the_end(memory: &mut Memory) -> World {
    let mut world = in_service(Contract::V1Beta2, memory);
    world.edit(|sm| sm.spec.shutdown.end_policy = EndPolicy::CompleteByWindowEnd);
    world
}

#[test]
fn a_machine_that_is_gone_after_the_end_of_its_window_has_left_late() {
    let mut memory = Memory::default();
    let mut world = to_be_gone_by_the_end(&mut memory);
    world.pods = vec![pod("a")];
    world.budget_until = Some(at(EVENING));
    world.run_until(&mut memory, "2026-03-06T17:59:00Z");
    world.is_moving = false;
    world.run_until(&mut memory, "2026-03-06T18:02:00Z");
    world.is_moving = true;
    world.run_until(&mut memory, EVENING);
    assert!(world.first("DeleteMachine") <= at(CLOSES));
    let late: Vec<_> = world
        .events
        .iter()
        .filter(|event| event.reason == "LeftLate")
        .collect();
    let [late] = late[..] else {
        panic!("{:#?}", world.events);
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
    let mut world = to_be_gone_by_the_end(&mut memory);
    world.run_until(&mut memory, EVENING);
    assert_eq!(world.status().phase, Some(Phase::Inactive));
    let mut reasons = world.events.iter().map(|event| &event.reason);
    assert!(reasons.all(|reason| reason != "LeftLate"));
}
