//! What a forecast says of random fleets is what an account says that goes from minute to minute.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

mod account;
mod fleet;

use fivespot_api::WeeklyUse;
use fivespot_forecast::{BrokenBy, ForecastSpan, TooManyOpenings, forecast};
use fivespot_schedule::{Duration, Override, OverrideMode, Schedule, WindowText};
use jiff::SignedDuration;
use proptest::prelude::*;

use account::{Found, account};
use fleet::{DAY, Desk, Fleet, WEEK, Worker, at, fleet, minute};

/// What the forecast finds, in minutes.
fn forecast_of(fleet: &Fleet) -> Found {
    let workers = fleet.workers();
    let members: Vec<_> = workers.iter().map(Worker::member).collect();
    let found = forecast(&members, fleet.span()).unwrap();
    let broken = found.broken.iter().map(|it| {
        let late = it.late.map(|late| late.as_secs() / 60);
        (minute(it.opens), it.machine, it.cause.as_str(), late)
    });
    let mut broken: Vec<_> = broken.collect();
    broken.sort_unstable();
    Found {
        openings: found.openings,
        broken,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn each_refusal_and_each_acceptance_agrees_with_an_account_by_the_minute(fleet in fleet()) {
        prop_assert_eq!(forecast_of(&fleet), account(&fleet), "{:#?}", fleet);
    }
}

/// Desks that are wanted on one day, from one hour to another.
fn desks(hours: &[(i64, i64)]) -> Fleet {
    let desk = |(from, to): &(i64, i64)| Desk {
        windows: vec![(1, from * 60, (to - from) * 60)],
        ..Desk::default()
    };
    Fleet {
        hosts: 1,
        desks: hours.iter().map(desk).collect(),
        ..Fleet::default()
    }
}

#[test]
fn a_host_is_in_use_until_the_shutdown_of_its_machine_may_last() {
    let mut fleet = desks(&[(8, 12), (12, 14)]);
    assert_eq!(forecast_of(&fleet).broken, []);
    fleet.desks[0].grace = 5;
    let late = (DAY + 12 * 60, 1, "NoHostFree", Some(5));
    assert_eq!(forecast_of(&fleet).broken, [late]);
    fleet.desks[0].is_gone_at_end = true;
    assert_eq!(forecast_of(&fleet).broken, []);
}

#[test]
fn a_machine_that_is_needed_again_the_instant_it_would_be_gone_keeps_its_host() {
    let mut fleet = desks(&[(9, 14), (8, 10)]);
    fleet.desks[1].windows.push((1, 11 * 60, 60));
    fleet.desks[1].grace = 60;
    let late = (DAY + 9 * 60, 0, "NoHostFree", Some(4 * 60));
    assert_eq!(forecast_of(&fleet).broken, [late]);
    assert_eq!(account(&fleet).broken, [late]);
}

#[test]
fn a_machine_that_waits_is_there_once_the_host_is_free_or_never_in_its_window() {
    let fleet = desks(&[(8, 12), (10, 14), (11, 12)]);
    let ten = (DAY + 10 * 60, 1, "NoHostFree", Some(120));
    let eleven = (DAY + 11 * 60, 2, "NoHostFree", None);
    assert_eq!(forecast_of(&fleet).broken, [ten, eleven]);
}

#[test]
fn the_machine_that_has_a_host_at_the_beginning_keeps_it() {
    let mut fleet = desks(&[(8, 12), (8, 12)]);
    let second = (DAY + 8 * 60, 1, "NoHostFree", None);
    assert_eq!(forecast_of(&fleet).broken, [second]);
    fleet.desks[1].host = Some(0);
    fleet.desks[1].windows = vec![(0, 0, DAY + 12 * 60)];
    let first = (DAY + 8 * 60, 0, "NoHostFree", None);
    assert_eq!(forecast_of(&fleet).broken, [first]);
}

/// A change of the schedule of a desk on Tuesday.
fn overriding(mode: OverrideMode, (from, to): (i64, i64)) -> Override {
    Override {
        name: "change".to_owned(),
        mode,
        start: Some(at(DAY + from * 60)),
        end: at(DAY + to * 60),
        created: None,
    }
}

#[test]
fn overrides_open_and_close_and_under_a_hold_nothing_is_made_and_no_host_is_left() {
    let fleet = desks(&[(8, 12), (12, 14)]);
    let with = |mode, hours| {
        let mut workers = fleet.workers();
        let schedule = workers[0].schedule.clone();
        workers[0].schedule = schedule.with_overrides(vec![overriding(mode, hours)]);
        let members: Vec<_> = workers.iter().map(Worker::member).collect();
        let found = forecast(&members, fleet.span()).unwrap();
        let late = found.broken.first().map(|it| (it.machine, it.late));
        (found.openings, late)
    };
    assert_eq!(with(OverrideMode::Stop, (7, 13)), (1, None));
    let hour = Some(SignedDuration::from_hours(1));
    assert_eq!(with(OverrideMode::Run, (12, 13)), (2, Some((1, hour))));
    // What is there at the end of its window leaves after the Hold.
    assert_eq!(with(OverrideMode::Hold, (11, 13)), (2, Some((1, hour))));
    // It opens late because somebody wants that, and leaves in time.
    assert_eq!(with(OverrideMode::Hold, (7, 9)), (1, None));
    assert_eq!(with(OverrideMode::Hold, (7, 12)), (1, None));
}

#[test]
fn a_limit_of_the_class_makes_a_machine_wait_and_hours_are_those_of_a_week() {
    let mut fleet = desks(&[(8, 12), (10, 14), (16, 20)]);
    fleet.hosts = 3;
    fleet.machines = Some(1);
    let ten = (DAY + 10 * 60, 1, "LimitReached", Some(120));
    assert_eq!(forecast_of(&fleet).broken, [ten]);
    fleet.machines = None;
    fleet.hours = Some(10);
    // Two hours are left of ten: of the last four, the last two.
    let last = (DAY + 16 * 60, 2, "LimitReached", Some(120));
    assert_eq!(forecast_of(&fleet).broken, [last]);
    fleet.hours = Some(7);
    // Of the second, the last three fit, and none of the third.
    let second = (DAY + 10 * 60, 1, "LimitReached", Some(60));
    let last = (DAY + 16 * 60, 2, "LimitReached", None);
    assert_eq!(forecast_of(&fleet).broken, [second, last]);
}

#[test]
fn machines_that_may_not_begin_within_the_same_minute_take_turns_and_are_late() {
    let mut fleet = desks(&[(8, 12), (8, 12), (8, 12), (8, 12)]);
    fleet.hosts = 4;
    fleet.starts = Some(1);
    fleet.desks[2].priority = 90;
    fleet.desks[3].is_other = true;
    let eight = DAY + 8 * 60;
    let late = |machine, late| (eight, machine, "LimitReached", Some(late));
    let expected = [late(0, 2), late(1, 3), late(3, 1)];
    assert_eq!(forecast_of(&fleet).broken, expected);
    // It suffices to begin early.
    for desk in &mut fleet.desks {
        desk.lead = 3;
    }
    assert_eq!(forecast_of(&fleet).broken, []);
}

#[test]
fn windows_open_and_close_later_by_the_part_of_the_jitter_of_a_machine() {
    let mut fleet = desks(&[(8, 12), (12, 14)]);
    fleet.desks[0].delay = 5;
    let late = |late| (DAY + 12 * 60, 1, "NoHostFree", Some(late));
    assert_eq!(forecast_of(&fleet).broken, [late(5)]);
    fleet.desks[1].delay = 5;
    assert_eq!(forecast_of(&fleet).broken, []);
    fleet.desks[0].grace = 2;
    let later = (DAY + 12 * 60 + 5, 1, "NoHostFree", Some(2));
    assert_eq!(forecast_of(&fleet).broken, [later]);
    fleet.desks[0].is_gone_at_end = true;
    assert_eq!(forecast_of(&fleet).broken, []);
}

#[test]
fn a_window_that_follows_sooner_than_the_delay_opens_later_by_all_of_it() {
    let mut fleet = desks(&[(8, 12)]);
    let desk = &mut fleet.desks[0];
    (desk.delay, desk.is_gone_at_end) = (30, true);
    (desk.lead, desk.took) = (20, Some(21));
    desk.windows.push((1, 12 * 60 + 25, 60));
    let late = |opens| (DAY + opens, 0, "LeadTimeTooShort", Some(1));
    let expected = [late(8 * 60 + 30), late(12 * 60 + 55)];
    assert_eq!(forecast_of(&fleet).broken, expected);
    assert_eq!(account(&fleet).broken, expected);
}

#[test]
fn a_window_that_continues_one_after_the_end_of_the_forecast_counts_for_who_waits() {
    let mut fleet = desks(&[(8, 12), (8, 12)]);
    let sunday = 6;
    fleet.desks[0].windows = vec![(sunday, 20 * 60, 7 * 60)];
    // Until a quarter past three; the lead time of the next one begins ten minutes earlier.
    fleet.desks[1].windows = vec![(sunday, 21 * 60, 6 * 60 + 15), (0, 3 * 60 + 25, 60)];
    (fleet.desks[1].lead, fleet.desks[1].minimum_run) = (20, 45);
    let late = (WEEK - 3 * 60, 1, "NoHostFree", Some(6 * 60));
    assert_eq!(forecast_of(&fleet).broken, [late]);
    assert_eq!(account(&fleet).broken, [late]);
}

#[test]
fn what_was_used_this_week_and_who_runs_count() {
    let mut fleet = desks(&[(8, 12), (8, 12)]);
    fleet.hosts = 2;
    fleet.hours = Some(10);
    let of = |fleet: &Fleet, used: i64| {
        let mut workers = fleet.workers();
        let status = workers[0].object.status.get_or_insert_default();
        status.weekly_use = Some(WeeklyUse {
            week_start: at(0),
            seconds: used * 3_600,
            since: None,
        });
        let members: Vec<_> = workers.iter().map(Worker::member).collect();
        let found = forecast(&members, fleet.span()).unwrap();
        let broken = found.broken.iter();
        broken.map(|it| (it.machine, it.late)).collect::<Vec<_>>()
    };
    assert_eq!(of(&fleet, 2), []);
    let hour = Some(SignedDuration::from_hours(1));
    assert_eq!(of(&fleet, 3), [(1, hour)]);
    fleet.desks[1].priority = 90;
    assert_eq!(of(&fleet, 3), [(0, hour)]);
    assert_eq!(of(&fleet, 10), [(0, None), (1, None)]);
}

#[test]
fn who_has_the_hosts_is_named() {
    let mut fleet = desks(&[(8, 12), (9, 10)]);
    fleet.desks[1].named = Some(0);
    let workers = fleet.workers();
    let members: Vec<_> = workers.iter().map(Worker::member).collect();
    let found = forecast(&members, fleet.span()).unwrap();
    assert_eq!(
        found.broken[0].cause,
        BrokenBy::HostTaken {
            host: "host-0".to_owned(),
            holder: 0
        }
    );
    assert_eq!(
        found.broken[0].message(&members),
        "host host-0 of ScheduledMachineClass desks is in use by team/m-0"
    );
}

/// Machines that open once a day, twenty more than there are hosts of each class.
fn large_fleet(machines: usize) -> Vec<Worker> {
    let desk = Desk {
        windows: vec![(0, 0, 60)],
        grace: 5,
        lead: 10,
        took: Some(8),
        ..Desk::default()
    };
    let many = Fleet {
        hosts: 980,
        desks: vec![desk; 1_000],
        ..Fleet::default()
    };
    let of_class = |class: usize| many.workers_of(&format!("class-{class}"));
    let mut workers: Vec<Worker> = (0..machines / 1_000).flat_map(of_class).collect();
    for (place, worker) in workers.iter_mut().enumerate() {
        let minutes = 60 + place % 480;
        let daily = WindowText {
            name: "day",
            days: &["mon-sun"],
            start: &format!("{:02}:{:02}", minutes / 60, minutes % 60),
            end: None,
            duration: Some("10h"),
        };
        let schedule = Schedule::windows(&[daily], "Europe/Zurich").unwrap();
        worker.schedule = schedule.with_lead_time(Duration::minutes(10));
    }
    workers
}

#[test]
fn two_weeks_of_ten_thousand_machines_are_forecast_and_no_more_than_the_limit() {
    let workers = large_fleet(10_000);
    let members: Vec<_> = workers.iter().map(Worker::member).collect();
    let span = |days| ForecastSpan {
        since: at(0),
        from: at(0),
        to: at(days * DAY),
    };
    let found = forecast(&members, span(14)).unwrap();
    assert_eq!(found.openings, 140_000);
    assert!(found.broken.len() > 10 * 14, "{}", found.broken.len());
    assert_eq!(forecast(&members, span(60)), Err(TooManyOpenings));
}
