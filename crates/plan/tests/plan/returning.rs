//! Return: a reclaimed machine comes back once its host has been free for a while.

use fivespot_api::condition::ConditionType;
use fivespot_api::{Phase, name};
use fivespot_capi::Contract;
use fivespot_plan::{Cause, Memory, Step};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::reclaiming::{condition_text, request};
use crate::simulation::{NOON, Simulation, at, in_service};

/// A machine in service that returns when its host has been free for so long, so often a day.
fn returning(after: &str, max_per_day: u8, memory: &mut Memory) -> Simulation {
    let mut simulation = in_service(Contract::V1Beta2, memory);
    simulation.reclaim_override = Some(SignedDuration::from_hours(5));
    simulation.edit(|sm| {
        let reclaim = json!({"return": {"after": after, "maxPerDay": max_per_day}});
        sm.spec.reclaim = Some(serde_json::from_value(reclaim).unwrap());
    });
    simulation.settle(memory);
    simulation
}

/// The same whose host was reclaimed at noon.
fn reclaimed(after: &str, max_per_day: u8, memory: &mut Memory) -> Simulation {
    let mut simulation = returning(after, max_per_day, memory);
    reclaim(&mut simulation, memory);
    simulation
}

fn reclaim(simulation: &mut Simulation, memory: &mut Memory) {
    request(simulation);
    simulation.settle(memory);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
}

/// The host's report; `None` while a signal stands.
fn report(simulation: &mut Simulation, free: Option<(Timestamp, Timestamp)>) {
    simulation.edit(|sm| {
        sm.metadata.generation = sm.metadata.generation.map(|before| before - 1);
        let all = sm.metadata.annotations.get_or_insert_default();
        match free {
            Some((since, confirmed)) => {
                let text = format!("{since} {confirmed}");
                all.insert(name::HOST_FREE_ANNOTATION.to_owned(), text);
            }
            None => {
                all.remove(name::HOST_FREE_ANNOTATION);
            }
        }
    });
}

fn report_at(simulation: &mut Simulation, since: &str, confirmed: &str) {
    report(simulation, Some((at(since), at(confirmed))));
}

fn returns(simulation: &Simulation) -> usize {
    simulation.count("EndOverride")
}

#[test]
fn a_machine_returns_once_its_host_has_been_free_for_long_enough() {
    let mut memory = Memory::default();
    let mut simulation = reclaimed("30m", 4, &mut memory);
    assert!(simulation.sm().spec.schedule.enabled);
    let text = condition_text(&simulation, ConditionType::Scheduled);
    assert!(
        text.ends_with("; it returns before that if its host reports that it is free"),
        "{text}"
    );
    simulation.run_until(&mut memory, "2026-03-06T12:40:00Z");
    report_at(
        &mut simulation,
        "2026-03-06T12:40:00Z",
        "2026-03-06T12:40:00Z",
    );
    simulation.settle(&mut memory);
    let text = condition_text(&simulation, ConditionType::Scheduled);
    assert!(
        text.ends_with("; back at 2026-03-06T13:10:00Z if the host stays free"),
        "{text}"
    );
    simulation.run_until(&mut memory, "2026-03-06T13:10:00Z");
    assert_eq!(returns(&simulation), 0, "nobody has confirmed it");
    report_at(
        &mut simulation,
        "2026-03-06T12:40:00Z",
        "2026-03-06T13:10:00Z",
    );
    simulation.settle(&mut memory);
    assert_eq!(returns(&simulation), 1);
    assert_eq!(simulation.status().returns.len(), 1);
    assert!(simulation.schedule.overrides.is_empty());
    simulation.run_until(&mut memory, "2026-03-06T13:20:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    let events = simulation.events.iter().map(|of| of.reason.as_str());
    assert_eq!(events.filter(|of| *of == "HostReturned").count(), 1);
}

#[test]
fn a_report_from_before_the_reclaim_or_that_is_old_or_ahead_returns_nothing() {
    for (now, since, confirmed) in [
        ("12:40:00", "08:00:00", "11:59:59"),
        ("12:40:00", "08:00:00", "12:29:59"),
        ("12:40:00", "08:00:00", "12:35:00"),
        ("12:29:59", "08:00:00", "12:29:59"),
        ("12:40:00", "12:10:00", "12:35:00"),
        ("12:40:00", "12:00:00", "12:41:01"),
    ] {
        let [now, since, confirmed] =
            [now, since, confirmed].map(|time| format!("2026-03-06T{time}Z"));
        let mut memory = Memory::default();
        let mut simulation = reclaimed("30m", 4, &mut memory);
        simulation.run_until(&mut memory, &now);
        report_at(&mut simulation, &since, &confirmed);
        simulation.settle(&mut memory);
        assert_eq!(returns(&simulation), 0, "{now}: {since} {confirmed}");
    }
}

#[test]
fn a_host_whose_clock_is_wrong_or_that_is_silent_is_named_where_one_looks() {
    for (confirmed, words) in [
        ("2026-03-06T12:44:00Z", None),
        ("2026-03-06T12:46:00Z", None),
        (
            "2026-03-06T12:46:01Z",
            Some("by a clock that is 1 min ahead"),
        ),
        (
            "2026-03-06T12:52:30Z",
            Some("by a clock that is 7 min ahead"),
        ),
        ("2026-03-06T12:40:01Z", None),
        (
            "2026-03-06T12:40:00Z",
            Some("or the clock of the host is behind"),
        ),
    ] {
        let mut memory = Memory::default();
        let mut simulation = reclaimed("50m", 4, &mut memory);
        simulation.run_until(&mut memory, "2026-03-06T12:45:00Z");
        report_at(&mut simulation, "2026-03-06T12:10:00Z", confirmed);
        simulation.settle(&mut memory);
        let text = condition_text(&simulation, ConditionType::Scheduled);
        let usual = "; back at 2026-03-06T13:00:00Z if the host stays free";
        assert!(text.contains(words.unwrap_or(usual)), "{confirmed}: {text}");
        assert!(
            text.contains(usual) == words.is_none(),
            "{confirmed}: {text}"
        );
    }
}

#[test]
fn a_return_undoes_neither_a_kill_switch_nor_a_disable_nor_a_stop_of_another() {
    let changes: [fn(&mut Simulation); 3] = [
        |simulation| simulation.edit(|sm| sm.spec.kill_switch = true),
        |simulation| simulation.edit(|sm| sm.spec.schedule.enabled = false),
        |simulation| {
            simulation
                .schedule
                .overrides
                .push(fivespot_schedule::Override {
                    name: "maintenance".to_owned(),
                    mode: fivespot_schedule::OverrideMode::Stop,
                    start: None,
                    end: at("2026-03-06T17:30:00Z"),
                    created: None,
                });
        },
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let mut memory = Memory::default();
        let mut simulation = reclaimed("30m", 4, &mut memory);
        change(&mut simulation);
        simulation.run_until(&mut memory, "2026-03-06T12:40:00Z");
        report_at(&mut simulation, NOON, "2026-03-06T12:40:00Z");
        simulation.settle(&mut memory);
        assert_eq!(returns(&simulation), 0, "{place}");
        assert!(simulation.get("Machine").is_none(), "{place}");
    }
}

#[test]
fn a_machine_that_does_not_return_early_returns_at_the_end_of_the_override() {
    let mut memory = Memory::default();
    let mut simulation = reclaimed("30m", 4, &mut memory);
    simulation.run_until(&mut memory, "2026-03-06T17:05:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(returns(&simulation), 0);
}

#[test]
fn after_a_crash_at_any_write_a_return_is_counted_once() {
    for writes in 0..6 {
        let mut memory = Memory::default();
        let mut simulation = reclaimed("30m", 4, &mut memory);
        simulation.run_until(&mut memory, "2026-03-06T12:40:00Z");
        report_at(&mut simulation, NOON, "2026-03-06T12:40:00Z");
        simulation.writes_left = writes;
        simulation.run_until(&mut memory, "2026-03-06T12:41:00Z");
        simulation.writes_left = usize::MAX;
        let mut memory = Memory::default();
        simulation.run_until(&mut memory, "2026-03-06T12:44:00Z");
        assert_eq!(returns(&simulation), 1, "{writes}");
        assert_eq!(simulation.status().returns.len(), 1, "{writes}");
    }
}

#[test]
fn a_refused_end_of_the_override_is_retried() {
    let mut memory = Memory::default();
    let mut simulation = reclaimed("30m", 4, &mut memory);
    simulation.run_until(&mut memory, "2026-03-06T12:40:00Z");
    report_at(&mut simulation, NOON, "2026-03-06T12:40:00Z");
    simulation.failing = Some((Step::EndOverride, Cause::Forbidden));
    simulation.run_until(&mut memory, "2026-03-06T12:41:00Z");
    assert!(!simulation.schedule.overrides.is_empty());
    simulation.failing = None;
    simulation.run_until(&mut memory, "2026-03-06T12:43:00Z");
    assert!(simulation.schedule.overrides.is_empty());
}

/// What a host does in one minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Minute {
    /// No signal stands, and the agent reports that.
    Free,
    /// A signal stands, and the agent reports it.
    InUse,
    /// A signal may stand: the agent says nothing, and its last report remains.
    Silent,
}

const MINUTES: u32 = 5;

/// Every course of [`MINUTES`] minutes.
fn courses() -> impl Iterator<Item = Vec<Minute>> {
    let all = [Minute::Free, Minute::InUse, Minute::Silent];
    (0..3_usize.pow(MINUTES)).map(move |number| {
        let places = (0..MINUTES).map(|place| number / 3_usize.pow(place) % 3);
        places.map(|it| all[it]).collect()
    })
}

/// Plays a course; the number of returns.
fn play(course: &[Minute], max_per_day: u8) -> usize {
    let mut memory = Memory::default();
    let mut simulation = reclaimed("1m", max_per_day, &mut memory);
    let mut free_since = None;
    for (place, minute) in course.iter().enumerate() {
        let before = returns(&simulation);
        let now = simulation.now.checked_add(SignedDuration::from_mins(1));
        simulation.now = now.unwrap();
        match minute {
            Minute::Free => {
                let since = *free_since.get_or_insert(simulation.now);
                let now = simulation.now;
                report(&mut simulation, Some((since, now)));
            }
            Minute::InUse => {
                free_since = None;
                report(&mut simulation, None);
                if simulation.get("Node").is_some() {
                    reclaim(&mut simulation, &mut memory);
                }
            }
            Minute::Silent => free_since = None,
        }
        simulation.settle(&mut memory);
        if returns(&simulation) > before {
            let last = &course[place.saturating_sub(1)..=place];
            assert_eq!(last, [Minute::Free; 2], "{course:?}");
        }
    }
    returns(&simulation)
}

#[test]
fn in_no_course_a_machine_returns_while_a_signal_may_stand_or_too_often() {
    for course in courses() {
        assert!(play(&course, 1) <= 1, "{course:?}");
    }
    let [free, in_use] = [Minute::Free, Minute::InUse];
    let course = [free, free, in_use, free, free, in_use, free, free];
    assert_eq!([1, 2, 3].map(|most| play(&course, most)), [1, 2, 3]);
}

#[test]
fn a_machine_that_has_returned_often_enough_says_when_it_may_again() {
    let mut memory = Memory::default();
    let mut simulation = reclaimed("1m", 1, &mut memory);
    simulation.now = at("2026-03-06T12:01:00Z");
    report_at(&mut simulation, NOON, "2026-03-06T12:01:00Z");
    simulation.settle(&mut memory);
    assert_eq!(returns(&simulation), 1);
    simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
    reclaim(&mut simulation, &mut memory);
    let text = condition_text(&simulation, ConditionType::Scheduled);
    assert!(
        text.ends_with(
            "; it has returned as often as spec.reclaim.return.maxPerDay allows, and may return \
             again from 2026-03-07T12:01:00Z on"
        ),
        "{text}"
    );
}
