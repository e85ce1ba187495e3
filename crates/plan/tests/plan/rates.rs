//! Machines of a class that says how many begin and leave in a minute, and how many stay.

use std::sync::Arc;

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{LimitsOfClass, Phase, RatesOfClass, ResolvedClass, ShutdownReason};
use fivespot_capi::Contract;
use fivespot_plan::limits::{Limit, Turn};
use fivespot_plan::rates::{Pace, Rate, Stage, Wish};
use fivespot_plan::{Memory, rates_claim};
use fivespot_schedule::{Override, OverrideMode};
use jiff::SignedDuration;

use crate::simulation::{BEFORE, EVENING, NOON, OPENS, Simulation, at, in_service};

const FREE: Option<Pace> = Some(Pace::Free);

const KEPT: Option<Pace> = Some(Pace::Wait {
    rate: Rate::MinimumActive,
    again: None,
});

fn wait(rate: Rate, again: &str) -> Pace {
    let again = Some(at(again));
    Pace::Wait { rate, again }
}

fn set_rates(simulation: &mut Simulation) {
    simulation.edit(|machine| {
        machine.spec.class = Some(ResolvedClass {
            name: "desks".to_owned(),
            rates: RatesOfClass {
                starts: Some(10),
                stops: Some(5),
                minimum_active: 3,
            },
            ..ResolvedClass::default()
        });
    });
}

/// A machine of a class with rates, before its window.
fn before() -> Simulation {
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    set_rates(&mut simulation);
    simulation
}

/// A machine of a class with rates that serves, in the evening, with this answer.
fn after_its_window(pace: Option<Pace>) -> (Simulation, Memory) {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    set_rates(&mut simulation);
    memory.give_pace(pace);
    simulation.run_until(&mut memory, EVENING);
    (simulation, memory)
}

fn ready(simulation: &Simulation) -> String {
    let conditions = simulation.status().conditions;
    let found = condition::find(&conditions, ConditionType::Ready).unwrap();
    format!("{} {}: {}", found.status, found.reason, found.message)
}

fn stage_and_wish(simulation: &Simulation) -> (Stage, Wish) {
    let now = simulation.now;
    let claim = rates_claim(simulation.sm(), &simulation.observed(), now, None).unwrap();
    (claim.stage, claim.wish(now))
}

fn overridden(simulation: &mut Simulation, mode: OverrideMode, until: &str) {
    simulation.schedule.overrides = vec![Override {
        name: "now".to_owned(),
        mode,
        start: Some(simulation.now),
        end: at(until),
        created: None,
    }];
}

#[test]
fn a_machine_that_may_not_begin_yet_is_pending_and_says_when_it_may() {
    let mut simulation = before();
    let mut memory = Memory::default();
    memory.give_pace(Some(wait(Rate::Starts, "2026-03-06T12:00:30Z")));
    simulation.run_until(&mut memory, NOON);
    assert_eq!(stage_and_wish(&simulation), (Stage::Absent, Wish::Start));
    assert_eq!(simulation.status().phase, Some(Phase::Pending));
    assert_eq!(
        ready(&simulation),
        "False LimitReached: startsPerMinute 10 of ScheduledMachineClass desks is reached; the \
         machine may be made from 2026-03-06T12:00:30Z on"
    );
    let plan = simulation.settle(&mut memory);
    assert_eq!(plan.requeue_at, Some(at("2026-03-06T12:00:30Z")));
    assert_eq!(simulation.count("CreateBootstrap"), 0);
    memory.give_pace(FREE);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(stage_and_wish(&simulation), (Stage::Active, Wish::Stay));
}

#[test]
fn a_time_that_is_far_ahead_is_announced_by_the_minute_so_that_no_status_follows_seconds()
{
    let mut simulation = before();
    let mut memory = Memory::default();
    memory.give_pace(Some(wait(Rate::Starts, "2026-03-06T12:30:01Z")));
    simulation.run_until(&mut memory, NOON);
    assert!(ready(&simulation).ends_with("from 2026-03-06T12:30:00Z on"));
    let writes = simulation.log.len();
    memory.give_pace(Some(wait(Rate::Starts, "2026-03-06T12:30:09Z")));
    let plan = simulation.settle(&mut memory);
    assert_eq!(simulation.log.len(), writes);
    assert_eq!(plan.requeue_at, Some(at("2026-03-06T12:30:09Z")), "exactly");
}

#[test]
fn nothing_begins_before_it_is_known_whether_it_may_and_after_a_restart_the_message_stays()
 {
    let mut simulation = before();
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, OPENS);
    assert_eq!(simulation.count("CreateBootstrap"), 0);
    assert!(ready(&simulation).ends_with("which machines begin is not known yet"));
    memory.give_pace(Some(wait(Rate::Starts, NOON)));
    simulation.settle(&mut memory);
    let known = ready(&simulation);
    let writes = simulation.log.len();
    simulation.settle(&mut Memory::default());
    assert_eq!(ready(&simulation), known);
    assert_eq!(simulation.log.len(), writes, "no write after a restart");
}

#[test]
fn one_that_a_limit_refuses_takes_no_turn_from_one_that_may_begin() {
    let mut simulation = before();
    simulation.edit(|machine| {
        let class = machine.spec.class.as_mut().unwrap();
        class.limits = Some(Arc::new(LimitsOfClass {
            machines: Some(1),
            hours: None,
            max_override: None,
            timezone: "UTC".to_owned(),
        }));
    });
    simulation.run_until(&mut Memory::default(), NOON);
    let stage = |turn| {
        let (object, observed) = (simulation.sm(), simulation.observed());
        let claim = rates_claim(object, &observed, simulation.now, turn);
        claim.unwrap().stage
    };
    assert_eq!(stage(Some(Turn::Open)), Stage::Absent);
    let (limit, again) = (Limit::Machines, None);
    assert_eq!(stage(Some(Turn::Wait { limit, again })), Stage::Aside);
    assert_eq!(stage(None), Stage::Aside);
}

#[test]
fn a_run_override_waits_for_its_turn_too() {
    let mut simulation = Simulation::new(Contract::V1Beta2, EVENING);
    set_rates(&mut simulation);
    overridden(&mut simulation, OverrideMode::Run, "2026-03-06T23:00:00Z");
    let mut memory = Memory::default();
    memory.give_pace(Some(wait(Rate::Starts, "2026-03-06T22:30:00Z")));
    simulation.settle(&mut memory);
    assert!(ready(&simulation).starts_with("False LimitReached: startsPerMinute"));
}

#[test]
fn a_machine_that_is_kept_stays_in_service_and_says_why() {
    let (mut simulation, mut memory) = after_its_window(KEPT);
    assert_eq!(stage_and_wish(&simulation), (Stage::Active, Wish::Stop));
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    let expected = "; kept: minimumActive 3 of ScheduledMachineClass desks";
    let message = ready(&simulation);
    assert!(message.starts_with("True MachineRunning: ") && message.ends_with(expected));
    // Another operator does not know yet.
    let writes = simulation.log.len();
    simulation.settle(&mut Memory::default());
    assert_eq!(ready(&simulation), message);
    assert_eq!(simulation.log.len(), writes, "no write after a restart");
    memory.give_pace(Some(wait(Rate::Stops, "2026-03-06T20:00:40Z")));
    let later = "; leaves from 2026-03-06T20:00:40Z on: stopsPerMinute 5 of \
                 ScheduledMachineClass desks";
    simulation.settle(&mut memory);
    let message = ready(&simulation);
    assert!(message.ends_with(later), "{message}");
    memory.give_pace(FREE);
    let left_at = simulation.now;
    simulation.settle(&mut memory);
    let status = simulation.status();
    assert_eq!(status.last_shutdown_time, Some(left_at));
    assert_eq!(stage_and_wish(&simulation).1, Wish::Nothing);
}

#[test]
fn before_it_is_known_whether_it_may_leave_a_machine_stays() {
    let (simulation, _) = after_its_window(None);
    let message = ready(&simulation);
    let expected = "; leaves when stopsPerMinute and minimumActive of ScheduledMachineClass \
                    desks lets it";
    assert!(message.ends_with(expected), "{message}");
    assert_eq!(simulation.count("DeleteMachine"), 0);
}

#[test]
fn a_stop_override_a_kill_switch_and_a_deletion_are_never_held() {
    type Change = fn(&mut Simulation);
    let all: [Change; 3] = [
        |simulation| {
            overridden(simulation, OverrideMode::Stop, "2026-03-06T23:59:00Z");
        },
        |simulation| simulation.edit(|machine| machine.spec.kill_switch = true),
        Simulation::delete_sm,
    ];
    for change in all {
        let (mut simulation, mut memory) = after_its_window(KEPT);
        assert_eq!(simulation.count("DeleteMachine"), 0);
        change(&mut simulation);
        assert_eq!(stage_and_wish(&simulation).1, Wish::Nothing);
        let end = simulation.now + SignedDuration::from_mins(10);
        simulation.run_until(&mut memory, &end.to_string());
        assert_eq!(simulation.count("DeleteMachine"), 1);
        assert_eq!(simulation.kinds(), [""; 0]);
    }
}

#[test]
fn what_leaves_does_not_come_back_when_its_class_would_keep_it() {
    let (mut simulation, mut memory) = after_its_window(FREE);
    memory.give_pace(KEPT);
    simulation.settle(&mut memory);
    let shutdown = simulation.status().shutdown.map(|of| of.reason);
    assert!(matches!(
        shutdown,
        None | Some(ShutdownReason::ScheduleEnded)
    ));
    assert_ne!(simulation.status().phase, Some(Phase::Active));
}

#[test]
fn a_machine_that_cannot_be_made_or_whose_schedule_is_disabled_does_not_wait() {
    let mut simulation = before();
    simulation.run_until(&mut Memory::default(), NOON);
    assert_eq!(stage_and_wish(&simulation).1, Wish::Start);
    simulation.edit(|machine| machine.spec.cluster_name = "other".to_owned());
    assert_eq!(stage_and_wish(&simulation), (Stage::Aside, Wish::Nothing));
    let (mut simulation, _) = after_its_window(KEPT);
    simulation.edit(|machine| machine.spec.schedule.enabled = false);
    assert_eq!(stage_and_wish(&simulation), (Stage::Fixed, Wish::Stay));
}
