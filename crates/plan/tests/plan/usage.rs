//! The account in `status.usage`.

use fivespot_api::{AccountedState, OverrideMode, Phase, UsageMonth};
use fivespot_capi::Contract;
use fivespot_plan::{Access, Fact, Memory, Unknown, plan, usage_until};
use fivespot_schedule::{Override, Schedule};
use serde_json::json;

use crate::simulation::{
    BEFORE, CLOSES, EVENING, NOON, OPENS, Simulation, at, in_service, pod,
};

fn overriding(mode: OverrideMode, start: Option<&str>, end: &str) -> Override {
    Override {
        name: "it".to_owned(),
        mode: mode.into(),
        start: start.map(at),
        end: at(end),
        created: None,
    }
}

fn before_the_window() -> (Simulation, Memory) {
    (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    )
}

/// The seconds from one instant to another.
fn seconds(since: &str, until: &str) -> i64 {
    at(until).duration_since(at(since)).as_secs()
}

fn set_node_ready(simulation: &mut Simulation, status: &str) {
    simulation.get_mut("Node").unwrap()["status"]["conditions"] =
        json!([{ "type": "Ready", "status": status }]);
}

#[test]
fn the_time_without_a_ready_node_is_late_and_not_active() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    set_node_ready(&mut simulation, "False");
    simulation.run_until(&mut memory, "2026-03-06T14:00:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    set_node_ready(&mut simulation, "True");
    simulation.run_until(&mut memory, "2026-03-06T15:00:00Z");
    let march = march(&simulation);
    assert_eq!(march.wanted_seconds, seconds(OPENS, "2026-03-06T15:00:00Z"));
    assert_eq!(march.late_seconds, seconds(NOON, "2026-03-06T14:00:00Z"));
    assert_eq!(
        march.active_seconds,
        march.wanted_seconds - march.late_seconds
    );
    // Its host is still in use.
    assert_eq!(march.provisioning_seconds, march.late_seconds);
}

#[test]
fn a_node_that_is_not_ready_is_late_while_the_machine_is_paused_or_shut_down() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    simulation.settle(&mut memory);
    set_node_ready(&mut simulation, "False");
    simulation.run_until(&mut memory, "2026-03-06T13:00:00Z");
    assert_eq!(march(&simulation).late_seconds, 3_600);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    set_node_ready(&mut simulation, "True");
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at(EVENING));
    simulation.run_until(&mut memory, "2026-03-06T18:01:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::ShuttingDown));
    set_node_ready(&mut simulation, "Unknown");
    simulation.settle(&mut memory);
    let state = simulation.status().usage.unwrap().accounted_state;
    assert_eq!(state, Some(AccountedState::Provisioning));
}

#[test]
fn a_machine_for_which_nothing_was_created_is_late_and_costs_nothing() {
    let (mut simulation, mut memory) = before_the_window();
    let key = ("Cluster".to_owned(), "prod".to_owned());
    simulation.objects.remove(&key);
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.status().phase, Some(Phase::Pending));
    let march = march(&simulation);
    assert_eq!(march.provisioning_seconds, 0);
    assert_eq!(march.active_seconds, 0);
    assert_eq!(march.late_seconds, seconds(OPENS, NOON));
}

#[test]
fn provisioning_begins_with_the_first_object_that_exists() {
    let (mut simulation, mut memory) = before_the_window();
    simulation.failing = Some((
        fivespot_plan::Step::CreateInfrastructure,
        fivespot_plan::Cause::Rejected,
    ));
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.status().phase, Some(Phase::Error));
    assert_eq!(simulation.kinds(), ["K0sWorkerConfig"]);
    assert_eq!(
        march(&simulation).provisioning_seconds,
        seconds(OPENS, NOON)
    );
}

#[test]
fn while_the_objects_cannot_be_read_the_time_counts_as_before() {
    let mut memory = Memory::default();
    let simulation = in_service(Contract::V1Beta2, &mut memory);
    let mut observed = simulation.observed();
    let message = "try again".to_owned();
    observed.machine = Fact::Unknown(Unknown::Failed { message });
    let next = plan(
        simulation.sm(),
        &observed,
        &memory,
        at("2026-03-06T13:00:00Z"),
    );
    let status = next.status.unwrap();
    assert_eq!(status.phase, Some(Phase::Error));
    let state = status.usage.unwrap().accounted_state;
    assert_eq!(state, Some(AccountedState::Active));
}

#[test]
fn the_time_of_the_kill_switch_is_not_wanted() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.run_until(&mut memory, "2026-03-06T14:00:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Terminated));
    simulation.edit(|sm| sm.spec.kill_switch = false);
    simulation.run_until(&mut memory, "2026-03-06T15:00:00Z");
    let march = march(&simulation);
    let killed = seconds(NOON, "2026-03-06T14:00:00Z");
    let open = seconds(OPENS, "2026-03-06T15:00:00Z");
    assert_eq!(march.wanted_seconds, open - killed);
    assert_eq!(march.late_seconds, 0);
}

#[test]
fn the_time_in_which_an_override_holds_a_machine_off_is_not_wanted() {
    let (mut simulation, mut memory) = before_the_window();
    let held_until = "2026-03-06T11:00:00Z";
    simulation.schedule.overrides =
        vec![overriding(OverrideMode::Hold, None, held_until)];
    simulation.run_until(&mut memory, "2026-03-06T10:00:00Z");
    assert_eq!(march(&simulation).wanted_seconds, 0);
    // A reader that adds the open span knows the end of the hold.
    let schedule = Schedule::weekly(&["mon-fri"], &["9-17"], "UTC").unwrap();
    let read = usage_until(&simulation.status(), Some(&schedule), at(NOON));
    assert_eq!(read.months[0].wanted_seconds, seconds(held_until, NOON));
    simulation.run_until(&mut memory, NOON);
    let march = march(&simulation);
    assert_eq!(march.wanted_seconds, seconds(held_until, NOON));
    assert_eq!(march.late_seconds, 0);
}

#[test]
fn a_machine_that_an_override_keeps_in_its_window_is_wanted() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.schedule.overrides = vec![overriding(OverrideMode::Hold, None, EVENING)];
    simulation.run_until(&mut memory, EVENING);
    let march = march(&simulation);
    assert_eq!(march.wanted_seconds, seconds(OPENS, CLOSES));
    assert_eq!(march.active_seconds, seconds(OPENS, EVENING));
}

#[test]
fn a_disabled_machine_is_accounted_as_active_while_its_node_is_ready() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let state =
        |simulation: &Simulation| simulation.status().usage.unwrap().accounted_state;
    simulation.edit(|sm| sm.spec.schedule.enabled = false);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Disabled));
    assert_eq!(state(&simulation), Some(AccountedState::Active));
    simulation.delete(&("Machine".to_owned(), "worker".to_owned()), None);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Disabled));
    assert_eq!(state(&simulation), Some(AccountedState::None));
}

#[test]
fn usage_is_accounted_by_month_with_each_change_of_the_state() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2026-03-06T18:02:00Z"));
    simulation.run_until(&mut memory, EVENING);
    let usage = simulation.status().usage.unwrap();
    let [march] = &usage.months[..] else {
        panic!("{usage:#?}");
    };
    assert_eq!(march.month, "2026-03");
    assert_eq!(march.wanted_seconds, 9 * 3_600);
    let came_up = march.provisioning_seconds;
    let left = simulation.phases.windows(2).find_map(|two| {
        let is_shutdown = two[0].1 == Phase::ShuttingDown;
        is_shutdown.then(|| two[1].0.duration_since(two[0].0).as_secs())
    });
    let left = left.unwrap();
    assert!(left > 0, "the pod and the Machine take their time");
    assert_eq!(march.active_seconds, 9 * 3_600 - came_up + left);
    assert_eq!(march.late_seconds, came_up);
    assert_eq!(usage.accounted_state, Some(AccountedState::None));

    let end = "2026-04-01T10:00:00Z";
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, "2026-03-31T20:00:00Z"),
        Memory::default(),
    );
    let all = vec![overriding(OverrideMode::Run, None, "2026-04-01T02:00:00Z")];
    simulation.schedule.overrides = all;
    simulation.run_until(&mut memory, end);
    let months = simulation.status().usage.unwrap().months;
    let wanted: Vec<_> = months.iter().map(|of| of.wanted_seconds).collect();
    assert_eq!(wanted[0], 4 * 3_600, "the end of March");
    assert!(wanted[1] >= 2 * 3_600, "{wanted:?}");
}

/// The account of March up to the clock of the simulation.
fn march(simulation: &Simulation) -> UsageMonth {
    let usage = usage_until(&simulation.status(), None, simulation.now);
    usage.months.into_iter().next().unwrap()
}

#[test]
fn a_stopped_window_is_not_accounted_as_wanted_once_the_override_is_gone() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    let stop = overriding(OverrideMode::Stop, Some("2026-03-06T07:30:00Z"), EVENING);
    simulation.schedule.overrides = vec![stop];
    simulation.run_until(&mut memory, "2026-03-06T17:00:00Z");
    // It is ended early, so that an hour of the window is left.
    simulation.schedule.overrides.clear();
    simulation.run_until(&mut memory, "2026-03-08T00:00:00Z");
    let march = march(&simulation);
    assert_eq!(march.wanted_seconds, 3_600);
    assert_eq!(march.active_seconds + march.late_seconds, 3_600);
}

#[test]
fn the_time_before_an_override_was_created_is_accounted_as_it_was() {
    let (mut simulation, mut memory) = (
        Simulation::new(Contract::V1Beta2, BEFORE),
        Memory::default(),
    );
    simulation.run_until(&mut memory, "2026-03-06T08:20:00Z");
    let created = at("2026-03-06T08:30:00Z");
    // It had ended before it was observed.
    let mut hold = overriding(OverrideMode::Hold, None, "2026-03-06T08:25:00Z");
    hold.created = Some(at("2026-03-06T08:24:00Z"));
    let mut run = overriding(OverrideMode::Run, None, "2026-03-06T12:00:00Z");
    run.name = "now".to_owned();
    run.created = Some(created);
    simulation.schedule.overrides = vec![hold];
    simulation.now = created;
    simulation.schedule.overrides.push(run);
    simulation.run_until(&mut memory, "2026-03-06T10:00:00Z");
    let usage = usage_until(&simulation.status(), None, simulation.now);
    assert_eq!(usage.months[0].wanted_seconds, 90 * 60);
}

#[test]
fn the_time_before_the_schedule_was_disabled_is_accounted_as_wanted() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let disabled_at = simulation.now;
    simulation.edit(|sm| sm.spec.schedule.enabled = false);
    simulation.run_until(&mut memory, EVENING);
    let since = simulation.status().usage.unwrap().start_time.unwrap();
    let opened = at(OPENS).max(since);
    let wanted = disabled_at.duration_since(opened).as_secs();
    assert!(wanted > 0);
    assert_eq!(march(&simulation).wanted_seconds, wanted);
}

#[test]
fn the_time_before_the_schedule_was_enabled_again_is_not_wanted() {
    let (mut simulation, mut memory) = before_the_window();
    simulation.edit(|sm| sm.spec.schedule.enabled = false);
    simulation.run_until(&mut memory, "2026-03-06T15:00:00Z");
    simulation.edit(|sm| sm.spec.schedule.enabled = true);
    simulation.run_until(&mut memory, "2026-03-06T16:00:00Z");
    assert_eq!(march(&simulation).wanted_seconds, 3_600);
}

#[test]
fn a_node_that_is_gone_is_not_active_although_the_machine_still_says_that_it_is_ready() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at(EVENING));
    simulation.run_until(&mut memory, "2026-03-06T18:01:00Z");
    let machine = simulation.get_mut("Machine").unwrap();
    machine["metadata"]["deletionTimestamp"] = json!("2026-03-06T18:01:00Z");
    machine["status"]["conditions"] =
        json!([{ "type": "NodeReady", "status": "True", "reason": "NodeReady" }]);
    simulation.objects.retain(|(kind, _), _| kind != "Node");
    simulation.reconcile(&mut memory);
    let state = simulation.status().usage.unwrap().accounted_state;
    assert_eq!(state, Some(AccountedState::Provisioning));
}

#[test]
fn a_node_that_is_not_found_is_ready_if_cluster_api_says_so_and_is_not_paused() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Machine").unwrap()["status"]["conditions"] =
        json!([{ "type": "NodeReady", "status": "True", "reason": "NodeReady" }]);
    simulation.objects.retain(|(kind, _), _| kind != "Node");
    for (is_paused, expected) in [
        (false, AccountedState::Active),
        (true, AccountedState::Provisioning),
    ] {
        simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(is_paused);
        simulation.reconcile(&mut memory);
        let state = simulation.status().usage.unwrap().accounted_state;
        assert_eq!(state, Some(expected), "{is_paused}");
    }
}

#[test]
fn a_node_that_was_gone_is_not_active_again_when_it_can_no_longer_be_read() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let machine = simulation.get_mut("Machine").unwrap();
    machine["metadata"]["deletionTimestamp"] = json!("2026-03-06T12:00:00Z");
    machine["status"]["conditions"] =
        json!([{ "type": "NodeReady", "status": "True", "reason": "NodeReady" }]);
    let message = "no route to host".to_owned();
    let unreachable = Access::Unreachable { message };
    let state = |simulation: &Simulation| {
        let usage = simulation.status().usage;
        usage.unwrap().accounted_state
    };
    simulation.access = unreachable.clone();
    simulation.reconcile(&mut memory);
    assert_eq!(state(&simulation), Some(AccountedState::Active));
    simulation.access = Access::Connected;
    simulation.objects.retain(|(kind, _), _| kind != "Node");
    simulation.reconcile(&mut memory);
    assert_eq!(state(&simulation), Some(AccountedState::Provisioning));
    simulation.access = unreachable.clone();
    simulation.reconcile(&mut memory);
    assert_eq!(state(&simulation), Some(AccountedState::Provisioning));
}
