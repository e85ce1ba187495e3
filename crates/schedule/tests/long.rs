//! Results that lie far ahead, where searches do not look at each window: they are compared with
//! what follows from each window.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use fivespot_schedule::{
    DateEntry, Duration, Exception, ExceptionAction, Schedule, Steps, WindowText,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const ZONES: [&str; 4] = [
    "UTC",
    "America/New_York",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
];

const FROM: &str = "2026-02-20T10:00:30Z";

fn from() -> Timestamp {
    FROM.parse().unwrap()
}

/// Windows that start at these hours, as cron and as windows.
#[derive(Debug, Clone)]
struct Both {
    hours: Vec<u8>,
    days: Vec<u8>,
    minutes: u32,
    zone: &'static str,
}

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Both {
    fn cron(&self) -> Schedule {
        let list = |numbers: &[u8]| {
            let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            texts.join(",")
        };
        let expression = format!("0 {} * * {}", list(&self.hours), list(&self.days));
        let lasts = format!("{}m", self.minutes);
        Schedule::cron(&expression, Some(&lasts), self.zone).unwrap()
    }

    fn windows(&self) -> Schedule {
        let days: Vec<_> = self
            .days
            .iter()
            .map(|day| DAYS[usize::from(*day)])
            .collect();
        let starts: Vec<_> = self
            .hours
            .iter()
            .map(|hour| format!("{hour:02}:00"))
            .collect();
        let lasts = format!("{}m", self.minutes);
        let window = |start| WindowText {
            name: "w",
            days: &days,
            start,
            end: None,
            duration: Some(&lasts),
        };
        let windows: Vec<_> = starts.iter().map(|start| window(start.as_str())).collect();
        Schedule::windows(&windows, self.zone).unwrap()
    }
}

/// Hours at which no clock changes, so that both forms open at the same instants.
fn both() -> impl Strategy<Value = Both> {
    (
        prop::collection::btree_set(5..23_u8, 1..6),
        prop::collection::btree_set(0..7_u8, 1..8),
        prop_oneof![1..300_u32, 1_380..1_500_u32, 9_900..10_081_u32],
        prop::sample::select(ZONES.to_vec()),
    )
        .prop_map(|(hours, days, minutes, zone)| Both {
            hours: hours.into_iter().collect(),
            days: days.into_iter().collect(),
            minutes,
            zone,
        })
}

fn years(count: i64) -> Timestamp {
    from() + SignedDuration::from_hours(365 * 24 * count)
}

/// The spans in which a machine is needed up to `to`, from each window.
fn spans(schedule: &Schedule, to: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let lead_time = SignedDuration::from(schedule.lead_time());
    let early_end = SignedDuration::from(schedule.early_end());
    let mut opened = schedule.at(from()).is_open().then(from);
    let mut spans: Vec<(Timestamp, Timestamp)> = Vec::new();
    let changes = schedule
        .transitions(from(), to)
        .chain([(Timestamp::MAX, false)]);
    for (at, opens) in changes {
        let Some(since) = opened.take() else {
            opened = opens.then_some(at);
            continue;
        };
        let (start, end) = (since - lead_time, at - early_end);
        match spans.last_mut() {
            _ if end <= since => {}
            Some((_, before)) if start <= *before => *before = end,
            _ => spans.push((start.max(from()), end)),
        }
    }
    spans
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn windows_and_cron_with_the_same_starts_agree_for_ten_years(both in both()) {
        let (cron, windows) = (both.cron(), both.windows());
        prop_assert_eq!(cron.at(from()), windows.at(from()));
        let until = years(10);
        let cron = cron.transitions(from(), until);
        prop_assert!(cron.eq(windows.transitions(from(), until)));
    }

    #[test]
    fn what_is_needed_follows_from_each_window(
        both in both(),
        is_cron in any::<bool>(),
        lead_time in prop::sample::select(vec![0, 1, 30, 120, 600, 1_440]),
        early_end in prop_oneof![Just(0), 0..301_u32],
        stops in prop::collection::vec(any::<bool>(), 0..3),
    ) {
        let schedule = if is_cron { both.cron() } else { both.windows() };
        let exceptions = stops.iter().zip(["07-04", "12-25", "02-29"]);
        let exceptions = exceptions.map(|(stops, date)| Exception {
            name: date.to_owned(),
            action: if *stops { ExceptionAction::Stop } else { ExceptionAction::Run },
            dates: [DateEntry::parse(date).unwrap()].into_iter().collect(),
        });
        let schedule = schedule
            .with_exceptions(exceptions.collect())
            .with_lead_time(Duration::minutes(lead_time))
            .with_early_end(Duration::minutes(early_end));
        let expected = spans(&schedule, years(3));
        let first = expected.iter().find(|(_, end)| *end > from());
        let need = schedule.needed(from(), &Steps::at_most(1_000_000));
        let two_years = years(2);
        let next = first.map(|(start, end)| if *start > from() { *start } else { *end });
        let known = |at: Option<Timestamp>| at.filter(|at| *at < two_years);
        prop_assert_eq!(known(need.until()), known(next), "{:?} {:?}", need, first);

        let found = schedule.needed_spans(from(), two_years);
        let found: Vec<_> = found.map(|it| (it.start, it.end)).collect();
        let expected = expected.into_iter().filter(|(start, end)| {
            *end > from() && *start < two_years
        });
        let inner = |(start, end): (Timestamp, Option<Timestamp>)| {
            (start, end.filter(|end| *end < two_years))
        };
        let expected: Vec<_> =
            expected.map(|(start, end)| inner((start, Some(end)))).collect();
        let found: Vec<_> = found.into_iter().map(inner).collect();
        prop_assert_eq!(found, expected);
    }
}
