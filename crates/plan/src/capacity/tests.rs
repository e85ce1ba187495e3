use fivespot_api::scheduled_capacity::CapacityPhase;
use fivespot_schedule::{Override, OverrideMode};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::EventType;

/// Friday, an hour before the window opens at 09:00.
const BEFORE: &str = "2026-03-06T08:00:00Z";
const OPEN: &str = "2026-03-06T09:00:00Z";
const CLOSED: &str = "2026-03-06T18:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn capacity(change: impl FnOnce(&mut Value)) -> ScheduledCapacity {
    let mut object = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u-1", "generation": 1},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "capacity": {"field": "replicas", "activeValue": 3},
        },
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn plain() -> ScheduledCapacity {
    capacity(|_| {})
}

fn awaiting() -> ScheduledCapacity {
    capacity(|object| {
        object["spec"]["handback"] = json!({"drainedPath": "status.replicas"});
    })
}

fn deployment(replicas: i64, running: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "t-1", "resourceVersion": "7"},
        "spec": {"replicas": replicas},
        "status": {"replicas": running},
    })
}

fn facts(target: Value) -> CapacityFacts {
    CapacityFacts {
        target: Fact::Known(Some(target)),
        ..CapacityFacts::default()
    }
}

fn hold() -> Override {
    Override {
        name: "freeze".to_owned(),
        mode: OverrideMode::Hold,
        start: None,
        end: at("2026-03-07T00:00:00Z"),
        created: None,
    }
}

/// Plans, and stores the status as the controller does.
fn step(
    object: &mut ScheduledCapacity,
    facts: &CapacityFacts,
    now: &str,
) -> CapacityPlan {
    let plan = plan_capacity(object, facts, at(now));
    object.status = Some(plan.status_after(None));
    plan
}

fn phase(object: &ScheduledCapacity) -> CapacityPhase {
    object.status.as_ref().unwrap().phase.unwrap()
}

fn condition(object: &ScheduledCapacity, kind: &str) -> (String, String) {
    let status = object.status.as_ref().unwrap();
    let found = status
        .conditions
        .iter()
        .find(|of| of.type_ == kind)
        .unwrap();
    (found.status.clone(), found.reason.clone())
}

fn replicas(plan: &CapacityPlan) -> Option<Value> {
    match plan.write.as_ref()? {
        CapacityWrite::JsonPatch(operations) => Some(operations[1]["value"].clone()),
        CapacityWrite::Scale(patch) => Some(patch["spec"]["replicas"].clone()),
        CapacityWrite::Apply(object) => Some(object["spec"]["replicas"].clone()),
    }
}

#[test]
fn an_edge_is_one_guarded_patch_and_then_nothing_is_written() {
    let mut object = plain();
    let plan = step(&mut object, &facts(deployment(3, 3)), BEFORE);
    assert_eq!(
        plan.write,
        Some(CapacityWrite::JsonPatch(json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "replace", "path": "/spec/replicas", "value": 0},
        ])))
    );
    assert_eq!(phase(&object), CapacityPhase::Inactive);
    assert_eq!(plan.requeue_at, Some(at(OPEN)));
    let plan = step(&mut object, &facts(deployment(0, 0)), BEFORE);
    assert_eq!(plan.write, None);
    let plan = step(&mut object, &facts(deployment(0, 0)), OPEN);
    assert_eq!(replicas(&plan), Some(json!(3)));
    assert_eq!(phase(&object), CapacityPhase::Active);
    let status = object.status.clone().unwrap();
    assert_eq!(status.next_transition, Some(at(CLOSED)));
    assert_eq!(status.written_value, Some(json!(3)));
    assert_eq!(status.target_ref.unwrap().name, "web");
}

#[test]
fn the_lead_time_writes_the_active_value_before_the_window() {
    let mut object = capacity(|object| object["spec"]["leadTime"] = json!("10m"));
    let plan = step(
        &mut object,
        &facts(deployment(0, 0)),
        "2026-03-06T08:49:59Z",
    );
    assert_eq!(plan.write, None);
    assert_eq!(plan.requeue_at, Some(at("2026-03-06T08:50:00Z")));
    let plan = step(
        &mut object,
        &facts(deployment(0, 0)),
        "2026-03-06T08:50:00Z",
    );
    assert_eq!(replicas(&plan), Some(json!(3)));
}

#[test]
fn nothing_is_written_while_the_state_is_unknown_held_or_paused() {
    let reference = json!({
        "apiVersion": "spotschedules.5spot.finos.org/v1alpha1",
        "kind": "TimeBasedSpotSchedule", "name": "office",
    });
    let following = capacity(|object| object["spec"]["schedule"] = reference);
    let mut held = facts(deployment(0, 0));
    held.schedule.overrides = vec![hold()];
    let mut paused = deployment(0, 0);
    paused["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    let mut deleting = deployment(0, 0);
    deleting["metadata"]["deletionTimestamp"] = json!(BEFORE);
    let unread = Unknown::Failed {
        message: "no answer".to_owned(),
    };
    let mut unlisted = facts(deployment(0, 0));
    unlisted.schedule.unknown = Some(unread.clone());
    let of_target = |target| CapacityFacts {
        target,
        ..CapacityFacts::default()
    };
    let invalid = capacity(|object| {
        object["spec"]["schedule"]["hoursOfDay"] = json!(["25"]);
    });
    for (object, facts, reason) in [
        (following, facts(deployment(0, 0)), "ProviderNotFound"),
        (plain(), held, "Held"),
        (plain(), facts(paused), "TargetPaused"),
        (plain(), facts(deleting), "TargetDeleting"),
        (plain(), unlisted, "ReadFailed"),
        (plain(), of_target(Fact::Unknown(unread)), "ReadFailed"),
        (plain(), of_target(Fact::Known(None)), "TargetNotFound"),
        (invalid, facts(deployment(0, 0)), "InvalidSpec"),
    ] {
        let mut object = object;
        let plan = step(&mut object, &facts, OPEN);
        assert_eq!(plan.write, None, "{reason}");
        let ready = condition(&object, "Ready");
        assert_eq!(ready, ("False".to_owned(), reason.to_owned()));
        assert_eq!(object.status.unwrap().active, None);
    }
}

#[test]
fn the_end_of_a_hold_is_an_instant_to_decide_again() {
    let mut object = plain();
    let mut held = facts(deployment(0, 0));
    held.schedule.overrides = vec![hold()];
    let plan = step(&mut object, &held, OPEN);
    assert_eq!((plan.write, plan.requeue_at), (None, Some(hold().end)));
}

#[test]
fn the_kill_switch_and_enabled_write_the_inactive_value_and_wait_for_nothing() {
    for (field, value, phase_after) in [
        ("killSwitch", true, CapacityPhase::Terminated),
        ("enabled", false, CapacityPhase::Disabled),
    ] {
        let mut object = awaiting();
        step(&mut object, &facts(deployment(3, 3)), OPEN);
        let mut changed = serde_json::to_value(&object).unwrap();
        changed["spec"][field] = json!(value);
        changed["metadata"]["generation"] = json!(2);
        object = serde_json::from_value(changed).unwrap();
        let mut held = facts(deployment(3, 3));
        held.schedule.overrides = vec![hold()];
        let plan = step(&mut object, &held, OPEN);
        assert_eq!(replicas(&plan), Some(json!(0)), "{field}");
        assert_eq!(phase(&object), phase_after);
        assert_eq!(object.status.unwrap().handback_deadline, None);
    }
}

#[test]
fn a_closing_writes_the_inactive_value_and_then_waits_until_the_target_is_drained() {
    let mut object = awaiting();
    step(&mut object, &facts(deployment(3, 3)), OPEN);
    let plan = step(&mut object, &facts(deployment(3, 3)), CLOSED);
    assert_eq!(replicas(&plan), Some(json!(0)));
    assert!(plan.repeats);
    assert_eq!(phase(&object), CapacityPhase::HandingBack);
    let deadline = at("2026-03-06T18:10:00Z");
    assert_eq!(
        object.status.as_ref().unwrap().handback_deadline,
        Some(deadline)
    );
    // A number that is absent is not 0.
    let mut unread = deployment(0, 0);
    unread["status"] = json!({});
    let plan = step(&mut object, &facts(unread), "2026-03-06T18:01:00Z");
    assert_eq!((plan.write, plan.requeue_at), (None, Some(deadline)));
    assert_eq!(phase(&object), CapacityPhase::HandingBack);
    let plan = step(
        &mut object,
        &facts(deployment(0, 1)),
        "2026-03-06T18:10:00Z",
    );
    assert_eq!(plan.write, None);
    assert_eq!(phase(&object), CapacityPhase::HandbackTimedOut);
    let timed_out = ("False".to_owned(), "HandbackTimedOut".to_owned());
    assert_eq!(condition(&object, "HandbackComplete"), timed_out);
    assert_eq!(
        object.status.as_ref().unwrap().observed_drained_value,
        Some(1)
    );
    step(
        &mut object,
        &facts(deployment(0, 0)),
        "2026-03-06T18:20:00Z",
    );
    assert_eq!(phase(&object), CapacityPhase::Inactive);
    let drained = ("True".to_owned(), "Drained".to_owned());
    assert_eq!(condition(&object, "HandbackComplete"), drained);
}

#[test]
fn a_value_that_is_changed_again_after_three_writes_is_not_fought_for() {
    let mut object = plain();
    let changed = facts(deployment(5, 5));
    step(&mut object, &changed, OPEN);
    for minute in ["09:01", "09:02"] {
        let now = format!("2026-03-06T{minute}:00Z");
        let plan = step(&mut object, &changed, &now);
        assert_eq!(replicas(&plan), Some(json!(3)), "{minute}");
    }
    let plan = plan_capacity(&object, &changed, at("2026-03-06T09:03:00Z"));
    assert!(plan.asks_for_rival && plan.write.is_none());
    let mut named = changed.clone();
    named.rival = Some("kubectl".to_owned());
    let plan = step(&mut object, &named, "2026-03-06T09:03:00Z");
    assert_eq!(plan.write, None);
    let status = object.status.clone().unwrap();
    assert_eq!(status.contested_by.as_deref(), Some("kubectl"));
    assert_eq!(condition(&object, "FieldContested").0, "True");
    assert!(
        status
            .message
            .unwrap()
            .starts_with("kubectl has changed the value")
    );
    // Hours later neither; at the closing it is written once.
    let plan = step(&mut object, &changed, "2026-03-06T15:00:00Z");
    assert_eq!(plan.write, None);
    let plan = step(&mut object, &changed, CLOSED);
    assert_eq!(replicas(&plan), Some(json!(0)));
    let plan = step(&mut object, &changed, "2026-03-06T18:01:00Z");
    assert_eq!(plan.write, None);
    // The other client has given up.
    let plan = step(
        &mut object,
        &facts(deployment(0, 0)),
        "2026-03-06T18:02:00Z",
    );
    assert_eq!(plan.requeue_at, Some(at("2026-03-06T18:10:00Z")));
    step(
        &mut object,
        &facts(deployment(0, 0)),
        "2026-03-06T18:10:00Z",
    );
    assert_eq!(object.status.unwrap().contested_by, None);
}

#[test]
fn what_the_server_stores_instead_of_a_value_is_no_difference() {
    let mut object = capacity(|object| {
        object["spec"]["capacity"] =
            json!({"field": "replicas", "activeValue": "1000m", "inactiveValue": "0"});
    });
    let plan = plan_capacity(&object, &facts(deployment(0, 0)), at(OPEN));
    object.status = Some(plan.status_after(Some(&json!({"spec": {"replicas": "1"}}))));
    let mut stored = deployment(0, 0);
    stored["spec"]["replicas"] = json!("1");
    let plan = step(&mut object, &facts(stored), OPEN);
    assert_eq!(plan.write, None);
}

#[test]
fn a_target_of_the_scale_subresource_is_written_there() {
    let object =
        capacity(|object| object["spec"]["target"]["subresource"] = json!("scale"));
    let plan = plan_capacity(&object, &facts(deployment(0, 0)), at(OPEN));
    let patch = json!({"metadata": {"resourceVersion": "7"}, "spec": {"replicas": 3}});
    assert_eq!(plan.write, Some(CapacityWrite::Scale(patch)));
}

fn templated() -> ScheduledCapacity {
    capacity(|object| {
        object["spec"]["template"] = json!({"paused": true});
        object["spec"]["target"] = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    })
}

#[test]
fn an_object_of_a_template_is_created_and_one_of_another_owner_is_left_alone() {
    let mut object = templated();
    let absent = CapacityFacts {
        target: Fact::Known(None),
        ..CapacityFacts::default()
    };
    let plan = step(&mut object, &absent, BEFORE);
    let Some(CapacityWrite::Apply(applied)) = plan.write else {
        panic!("{:?}", plan.write);
    };
    assert_eq!(applied["spec"], json!({"paused": true, "replicas": 0}));
    assert_eq!(applied["metadata"]["ownerReferences"][0]["uid"], "u-1");
    let of_another = json!([{"controller": true, "uid": "u-2"}]);
    let not_a_controller = json!([{"uid": "u-1"}]);
    for owners in [json!(null), of_another, not_a_controller] {
        let mut object = templated();
        let mut found = deployment(0, 0);
        found["metadata"]["ownerReferences"] = owners;
        let plan = step(&mut object, &facts(found), OPEN);
        assert_eq!(plan.write, None);
        assert_eq!(condition(&object, "TargetResolved").1, "TargetNotOwned");
    }
    let mut own = deployment(0, 0);
    own["metadata"]["ownerReferences"] = json!([{"controller": true, "uid": "u-1"}]);
    let plan = step(&mut object, &facts(own), OPEN);
    assert_eq!(replicas(&plan), Some(json!(3)));
}

#[test]
fn on_the_node_of_a_machine_the_inactive_value_is_written_and_nothing_is_created() {
    let mut object = capacity(|object| object["spec"]["nodeName"] = json!("host"));
    let mut governed = facts(deployment(3, 3));
    governed.governor = Some("desk".to_owned());
    let plan = step(&mut object, &governed, OPEN);
    assert_eq!(replicas(&plan), Some(json!(0)));
    assert_eq!(condition(&object, "HostGovernanceConflict").0, "True");
    assert_eq!(
        object.status.unwrap().governed_node.as_deref(),
        Some("host")
    );
    governed.target = Fact::Known(None);
    let mut object = templated();
    object.spec.node_name = Some("host".to_owned());
    assert_eq!(step(&mut object, &governed, OPEN).write, None);
}

#[test]
fn where_it_is_unknown_whose_node_it_is_nothing_becomes_active_and_a_window_still_ends() {
    let mut object = capacity(|object| object["spec"]["nodeName"] = json!("host"));
    step(&mut object, &facts(deployment(3, 3)), OPEN);
    let mut world = facts(deployment(3, 3));
    world.governor_unknown = Some(Unknown::Forbidden {
        message: "no".to_owned(),
    });
    let plan = step(&mut object, &world, "2026-03-06T10:00:00Z");
    assert_eq!(plan.write, None);
    let message = object.status.clone().unwrap().message.unwrap();
    assert_eq!(
        message,
        "the ScheduledMachines of the namespace cannot be read: no"
    );
    let plan = step(&mut object, &world, CLOSED);
    assert_eq!(replicas(&plan), Some(json!(0)));
    world.target = facts(deployment(0, 0)).target;
    let plan = step(&mut object, &world, "2026-03-09T10:00:00Z");
    assert_eq!(plan.write, None);
}

#[test]
fn a_missing_field_is_named_and_nothing_is_written() {
    let mut object = capacity(|object| {
        object["spec"]["capacity"] = json!({"field": "limits.cpu", "activeValue": "4"});
    });
    let plan = step(&mut object, &facts(deployment(0, 0)), OPEN);
    assert_eq!(plan.write, None);
    assert_eq!(phase(&object), CapacityPhase::Error);
    let status = object.status.unwrap();
    assert!(status.message.unwrap().contains("`spec.limits`"));
    assert_eq!(status.active, None);
}

#[test]
fn the_other_manager_of_a_field_is_named() {
    let object = json!({"metadata": {"managedFields": [
        {"manager": "5spot", "time": "2026-03-06T09:05:00Z",
         "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "argocd", "time": "2026-03-06T09:00:00Z",
         "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "kubectl", "time": "2026-03-06T09:10:00Z",
         "fieldsV1": {"f:spec": {"f:paused": {}}}},
    ]}});
    assert_eq!(manager_of(&object, "replicas", "5spot"), "argocd");
    assert_eq!(manager_of(&object, "strategy", "5spot"), "");
}

/// What happens to the world before a reconcile.
#[derive(Clone, Copy, Debug)]
enum Change {
    Wait(i32),
    Foreign(i64),
    Running(i64),
    Hold(bool),
    Unread(bool),
    Paused(bool),
    Killed(bool),
    Enabled(bool),
    Governed(bool),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (1..400_i32).prop_map(Change::Wait),
        4 => (0..6_i64).prop_map(Change::Foreign),
        2 => (0..2_i64).prop_map(Change::Running),
        1 => any::<bool>().prop_map(Change::Hold),
        1 => any::<bool>().prop_map(Change::Unread),
        1 => any::<bool>().prop_map(Change::Paused),
        1 => any::<bool>().prop_map(Change::Killed),
        1 => any::<bool>().prop_map(Change::Enabled),
        1 => any::<bool>().prop_map(Change::Governed),
    ]
}

/// A write as the laws judge it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wrote {
    at: Timestamp,
    value: i64,
    is_active: bool,
    generation: i64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_laws_hold_whatever_happens(changes in prop::collection::vec(change(), 1..60)) {
        let mut object = awaiting();
        let mut world = facts(deployment(1, 1));
        let mut now = at(BEFORE);
        let (mut held, mut unread, mut paused) = (false, false, false);
        let mut wrote: Vec<Wrote> = Vec::new();
        let mut is_unapplied = true;
        for change in changes {
            let generation = object.metadata.generation.unwrap();
            let mut edit = false;
            match change {
                Change::Wait(minutes) => {
                    now = now.checked_add(SignedDuration::from_mins(minutes.into())).unwrap();
                }
                Change::Foreign(value) => {
                    if let Fact::Known(Some(target)) = &mut world.target {
                        target["spec"]["replicas"] = json!(value);
                    }
                }
                Change::Running(value) => {
                    if let Fact::Known(Some(target)) = &mut world.target {
                        target["status"]["replicas"] = json!(value);
                    }
                }
                Change::Hold(is_held) => {
                    held = is_held;
                    let mut hold = hold();
                    hold.end = at("2027-01-01T00:00:00Z");
                    world.schedule.overrides = if held { vec![hold] } else { Vec::new() };
                }
                Change::Unread(is_unread) => {
                    unread = is_unread;
                    let message = "no answer".to_owned();
                    world.schedule.unknown = unread.then_some(Unknown::Failed { message });
                }
                Change::Paused(is_paused) => {
                    paused = is_paused;
                    if let Fact::Known(Some(target)) = &mut world.target {
                        let set = json!({"cluster.x-k8s.io/paused": ""});
                        target["metadata"]["annotations"] = if paused { set } else { json!({}) };
                    }
                }
                Change::Killed(is_killed) => {
                    edit = object.spec.kill_switch != is_killed;
                    object.spec.kill_switch = is_killed;
                }
                Change::Enabled(is_enabled) => {
                    edit = object.spec.enabled != is_enabled;
                    object.spec.enabled = is_enabled;
                }
                Change::Governed(is_governed) => {
                    object.spec.node_name = Some("host".to_owned());
                    world.governor = is_governed.then(|| "desk".to_owned());
                }
            }
            object.metadata.generation = Some(generation + i64::from(edit));
            is_unapplied |= edit;
            world.rival = None;
            let mut plan = plan_capacity(&object, &world, now);
            prop_assert_eq!(&plan, &plan_capacity(&object, &world, now));
            if plan.asks_for_rival {
                prop_assert!(plan.write.is_none());
                world.rival = Some("kubectl".to_owned());
                plan = plan_capacity(&object, &world, now);
                prop_assert!(!plan.asks_for_rival);
            }
            let before = object.status.clone().unwrap_or_default();
            let status = plan.status_after(None);
            let is_off = object.spec.kill_switch
                || !object.spec.enabled
                || world.governor.is_some();
            if let Some(value) = replicas(&plan) {
                // Never while paused, held or unresolved.
                prop_assert!(!paused);
                prop_assert!(is_off || !held && !unread);
                let value = value.as_i64().unwrap();
                // Off means the inactive value, and one state has one value.
                prop_assert!(!is_off || value == 0);
                let is_active = status.active.unwrap();
                prop_assert_eq!(value, if is_active { 3 } else { 0 });
                let write = Wrote {
                    at: now,
                    value,
                    is_active,
                    generation: object.metadata.generation.unwrap(),
                };
                // At most three writes of one state in ten minutes.
                let same = wrote.iter().rev().take_while(|of| {
                    of.is_active == is_active && of.generation == write.generation
                });
                let recent = same.filter(|of| after(of.at, CONTEST) > now).count();
                prop_assert!(recent < 3, "{recent} before {write:?}");
                if before.contested_by.is_some() {
                    let is_new = before.active != Some(is_active)
                        || is_unapplied;
                    prop_assert!(is_new);
                }
                wrote.push(write);
                if let Fact::Known(Some(target)) = &mut world.target {
                    target["spec"]["replicas"] = json!(value);
                }
                // What is awaited is not read before the inactive value was written.
                prop_assert_eq!(before.handback_deadline.is_some()
                    && status.handback_deadline.is_none() && !is_active
                    && !is_off, false);
            }
            if status.handback_deadline.is_some() {
                prop_assert_eq!(status.active, Some(false));
            }
            let phase = status.phase.unwrap();
            if phase == CapacityPhase::Active {
                prop_assert_eq!(status.active, Some(true));
            }
            object.status = Some(status);
            is_unapplied &= paused || !is_off && (held || unread);
        }
    }
}

/// Nothing is written until the override ends, and the generation is observed all the same.
#[test]
fn an_edit_of_a_template_under_hold_is_applied_when_it_ends() {
    let mut object = templated();
    let mut own = deployment(3, 3);
    own["metadata"]["ownerReferences"] = json!([{"controller": true, "uid": "u-1"}]);
    let mut world = facts(own);
    step(&mut object, &world, OPEN);
    assert_eq!(step(&mut object, &world, OPEN).write, None);
    world.schedule.overrides = vec![hold()];
    object.spec.template.as_mut().unwrap()["paused"] = json!(false);
    object.metadata.generation = Some(2);
    assert_eq!(step(&mut object, &world, OPEN).write, None);
    assert_eq!(object.status.as_ref().unwrap().observed_generation, Some(2));
    world.schedule.overrides = Vec::new();
    let Some(CapacityWrite::Apply(applied)) = step(&mut object, &world, OPEN).write
    else {
        panic!("{:?}", object.status);
    };
    assert_eq!(applied["spec"], json!({"paused": false, "replicas": 3}));
    assert_eq!(step(&mut object, &world, OPEN).write, None);
}

/// A status that a version without `appliedGeneration` has written, or that a CRD without it stores.
#[test]
fn without_a_record_of_the_edit_none_is_seen_and_a_contested_value_is_left_alone() {
    let mut object = plain();
    let changed = facts(deployment(5, 5));
    let step = |object: &mut ScheduledCapacity, minute: u32| {
        let mut status = object.status.clone().unwrap_or_default();
        status.applied_generation = None;
        object.status = Some(status);
        let mut world = changed.clone();
        world.rival = Some("kubectl".to_owned());
        step(object, &world, &format!("2026-03-06T09:{minute:02}:00Z"))
    };
    let written = (0..10).filter(|minute| step(&mut object, *minute).write.is_some());
    assert_eq!(written.count(), 3);
    assert_eq!(condition(&object, "FieldContested").0, "True");
}

#[test]
fn what_was_not_awaited_is_not_said_to_be_drained() {
    let mut object = awaiting();
    step(&mut object, &facts(deployment(3, 3)), OPEN);
    object.spec.kill_switch = true;
    step(&mut object, &facts(deployment(3, 3)), OPEN);
    assert_eq!(
        condition(&object, "HandbackComplete"),
        ("False".to_owned(), "NotAwaited".to_owned())
    );
}

#[test]
fn a_refusal_is_about_the_spec_that_was_refused() {
    let object = plain();
    let status = capacity_write_failed(&object, "WriteForbidden", "no", at(OPEN));
    assert_eq!(status.observed_generation, Some(1));
    assert_eq!(status.applied_generation, None);
}

#[test]
fn an_event_is_sent_about_a_fault_and_its_end_and_not_about_an_edge() {
    let mut object = plain();
    let mut event_at = |target: Fact<Option<Value>>, now: &str| {
        let before = object.status.clone().unwrap_or_default();
        let facts = CapacityFacts {
            target,
            ..CapacityFacts::default()
        };
        step(&mut object, &facts, now);
        let event = capacity_event(&before, object.status.as_ref().unwrap());
        event.map(|event| (event.kind, event.reason))
    };
    let web = |replicas| Fact::Known(Some(deployment(replicas, replicas)));
    assert_eq!(event_at(web(3), BEFORE), None);
    assert_eq!(event_at(web(0), OPEN), None);
    let warning = (EventType::Warning, "TargetNotFound".to_owned());
    assert_eq!(event_at(Fact::Known(None), OPEN), Some(warning));
    assert_eq!(event_at(Fact::Known(None), OPEN), None);
    let end = (EventType::Normal, "Active".to_owned());
    assert_eq!(event_at(web(3), OPEN), Some(end));
    assert_eq!(event_at(web(3), CLOSED), None);
}

/// Kubernetes rejects an Event with a longer note, so that nobody would see it.
#[test]
fn the_note_of_an_event_has_at_most_a_kibibyte() {
    let object = plain();
    let before = ScheduledCapacityStatus::default();
    let refused = "é".repeat(2_000);
    let status = capacity_write_failed(&object, "WriteRejected", &refused, at(OPEN));
    let length = capacity_event(&before, &status).unwrap().note.len();
    assert!((900..=1024).contains(&length), "{length}");
}
