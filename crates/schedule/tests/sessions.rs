//! Sessions, and dates on which they end early.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::collections::BTreeSet;

use fivespot_schedule::{
    DateEntry, Dates, Duration, Exception, ExceptionAction, Schedule, SessionText, Steps,
    zone,
};
use jiff::civil::{Date, Weekday};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const ZONES: [&str; 5] = [
    "UTC",
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
];

fn dates(all: impl IntoIterator<Item = Date>) -> Dates {
    let entries = all.into_iter();
    entries
        .map(|date| DateEntry::parse(&date.to_string()).unwrap())
        .collect()
}

fn exception(name: &str, action: ExceptionAction, of: Dates) -> Exception {
    Exception {
        name: name.to_owned(),
        action,
        dates: of,
    }
}

fn changes(schedule: &Schedule, from: &str, to: &str) -> Vec<String> {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    let changes = schedule.transitions(from, to);
    changes
        .map(|(at, wanted)| {
            let word = if wanted { "opens" } else { "closes" };
            format!("{at} {word} {:?}", schedule.cause(at))
        })
        .collect()
}

#[test]
fn a_market_with_a_pause_a_holiday_and_an_early_close() {
    let sessions = [
        SessionText {
            days: &["mon-fri"],
            hours: &["9-11"],
        },
        SessionText {
            days: &["mon-thu"],
            hours: &["13-16"],
        },
    ];
    let day = |text: &str| dates([text.parse().unwrap()]);
    let market = Schedule::sessions(&sessions, "America/New_York")
        .unwrap()
        .with_exceptions(vec![
            exception("holidays", ExceptionAction::Stop, day("2026-11-26")),
            exception(
                "early",
                ExceptionAction::StopFrom { hour: 11 },
                day("2026-11-25"),
            ),
        ]);
    assert_eq!(
        changes(&market, "2026-11-24T21:00:00Z", "2026-11-28T00:00:00Z"),
        [
            "2026-11-24T22:00:00Z closes Lists",
            "2026-11-25T14:00:00Z opens Lists",
            "2026-11-25T16:00:00Z closes Exception(\"early\")",
            "2026-11-27T14:00:00Z opens Lists",
            "2026-11-27T17:00:00Z closes Lists",
        ]
    );
}

#[test]
fn no_session_is_an_error_and_a_schedule_that_never_opens_is_none() {
    let none: [SessionText<'_, &str>; 0] = [];
    let error = Schedule::sessions(&none, "UTC").unwrap_err();
    assert_eq!(error.to_string(), "sessions: must not be empty");
    let bad = SessionText {
        days: &["mon"],
        hours: &["9-25"],
    };
    let error = Schedule::sessions(&[bad], "UTC").unwrap_err();
    assert_eq!(
        error.to_string(),
        "sessions[0].hours[0]: expected an hour from 0 to 23 at byte 2, found '25'"
    );
    let never = Schedule::never("Europe/Zurich").unwrap();
    let window = never.at(Timestamp::UNIX_EPOCH);
    assert!(!window.is_open() && window.until().is_none());
}

/// A market as numbers.
#[derive(Clone, Debug)]
struct Market {
    zone: &'static str,
    /// Days from Monday and hours of each session.
    sessions: Vec<(BTreeSet<usize>, BTreeSet<u8>)>,
    holidays: BTreeSet<Date>,
    early: Vec<(u8, BTreeSet<Date>)>,
}

impl Market {
    fn schedule(&self) -> Schedule {
        let texts: Vec<(Vec<&str>, Vec<String>)> = self
            .sessions
            .iter()
            .map(|(days, hours)| {
                let days = days.iter().map(|day| DAYS[*day]).collect();
                (days, hours.iter().map(u8::to_string).collect())
            })
            .collect();
        let texts: Vec<(Vec<String>, Vec<String>)> = texts
            .into_iter()
            .map(|(days, hours)| (days.into_iter().map(str::to_owned).collect(), hours))
            .collect();
        let sessions: Vec<SessionText<'_, String>> = texts
            .iter()
            .map(|(days, hours)| SessionText { days, hours })
            .collect();
        let holidays = dates(self.holidays.iter().copied());
        let early = self.early.iter().map(|(hour, of)| {
            let action = ExceptionAction::StopFrom { hour: *hour };
            exception("early", action, dates(of.iter().copied()))
        });
        let all = std::iter::once(exception("holidays", ExceptionAction::Stop, holidays));
        Schedule::sessions(&sessions, self.zone)
            .unwrap()
            .with_exceptions(all.chain(early).collect())
    }

    /// The definition, from the local wall clock alone.
    fn is_open(&self, at: Timestamp) -> bool {
        let local = at.to_zoned(zone(self.zone).unwrap());
        let (date, hour) = (local.date(), u8::try_from(local.hour()).unwrap());
        let weekday =
            usize::try_from(Weekday::to_monday_zero_offset(date.weekday())).unwrap();
        !self.holidays.contains(&date)
            && !self
                .early
                .iter()
                .any(|(stop, dates)| dates.contains(&date) && hour >= *stop)
            && self
                .sessions
                .iter()
                .any(|(days, hours)| days.contains(&weekday) && hours.contains(&hour))
    }
}

/// Dates of the spring of 2026, with the clock changes of all zones.
fn some_dates(most: usize) -> impl Strategy<Value = BTreeSet<Date>> {
    let first: Date = "2026-03-01".parse().unwrap();
    let date =
        (0..45_i64).prop_map(move |day| first + SignedDuration::from_hours(24 * day));
    proptest::collection::btree_set(date, 0..=most)
}

fn market() -> impl Strategy<Value = Market> {
    let session = (
        proptest::collection::btree_set(0..7_usize, 1..=5),
        proptest::collection::btree_set(0..24_u8, 1..=8),
    );
    let early = (0..=24_u8, some_dates(6));
    (
        proptest::sample::select(&ZONES[..]),
        proptest::collection::vec(session, 1..=3),
        some_dates(6),
        proptest::collection::vec(early, 0..=3),
    )
        .prop_map(|(zone, sessions, holidays, early)| Market {
            zone,
            sessions,
            holidays,
            early,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_state_is_that_of_the_wall_clock_and_changes_exactly_where_it_does(market in market()) {
        let schedule = market.schedule();
        let mut at: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let end: Timestamp = "2026-04-10T00:00:00Z".parse().unwrap();
        while at < end {
            let window = schedule.at(at);
            prop_assert_eq!(window.is_open(), market.is_open(at), "{}", at);
            let until = window.until().unwrap_or(end).min(end);
            // No change is missed, and the one that was found is one.
            let mut step = at;
            while step < until {
                prop_assert_eq!(market.is_open(step), window.is_open(), "{}", step);
                step += SignedDuration::from_mins(15);
            }
            if until < end {
                prop_assert_ne!(market.is_open(until), window.is_open(), "{}", until);
            }
            at = until;
        }
    }

    #[test]
    fn a_schedule_that_follows_another_one_has_its_instants(
        market in market(),
        // Shorter than any window and any gap, so that each is found on its own.
        lead in 0..60_u32,
        early in 0..60_u32,
    ) {
        let minutes = |it: u32| Duration::minutes(it);
        let timed = |schedule: Schedule| {
            schedule.with_lead_time(minutes(lead)).with_early_end(minutes(early))
        };
        let own = timed(market.schedule());
        let following = timed(Schedule::following(market.schedule(), "Asia/Tokyo").unwrap());
        let from: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let to: Timestamp = "2026-04-10T00:00:00Z".parse().unwrap();
        prop_assert_eq!(
            own.transitions(from, to).collect::<Vec<_>>(),
            following.transitions(from, to).collect::<Vec<_>>()
        );
        for hour in (0..40 * 24).step_by(61) {
            let at = from + SignedDuration::from_hours(hour);
            let steps = || Steps::at_most(1_000_000);
            prop_assert_eq!(own.needed(at, &steps()), following.needed(at, &steps()), "{}", at);
        }
    }
}
