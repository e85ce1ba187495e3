//! Compares the crate with an oracle that steps along the wall clock, around difficult clock
//! changes.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod oracle;

use std::ops::RangeInclusive;

use fivespot_schedule::{Schedule, zone, zone_names};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use oracle::{Entry, Plan, day_entries, expression, flips, hour_entries};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// Zones and the UTC days around a clock change.
const AWKWARD: [(&str, &str); 11] = [
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Africa/Cairo", "2026-04-24"),
    ("Asia/Beirut", "2026-03-29"),
    ("America/Havana", "2026-03-08"),
    ("Pacific/Apia", "2011-12-30"),
    ("Asia/Kathmandu", "1985-12-31"),
    ("America/St_Johns", "2006-10-29"),
    // The only change in the data; all later ones follow from a rule.
    ("Antarctica/Troll", "2005-02-12"),
];

/// Zones with an offset that was not a whole number of minutes, and a day on which it changed.
const AWKWARD_TO_THE_SECOND: [(&str, &str); 4] = [
    ("Africa/Monrovia", "1972-01-07"),
    ("Europe/Amsterdam", "1937-07-01"),
    ("America/New_York", "1883-11-18"),
    ("Asia/Kolkata", "1906-01-01"),
];

fn midnight(date: &str) -> i64 {
    format!("{date}T00:00:00Z")
        .parse::<Timestamp>()
        .unwrap()
        .as_second()
}

fn schedule(plan: &Plan, zone: &str) -> Schedule {
    match plan {
        Plan::Weekly { days, hours } => {
            Schedule::weekly(&day_entries(days), &hour_entries(hours), zone).unwrap()
        }
        Plan::Cron { fields, seconds } => {
            let duration = format!("{seconds}s");
            Schedule::cron(&expression(fields), Some(&duration), zone).unwrap()
        }
    }
}

/// Asserts that the crate's changes equal the oracle's, and checks its state just after and
/// just before each of them.
fn agrees(plan: &Plan, name: &str, span: (i64, i64), step: i64) {
    let schedule = schedule(plan, name);
    let (wanted, expected) = flips(plan, schedule.time_zone(), span, step);
    let instant = |second| Timestamp::from_second(second).unwrap();
    let (from, to) = (instant(span.0), instant(span.1));

    assert_eq!(
        schedule.at(from).is_open(),
        wanted,
        "{plan:?} in {name} at {from}"
    );
    let found: Vec<_> = schedule.transitions(from, to).collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|&(at, wanted)| (instant(at), wanted))
        .collect();
    assert_eq!(found, expected, "{plan:?} in {name} from {from} to {to}");

    let nanosecond = jiff::SignedDuration::from_nanos(1);
    let mut wanted = wanted;
    let mut since = from;
    for (until, then) in expected {
        for now in [since, since + nanosecond, until - nanosecond] {
            let window = schedule.at(now);
            assert_eq!(
                (window.is_open(), window.until()),
                (wanted, Some(until)),
                "{plan:?} in {name} at {now}",
            );
        }
        (wanted, since) = (then, until);
    }
    let last = schedule.at(to - nanosecond);
    assert_eq!(last.is_open(), wanted, "{plan:?} in {name} before {to}");
}

fn each_hour() -> impl Iterator<Item = Plan> {
    (0..24).map(|hour| Plan::Weekly {
        days: vec![(0, 6)],
        hours: vec![(hour, hour)],
    })
}

#[test]
fn a_single_hour_is_open_exactly_while_the_wall_clock_shows_it() {
    for (name, date) in AWKWARD {
        let day = midnight(date);
        for plan in each_hour().step_by(3) {
            agrees(&plan, name, (day - DAY, day + 2 * DAY), 60);
        }
        let night_owl = Plan::Weekly {
            days: vec![(4, 5), (6, 0)],
            hours: vec![(22, 2)],
        };
        agrees(&night_owl, name, (day - 2 * DAY, day + 2 * DAY), 60);
    }
}

#[test]
fn a_firing_each_half_hour_is_open_across_clock_changes() {
    for (name, date) in AWKWARD {
        let day = midnight(date);
        for (minute, seconds) in [(30, 600), (0, 1_800), (59, 3_600), (1, 90)] {
            let hourly = Plan::Cron {
                fields: [
                    vec![Entry::Only(minute)],
                    vec![Entry::All],
                    vec![Entry::All],
                    vec![Entry::All],
                    vec![Entry::All],
                ],
                seconds,
            };
            agrees(&hourly, name, (day - DAY, day + 2 * DAY), 60);
        }
    }
}

#[test]
fn offsets_and_changes_at_odd_seconds_are_followed_to_the_second() {
    for (name, date) in AWKWARD_TO_THE_SECOND {
        let zone = zone(name).unwrap();
        let before = Timestamp::from_second(midnight(date) - DAY).unwrap();
        let change = zone
            .following(before)
            .next()
            .unwrap()
            .timestamp()
            .as_second();
        let span = (change - HOUR, change + HOUR);
        for plan in each_hour() {
            agrees(&plan, name, span, 1);
        }
        let each_minute = Plan::Cron {
            fields: [
                vec![Entry::Every(7)],
                vec![Entry::All],
                vec![Entry::All],
                vec![Entry::All],
                vec![Entry::All],
            ],
            seconds: 61,
        };
        agrees(&each_minute, name, span, 1);
    }
}

fn dial(size: u8) -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec((0..size, 0..size), 1..3)
}

fn entry(bounds: RangeInclusive<u8>) -> impl Strategy<Value = Entry> {
    let (least, most) = (*bounds.start(), *bounds.end());
    prop_oneof![
        3 => Just(Entry::All),
        1 => (1..=most + 1).prop_map(Entry::Every),
        3 => bounds.clone().prop_map(Entry::Only),
        2 => (bounds.clone(), bounds, 1..=most - least + 1).prop_map(|(a, b, step)| {
            Entry::Range { first: a.min(b), last: a.max(b), step }
        }),
    ]
}

fn field(bounds: RangeInclusive<u8>) -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec(entry(bounds), 1..3)
}

fn plan() -> impl Strategy<Value = Plan> {
    let weekly =
        (dial(7), dial(24)).prop_map(|(days, hours)| Plan::Weekly { days, hours });
    let fields = (
        field(0..=59),
        field(0..=23),
        field(1..=31),
        field(1..=12),
        field(0..=7),
    );
    let seconds = prop_oneof![60..200_i64, 60..7_200_i64, 60..2 * DAY];
    let cron =
        (fields, seconds).prop_map(|((minute, hour, date, month, weekday), seconds)| {
            Plan::Cron {
                fields: [minute, hour, date, month, weekday],
                seconds,
            }
        });
    prop_oneof![1 => weekly, 2 => cron]
}

/// A zone and an instant at most two days before a clock change, if the zone has one.
fn near_a_change(
    years: RangeInclusive<i64>,
) -> impl Strategy<Value = (&'static str, i64)> {
    let names: Vec<&'static str> = zone_names().collect();
    let seconds = (years.start() - 1970) * 365 * DAY..(years.end() - 1970) * 365 * DAY;
    (prop::sample::select(names), seconds, 0..2 * DAY).prop_map(|(name, second, lead)| {
        let zone: TimeZone = zone(name).unwrap();
        let start = Timestamp::from_second(second).unwrap();
        let change = zone
            .following(start)
            .next()
            .map(|change| change.timestamp());
        let near = change.map_or(second, |change| change.as_second() - lead);
        (name, near.div_euclid(60) * 60)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 160,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_schedule_in_any_zone_agrees_with_the_oracle(
        plan in plan(),
        // Since 1973 every offset is a whole number of minutes and changes at a full minute.
        (name, start) in near_a_change(1973..=2060),
    ) {
        agrees(&plan, name, (start, start + 3 * DAY), 60);
    }

    #[test]
    fn any_schedule_agrees_with_the_oracle_around_clock_changes(
        plan in plan(),
        (name, date) in prop::sample::select(AWKWARD.to_vec()),
    ) {
        let day = midnight(date);
        agrees(&plan, name, (day - DAY, day + 2 * DAY), 60);
    }

    #[test]
    fn any_schedule_agrees_to_the_second_before_offsets_were_whole_minutes(
        plan in plan(),
        (name, start) in near_a_change(1850..=1972),
    ) {
        let seconds_are_few = match &plan {
            Plan::Weekly { .. } => true,
            Plan::Cron { seconds, .. } => *seconds < HOUR,
        };
        prop_assume!(seconds_are_few);
        let zone = zone(name).unwrap();
        let change = zone.following(Timestamp::from_second(start).unwrap()).next();
        let middle = change.map_or(start, |change| change.timestamp().as_second());
        agrees(&plan, name, (middle - HOUR, middle + HOUR), 1);
    }
}
