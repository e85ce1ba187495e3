//! Compares the effective schedule and its needed spans with a minute-by-minute oracle: every
//! form, exceptions, overrides, lead time and early ends, around difficult clock changes.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "minutes of some days are small numbers"
)]

mod oracle;

use std::collections::HashMap;
use std::sync::OnceLock;

use fivespot_schedule::{
    DateEntry, Duration, Exception, ExceptionAction, Need, Override, OverrideMode,
    Schedule, Steps, WindowText, zone,
};
use jiff::Timestamp;
use jiff::civil::Date;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use oracle::{Base, End, MINUTE, Mode, Plan, WallClock, flips, mark_at, timestamp};

const DAY: i64 = 86_400;

/// Zones and the UTC days around a clock change.
const AWKWARD: [(&str, &str); 12] = [
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Europe/Zurich", "2026-10-25"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Africa/Cairo", "2026-04-24"),
    ("Asia/Beirut", "2026-03-29"),
    ("America/Havana", "2026-03-08"),
    ("Pacific/Apia", "2011-12-30"),
    ("Asia/Kathmandu", "1985-12-31"),
    // At 00:01 the clocks go back to 23:01 of the day before.
    ("America/St_Johns", "2006-10-29"),
    ("UTC", "2026-02-28"),
];

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

fn midnight(date: &str) -> i64 {
    let midnight: Timestamp = format!("{date}T00:00:00Z").parse().unwrap();
    midnight.as_second()
}

fn names(days: &[i8]) -> Vec<&'static str> {
    days.iter().map(|day| DAYS[*day as usize]).collect()
}

fn comma_list(numbers: &[i8]) -> String {
    let texts: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    texts.join(",")
}

fn base(base: &Base, zone: &str) -> Schedule {
    match base {
        Base::Lists { days, hours } => {
            Schedule::weekly(&names(days), &[comma_list(hours)], zone).unwrap()
        }
        Base::Cron {
            minutes,
            hours,
            lasts,
        } => {
            let (minutes, hours) = (comma_list(minutes), comma_list(hours));
            let expression = format!("{minutes} {hours} * * *");
            Schedule::cron(&expression, Some(&format!("{lasts}m")), zone).unwrap()
        }
        Base::Windows(windows) => {
            let texts: Vec<_> = windows
                .iter()
                .map(|window| {
                    let time = |(hour, minute)| format!("{hour:02}:{minute:02}");
                    let (end, duration) = match window.end {
                        End::At(hour, minute) => (Some(time((hour, minute))), None),
                        End::After(minutes) => (None, Some(format!("{minutes}m"))),
                    };
                    (names(&window.days), time(window.start), end, duration)
                })
                .collect();
            let windows: Vec<_> = texts
                .iter()
                .map(|(days, start, end, duration)| WindowText {
                    name: "window",
                    days,
                    start,
                    end: end.as_deref(),
                    duration: duration.as_deref(),
                })
                .collect();
            Schedule::windows(&windows, zone).unwrap()
        }
    }
}

fn schedule(plan: &Plan, zone: &str) -> Schedule {
    let exception = |it: &oracle::Exception| {
        let range = DateEntry::Range {
            first: it.first,
            last: it.last,
        };
        let years = it.every_year.iter();
        let years = years.map(|&(month, day)| DateEntry::EveryYear { month, day });
        Exception {
            name: "exception".to_owned(),
            action: if it.runs {
                ExceptionAction::Run
            } else {
                ExceptionAction::Stop
            },
            dates: years.chain([range]).collect(),
        }
    };
    let overriding = |it: &oracle::Override| Override {
        name: "override".to_owned(),
        mode: match it.mode {
            Mode::Run => OverrideMode::Run,
            Mode::Hold => OverrideMode::Hold,
            Mode::Stop => OverrideMode::Stop,
        },
        start: it.start.map(timestamp),
        end: timestamp(it.end),
        created: None,
    };
    base(&plan.base, zone)
        .with_exceptions(plan.exceptions.iter().map(exception).collect())
        .with_overrides(plan.overrides.iter().map(overriding).collect())
        .with_lead_time(Duration::minutes(plan.lead_time as u32))
        .with_early_end(Duration::minutes(plan.early_end as u32))
}

type Clocks = HashMap<(&'static str, &'static str), WallClock>;

/// The wall clocks around the dates, on both sides longer than a window, lead time and early
/// end together.
fn clocks() -> &'static Clocks {
    static CLOCKS: OnceLock<Clocks> = OnceLock::new();
    CLOCKS.get_or_init(|| {
        let clock = |place: (&'static str, &'static str)| {
            let date = midnight(place.1);
            let (from, to) = (date - 10 * DAY, date + 12 * DAY);
            (place, WallClock::new(&zone(place.0).unwrap(), from, to))
        };
        AWKWARD.into_iter().map(clock).collect()
    })
}

/// Enough for each of these schedules.
const MAX_STEPS: u64 = 60_000;

/// Asserts that the crate agrees with the oracle from a day before `date` to two days after it.
fn agrees(plan: &Plan, (name, date): (&'static str, &'static str)) {
    let (from, to) = (midnight(date) - DAY, midnight(date) + 2 * DAY);
    let clock = &clocks()[&(name, date)];
    let wanted = clock.wanted(plan);
    let needed = WallClock::needed(plan, &wanted);
    let schedule = schedule(plan, name);

    let about = format!("{plan:?} in {name} on {date}");
    let found: Vec<_> = schedule
        .transitions(timestamp(from), timestamp(to))
        .map(|(at, wanted)| (at.as_second(), wanted))
        .collect();
    assert_eq!(found, flips(clock, &wanted, (from, to)), "{about}");
    let is_open = schedule.at(timestamp(from)).is_open();
    assert_eq!(is_open, mark_at(clock, &wanted, from), "{about}");

    let expected = flips(clock, &needed, (from, to));
    let mut at = from;
    let mut is_needed = mark_at(clock, &needed, from);
    for (flip, next) in expected.iter().copied() {
        let need = schedule.needed(timestamp(at), &Steps::at_most(MAX_STEPS));
        assert_eq!(need.is_needed(), is_needed, "{about}");
        assert_eq!(need.until(), Some(timestamp(flip)), "at {at}, {about}");
        is_never_wrong(&schedule, timestamp(at), need);
        (at, is_needed) = (flip, next);
    }
    let need = schedule.needed(timestamp(at), &Steps::at_most(MAX_STEPS));
    assert_eq!(need.is_needed(), is_needed, "{about}");
    assert!(
        need.until().is_none_or(|until| until >= timestamp(to)),
        "{about}"
    );
    if let Need::Needed {
        until, window_end, ..
    } = need
    {
        let early = until
            .zip(window_end)
            .map(|(until, end)| end.duration_since(until));
        assert!(early.is_none_or(|early| early.as_secs() == plan.early_end * MINUTE));
    }

    let spans = schedule.needed_spans(timestamp(from), timestamp(to));
    let edges: Vec<_> = spans
        .flat_map(|span| [(Some(span.start), true), (span.end, false)])
        .filter_map(|(at, needed)| Some((at?.as_second(), needed)))
        .filter(|(at, _)| from < *at && *at < to)
        .collect();
    assert_eq!(edges, expected, "{about}");
}

/// Asserts that a result with few steps is the `exact` one as far as it says that it is known.
fn is_never_wrong(schedule: &Schedule, at: Timestamp, exact: Need) {
    for limit in [1, 25, 60, 150, 400] {
        let need = schedule.needed(at, &Steps::at_most(limit));
        match need.known_until() {
            None => assert_eq!(need, exact, "{limit} steps"),
            Some(known) if known > at => {
                assert_eq!(need.is_needed(), exact.is_needed(), "{limit} steps");
                let is_before = exact.until().is_none_or(|until| known <= until);
                assert!(is_before, "{limit} steps: {need:?}, but {exact:?}");
            }
            Some(_) => assert!(!need.is_needed()),
        }
    }
}

fn some_of(numbers: std::ops::Range<i8>) -> impl Strategy<Value = Vec<i8>> {
    prop::collection::btree_set(numbers, 1..5).prop_map(|set| set.into_iter().collect())
}

fn window() -> impl Strategy<Value = oracle::Window> {
    let time = (0..24_i8, prop::sample::select(vec![0_i8, 1, 30, 59]));
    let end = prop_oneof![
        2 => time.clone().prop_map(|(hour, minute)| End::At(hour, minute)),
        1 => prop_oneof![1..200_i64, 1..7 * 24 * 60_i64].prop_map(End::After),
    ];
    let days = prop_oneof![some_of(0..7), Just((0..7).collect())];
    (days, time, end).prop_map(|(days, start, end)| oracle::Window { days, start, end })
}

fn any_base() -> impl Strategy<Value = Base> {
    let lists = (some_of(0..7), some_of(0..24))
        .prop_map(|(days, hours)| Base::Lists { days, hours });
    let cron = (some_of(0..60), some_of(0..24), 1..300_i64).prop_map(
        |(minutes, hours, lasts)| Base::Cron {
            minutes,
            hours,
            lasts,
        },
    );
    let windows = prop::collection::vec(window(), 1..4).prop_map(Base::Windows);
    prop_oneof![1 => lists, 1 => cron, 3 => windows]
}

/// Exceptions and overrides around a date.
fn plan(date: &'static str) -> impl Strategy<Value = Plan> {
    let middle: Date = date.parse().unwrap();
    let start = midnight(date);
    let day = move |offset: i64| middle + jiff::Span::new().days(offset);
    let exception = (
        any::<bool>(),
        -3..4_i64,
        0..3_i64,
        prop::collection::vec(-2..3_i64, 0..2),
    )
        .prop_map(move |(runs, first, length, years)| oracle::Exception {
            runs,
            first: day(first),
            last: day(first + length),
            every_year: years
                .into_iter()
                .map(|offset| (day(offset).month(), day(offset).day()))
                .collect(),
        });
    let minutes = -2 * 24 * 60..3 * 24 * 60_i64;
    let overriding = (
        prop::sample::select(vec![Mode::Run, Mode::Hold, Mode::Stop]),
        prop::option::of(minutes.clone()),
        minutes,
    )
        .prop_map(move |(mode, from, to)| oracle::Override {
            mode,
            start: from.map(|from| start + from.min(to) * MINUTE),
            end: start + from.map_or(to, |from| from.max(to)) * MINUTE,
        });
    (
        any_base(),
        prop::collection::vec(exception, 0..3),
        prop::collection::vec(overriding, 0..4),
        prop_oneof![Just(0), 0..121_i64],
        prop_oneof![Just(0), 0..90_i64, 0..1441_i64],
    )
        .prop_map(|(base, exceptions, overrides, lead_time, early_end)| Plan {
            base,
            exceptions,
            overrides,
            lead_time,
            early_end,
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        // The cases take a minute, so they use a fixed seed.
        rng_seed: RngSeed::Fixed(5),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn schedules_of_every_form_and_combination_agree_with_the_oracle(
        (place, plan) in prop::sample::select(AWKWARD.to_vec())
            .prop_flat_map(|place| plan(place.1).prop_map(move |plan| (place, plan))),
    ) {
        agrees(&plan, place);
    }
}
