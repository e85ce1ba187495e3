//! Machines of a class that limits how many are needed.

use std::sync::Arc;

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{LimitsOfClass, Phase, ResolvedClass};
use fivespot_capi::Contract;
use fivespot_plan::limits::{Limit, Turn};
use fivespot_plan::{Memory, claim};
use fivespot_schedule::{Override, OverrideMode};
use jiff::{SignedDuration, Timestamp};

use crate::simulation::{
    BEFORE, CLOSES, EVENING, MONDAY, NOON, OPENS, Simulation, at, in_service,
};

const OPEN: Option<Turn> = Some(Turn::Open);

fn set_limits(simulation: &mut Simulation, limits: Option<LimitsOfClass>) {
    simulation.edit(|machine| {
        machine.spec.class = Some(ResolvedClass {
            name: "desks".to_owned(),
            limits: limits.map(Arc::new),
            ..ResolvedClass::default()
        });
    });
}

fn limits() -> LimitsOfClass {
    LimitsOfClass {
        machines: Some(2),
        hours: Some(40),
        max_override: Some(SignedDuration::from_hours(2)),
        timezone: "UTC".to_owned(),
    }
}

/// A machine of a class with limits, before its window.
fn before() -> Simulation {
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    set_limits(&mut simulation, Some(limits()));
    simulation
}

fn wait(limit: Limit, again: Option<&str>) -> Turn {
    let again = again.map(at);
    Turn::Wait { limit, again }
}

fn ready(simulation: &Simulation) -> String {
    let conditions = simulation.status().conditions;
    let found = condition::find(&conditions, ConditionType::Ready).unwrap();
    format!("{} {}: {}", found.status, found.reason, found.message)
}

/// When the machine is needed next, according to its claim.
fn spans(simulation: &Simulation) -> Vec<(Timestamp, Option<Timestamp>)> {
    let now = simulation.now;
    let claim = claim(simulation.sm(), &simulation.observed(), now).unwrap();
    let spans = claim.spans.iter();
    spans.map(|span| (span.start, span.end)).collect()
}

fn holds(simulation: &Simulation) -> bool {
    let observed = simulation.observed();
    claim(simulation.sm(), &observed, simulation.now)
        .unwrap()
        .holds
}

#[test]
fn a_machine_whose_turn_has_not_come_is_pending_and_says_when_it_may_be_made() {
    let mut simulation = before();
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    for (turn, expected) in [
        (
            Some(wait(Limit::Machines, Some(CLOSES))),
            "False LimitReached: limits.machinesPerNamespace of ScheduledMachineClass desks is \
             reached, 2; the machine may be made from 2026-03-06T18:00:00Z on",
        ),
        (
            Some(wait(Limit::Machines, None)),
            "False LimitReached: limits.machinesPerNamespace of ScheduledMachineClass desks is \
             reached, 2; the machine is made when its turn comes",
        ),
        (
            Some(wait(Limit::Hours, Some("2026-03-06T15:00:00Z"))),
            "False LimitReached: limits.hoursPerWeekPerNamespace of ScheduledMachineClass desks, \
             40, does not suffice for the window; the machine may be made from \
             2026-03-06T15:00:00Z on",
        ),
    ] {
        memory.give_turn(turn);
        simulation.pause(60);
        simulation.settle(&mut memory);
        assert_eq!(simulation.status().phase, Some(Phase::Pending));
        assert_eq!(ready(&simulation), expected);
    }
    let plan = simulation.settle(&mut memory);
    assert_eq!(plan.requeue_at, Some(at("2026-03-06T15:00:00Z")));
    assert_eq!(simulation.count("CreateBootstrap"), 0);
    assert_eq!(simulation.status().weekly_use, None, "it uses nothing");
    memory.give_turn(OPEN);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

#[test]
fn nothing_is_made_before_the_turn_is_known_and_after_a_restart_the_reason_stays() {
    let mut simulation = before();
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.count("CreateBootstrap"), 0);
    let unknown = "False LimitReached: which machines of ScheduledMachineClass desks are needed is \
                   not known yet";
    assert_eq!(ready(&simulation), unknown);
    memory.give_turn(Some(wait(Limit::Machines, None)));
    simulation.settle(&mut memory);
    let known = ready(&simulation);
    assert_ne!(known, unknown);
    let writes = simulation.log.len();
    simulation.settle(&mut Memory::default());
    assert_eq!(ready(&simulation), known);
    assert_eq!(simulation.log.len(), writes, "no write after a restart");
}

#[test]
fn what_runs_is_never_stopped_by_a_limit() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    set_limits(
        &mut simulation,
        Some(LimitsOfClass {
            machines: Some(0),
            ..limits()
        }),
    );
    assert!(holds(&simulation));
    memory.give_turn(Some(wait(Limit::Machines, None)));
    simulation.run_until(&mut memory, "2026-03-06T17:00:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    let used = simulation.status().weekly_use.unwrap();
    assert_eq!(used.since, Some(at(NOON)), "it counts from now on");
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
}

#[test]
fn the_week_of_a_machine_is_recorded_at_the_edges_of_its_need_only() {
    let mut simulation = before();
    let mut memory = Memory::default();
    memory.give_turn(OPEN);
    simulation.run_until(&mut memory, NOON);
    let open = simulation.status().weekly_use.unwrap();
    assert_eq!((open.seconds, open.since), (0, Some(at(OPENS))));
    simulation.run_until(&mut memory, EVENING);
    let closed = simulation.status().weekly_use.unwrap();
    assert_eq!((closed.seconds, closed.since), (9 * 3_600, None));
    assert_eq!(closed.week_start, at("2026-03-02T00:00:00Z"));
    simulation.run_until(&mut memory, "2026-03-09T12:00:00Z");
    let next = simulation.status().weekly_use.unwrap();
    assert_eq!((next.seconds, next.since), (0, Some(at(MONDAY))));
    set_limits(&mut simulation, None);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().weekly_use, None);
}

#[test]
fn a_claim_says_when_the_machine_is_needed_next_and_after_that() {
    let mut simulation = before();
    let friday = (at(OPENS), Some(at(CLOSES)));
    let monday = (at(MONDAY), Some(at("2026-03-09T18:00:00Z")));
    assert_eq!(spans(&simulation), [friday, monday]);
    assert!(!holds(&simulation));
    simulation.edit(|machine| machine.spec.provisioning.minimum_run = "10h".to_owned());
    assert_eq!(spans(&simulation), [], "a machine is made for no window");
    simulation.edit(|machine| machine.spec.provisioning.minimum_run = "0s".to_owned());
    simulation.schedule.overrides = vec![override_of(OverrideMode::Hold, 7)];
    assert_eq!(spans(&simulation)[0].0, at("2026-03-06T15:00:00Z"));
    simulation.schedule.overrides.clear();
    simulation.edit(|machine| machine.spec.kill_switch = true);
    assert_eq!(spans(&simulation), []);
    simulation.edit(|machine| machine.spec.kill_switch = false);
    assert_eq!(spans(&simulation), [friday, monday]);
    simulation.edit(|machine| machine.spec.enabled = Some(false));
    assert_eq!(spans(&simulation), []);
}

/// An override of the machine, created at 8:00, for some hours.
fn override_of(mode: OverrideMode, hours: i64) -> Override {
    Override {
        name: "longer".to_owned(),
        mode,
        start: None,
        end: at(BEFORE) + SignedDuration::from_hours(hours),
        created: Some(at(BEFORE)),
    }
}

#[test]
fn an_override_that_is_longer_than_the_class_allows_makes_no_machine_run() {
    for (mode, hours, runs) in [
        (OverrideMode::Run, 2, true),
        (OverrideMode::Run, 3, false),
        (OverrideMode::Stop, 300, false),
    ] {
        let mut simulation = before();
        simulation.schedule.overrides = vec![override_of(mode, hours)];
        let mut memory = Memory::default();
        memory.give_turn(OPEN);
        simulation.run_until(&mut memory, "2026-03-06T08:30:00Z");
        let phase = simulation.status().phase;
        assert_eq!(phase == Some(Phase::Active), runs, "{mode:?} {hours}");
        simulation.run_until(&mut memory, NOON);
        let is_stopped = mode == OverrideMode::Stop;
        let phase = simulation.status().phase;
        assert_eq!(phase == Some(Phase::Active), !is_stopped, "{mode:?}");
    }
}

#[test]
fn without_its_time_zone_a_class_that_limits_hours_makes_nothing() {
    let mut simulation = before();
    let timezone = "Mars/Olympus".to_owned();
    set_limits(
        &mut simulation,
        Some(LimitsOfClass {
            timezone,
            ..limits()
        }),
    );
    let mut memory = Memory::default();
    memory.give_turn(OPEN);
    simulation.run_until(&mut memory, NOON);
    assert_eq!(
        ready(&simulation),
        "False UnknownTimeZone: ScheduledMachineClass desks: spec.timezone: there is no time zone \
         Mars/Olympus"
    );
}
