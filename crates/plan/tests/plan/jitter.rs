//! Machines of a class with a jitter.

use std::collections::BTreeSet;

use fivespot_api::{EndPolicy, Phase, ResolvedClass, ScheduleSpec};
use fivespot_capi::Contract;
use fivespot_plan::{Delayed, Memory};
use fivespot_schedule::{Override, OverrideMode};
use jiff::{SignedDuration, Timestamp};

use crate::simulation::{
    BEFORE, CLOSES, EVENING, NOON, OPENS, Simulation, at, in_service,
};

fn set_jitter(simulation: &mut Simulation) {
    simulation.edit(|machine| {
        machine.spec.class = Some(ResolvedClass {
            name: "desks".to_owned(),
            jitter: SignedDuration::from_mins(30),
            ..ResolvedClass::default()
        });
    });
}

/// A machine with this uid of a class with a jitter of half an hour, before its window.
fn before(uid: &str) -> Simulation {
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    simulation.edit(|machine| machine.metadata.uid = Some(uid.to_owned()));
    set_jitter(&mut simulation);
    simulation
}

/// By how much the machine begins later.
fn delay(simulation: &mut Simulation) -> SignedDuration {
    simulation.settle(&mut Memory::default());
    let begins = simulation.status().next_activation.unwrap();
    begins.duration_since(at(OPENS))
}

fn since(begin: &str, instant: Timestamp) -> SignedDuration {
    instant.duration_since(at(begin))
}

#[test]
fn a_machine_begins_and_leaves_later_by_the_same_fixed_part() {
    let mut delays = BTreeSet::new();
    for number in 0..20 {
        let mut simulation = before(&format!("uid-{number}"));
        let delay = delay(&mut simulation);
        assert!(!delay.is_negative() && delay <= SignedDuration::from_mins(30));
        delays.insert(delay);
        let mut memory = Memory::default();
        simulation.run_until(&mut memory, EVENING);
        assert_eq!(since(OPENS, simulation.first("CreateBootstrap")), delay);
        let left = since(CLOSES, simulation.first("DeleteMachine"));
        assert!(left >= delay && left < delay + SignedDuration::from_mins(6));
        assert_eq!(simulation.status().phase, Some(Phase::Inactive));
    }
    assert!(delays.len() > 15, "{delays:?}");
}

#[test]
fn one_that_must_be_gone_by_the_end_of_its_window_is() {
    let mut simulation = before("uid-1");
    simulation.edit(|machine| {
        machine.spec.shutdown.end_policy = EndPolicy::CompleteByWindowEnd;
    });
    let delay = delay(&mut simulation);
    assert!(delay.is_positive());
    simulation.run_until(&mut Memory::default(), CLOSES);
    assert_eq!(since(OPENS, simulation.first("CreateBootstrap")), delay);
    assert!(simulation.first("DeleteMachine") <= at(CLOSES));
}

#[test]
fn one_that_must_be_gone_waits_its_delay_for_each_of_two_windows_that_are_close() {
    // With a jitter of half an hour it has all of it.
    let mut simulation = before("uid-3026");
    simulation.edit(|machine| {
        machine.spec.shutdown.end_policy = EndPolicy::CompleteByWindowEnd;
        machine.spec.schedule.hours_of_day = vec!["9".to_owned(), "11".to_owned()];
        machine.spec.provisioning.lead_time = "50m".to_owned();
    });
    let mut memory = Memory::default();
    // The second one begins at 10:10 for a machine without jitter, and the first one lasted until
    // less than half an hour before.
    simulation.run_until(&mut memory, "2026-03-06T10:15:00Z");
    assert_eq!(simulation.count("CreateBootstrap"), 1);
    simulation.run_until(&mut memory, "2026-03-06T10:39:59Z");
    assert_eq!(simulation.count("CreateBootstrap"), 1);
    simulation.run_until(&mut memory, "2026-03-06T10:41:00Z");
    assert_eq!(simulation.count("CreateBootstrap"), 2);
}

#[test]
fn what_runs_goes_on_when_a_jitter_is_set() {
    let mut memory = Memory::default();
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    simulation.run_until(&mut memory, "2026-03-06T09:00:30Z");
    assert!(simulation.get("Machine").is_some());
    set_jitter(&mut simulation);
    simulation.run_until(&mut memory, NOON);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(simulation.count("DeleteMachine"), 0);
}

#[test]
fn an_override_and_the_kill_switch_are_not_delayed() {
    let of = |mode, hours| Override {
        name: "now".to_owned(),
        mode,
        start: Some(at(NOON)),
        end: at(NOON) + SignedDuration::from_hours(hours),
        created: None,
    };
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    set_jitter(&mut simulation);
    simulation.schedule.overrides = vec![of(OverrideMode::Stop, 1)];
    simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
    simulation.run_until(&mut memory, "2026-03-06T13:01:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    simulation.edit(|machine| machine.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert_eq!(simulation.kinds(), [""; 0]);
}

#[test]
fn each_need_of_a_week_is_delayed() {
    let schedule = serde_json::json!({
        "daysOfWeek": ["mon-wed"], "hoursOfDay": ["9-17"], "timezone": "UTC",
    });
    let schedule: ScheduleSpec = serde_json::from_value(schedule).unwrap();
    let schedule = schedule.schedule().unwrap();
    let delayed = Delayed {
        schedule: &schedule,
        delay: SignedDuration::from_mins(7),
        keeps_end: false,
        exists: false,
    };
    let (monday, sunday) = ("2026-03-02T00:00:00Z", "2026-03-08T00:00:00Z");
    let spans = delayed.needed_spans(at(monday), at(sunday));
    let spans: Vec<_> = spans.map(|span| (span.start, span.end)).collect();
    let of = |day: u8| {
        let hour = |hour| at(&format!("2026-03-0{day}T{hour}:07:00Z"));
        (hour("09"), Some(hour("18")))
    };
    assert_eq!(spans, [of(2), of(3), of(4)]);
}
