//! Which machines of a class may be made.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use fivespot_api::LimitsOfClass;
use fivespot_plan::limits::{Claim, Contender, Limit, Span, Turn, Week, rule, turns};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

/// A Friday.
const NOW: &str = "2026-03-06T15:00:00Z";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

fn week() -> Week {
    Week::at(at(NOW), &TimeZone::UTC)
}

fn limits(machines: Option<u32>, hours: Option<u32>) -> LimitsOfClass {
    LimitsOfClass {
        machines,
        hours,
        ..LimitsOfClass::default()
    }
}

/// A machine that is needed for some hours.
fn needed(name: &str, priority: u8, for_hours: i64) -> Contender<'_> {
    Contender {
        name,
        priority,
        holds: false,
        until: Some(at(NOW) + hours(for_hours)),
    }
}

fn holding(name: &str, priority: u8, for_hours: i64) -> Contender<'_> {
    Contender {
        holds: true,
        ..needed(name, priority, for_hours)
    }
}

/// The turns, as the hours from now at which a machine may be made at the earliest.
fn found(limits: &LimitsOfClass, used: i64, all: &[Contender<'_>]) -> Vec<String> {
    let turns = turns(limits, &week(), hours(used), all, at(NOW));
    let text = |turn: &Turn| match turn {
        Turn::Open => "open".to_owned(),
        Turn::Wait { limit, again } => {
            let again = again.map(|again| again.duration_since(at(NOW)).as_hours());
            format!(
                "{limit:?} {}",
                again.map_or("?".to_owned(), |it| it.to_string())
            )
        }
    };
    turns.iter().map(text).collect()
}

#[test]
fn the_highest_priority_comes_first_then_the_first_name() {
    let two = limits(Some(2), None);
    let all = [
        needed("c", 50, 8),
        needed("b", 50, 4),
        needed("a", 10, 8),
        needed("d", 90, 6),
    ];
    let expected = ["Machines 4", "open", "Machines 6", "open"];
    assert_eq!(found(&two, 0, &all), expected);
}

#[test]
fn one_that_runs_keeps_its_turn_whatever_the_limit_is() {
    let all = [holding("a", 1, 8), needed("b", 200, 4), holding("c", 1, 2)];
    let expected = ["open", "Machines 8", "open"];
    assert_eq!(found(&limits(Some(1), None), 0, &all), expected);
    assert_eq!(
        found(&limits(Some(0), Some(0)), 900, &all),
        ["open", "Machines ?", "open"]
    );
    assert_eq!(found(&limits(None, None), 900, &all), ["open"; 3]);
}

#[test]
fn hours_are_those_until_the_end_of_the_window_or_of_the_week() {
    let forty = limits(None, Some(40));
    // 5 of 8 hours are left: the last five fit.
    assert_eq!(found(&forty, 35, &[needed("a", 50, 8)]), ["Hours 3"]);
    assert_eq!(found(&forty, 32, &[needed("a", 50, 8)]), ["open"]);
    // It is Friday, 15:00: 57 hours are left of the week.
    assert_eq!(found(&forty, 40, &[needed("a", 50, 8)]), ["Hours 57"]);
    let always = Contender {
        until: None,
        ..needed("a", 50, 0)
    };
    assert_eq!(found(&forty, 0, &[always]), ["Hours 17"]);
    assert_eq!(found(&limits(None, Some(57)), 0, &[always]), ["open"]);
}

#[test]
fn what_others_will_use_is_not_there_any_more_and_a_shorter_window_may_still_fit() {
    let ten = limits(None, Some(10));
    let all = [
        holding("a", 1, 4),
        needed("b", 90, 8),
        needed("c", 50, 3),
        needed("d", 10, 3),
    ];
    let expected = ["open", "Hours 57", "open", "open"];
    assert_eq!(found(&ten, 0, &all), expected);
    let expected = ["open", "Hours 7", "open", "Hours 2"];
    assert_eq!(found(&ten, 2, &all), expected);
}

#[test]
fn the_use_of_a_week_is_what_was_recorded_and_the_time_since() {
    let week = week();
    let at = |hour: i64| week.start + hours(hour);
    let begun = week.begin(None, at(9));
    assert_eq!(week.used(&begun, at(12)), hours(3));
    let same = week.begin(Some(&begun), at(11));
    assert_eq!(begun, same, "no write while nothing changes");
    let stopped = week.stop(&begun, at(17));
    assert_eq!(week.stop(&stopped, at(20)), stopped);
    assert_eq!(week.used(&stopped, at(40)), hours(8));
    let over_the_end = week.begin(Some(&stopped), at(160));
    assert_eq!(week.used(&over_the_end, at(168)), hours(16));
    let next = Week::at(at(170), &TimeZone::UTC);
    assert_eq!(next.used(&over_the_end, at(170)), hours(2));
    assert_eq!(next.used(&stopped, at(170)), hours(0));
    let stopped = next.stop(&over_the_end, at(172));
    assert_eq!((stopped.seconds, stopped.since), (4 * 3_600, None));
    assert_eq!(stopped.week_start, next.start);
}

#[derive(Clone, Debug)]
struct Given {
    priority: u8,
    holds: bool,
    minutes: Option<i64>,
}

fn given() -> impl Strategy<Value = Vec<Given>> {
    let one = (
        0..3_u8,
        prop::bool::weighted(0.3),
        prop::option::of(0..6_000_i64),
    );
    let one = one.prop_map(|(priority, holds, minutes)| Given {
        priority,
        holds,
        minutes,
    });
    prop::collection::vec(one, 0..12)
}

/// A machine that is needed for some hours of each day of the week, from an hour on.
#[derive(Clone, Debug)]
struct Daily {
    priority: u8,
    from: i64,
    hours: i64,
}

fn fleet() -> impl Strategy<Value = Vec<Daily>> {
    let one = (0..3_u8, 0..24_i64, 1..24_i64);
    let one = one.prop_map(|(priority, from, hours)| Daily {
        priority,
        from,
        hours,
    });
    prop::collection::vec(one, 1..8)
}

fn claims(fleet: &[Daily], monday: Timestamp) -> BTreeMap<String, Claim> {
    let claim = |(number, of): (usize, &Daily)| {
        let spans = (0..7).map(|day| Span {
            start: monday + hours(day * 24 + of.from),
            end: Some(monday + hours(day * 24 + of.from + of.hours)),
        });
        let claim = Claim {
            priority: of.priority,
            spans: spans.collect(),
            ..Claim::default()
        };
        (format!("m{number}"), claim)
    };
    fleet.iter().enumerate().map(claim).collect()
}

proptest! {
    #[test]
    fn from_edge_to_edge_of_a_week_no_limit_is_ever_exceeded(
        fleet in fleet(),
        machines in 0..5_u32,
        most_hours in 0..300_u32,
    ) {
        let limits = limits(Some(machines), Some(most_hours));
        let week = week();
        let mut claims = claims(&fleet, week.start);
        let mut now = week.start;
        while now < week.end {
            let ruling = rule(&limits, &week, &claims, now);
            prop_assert!(ruling.until > now);
            let mut open = 0;
            for (name, claim) in &mut claims {
                let is_needed = claim.at(name, now).is_some();
                let was_held = claim.holds;
                claim.holds = is_needed && !ruling.waiting.contains_key(name);
                prop_assert!(!was_held || !is_needed || claim.holds, "what runs goes on");
                open += u32::from(claim.holds);
                claim.used = if claim.holds {
                    Some(week.begin(claim.used.as_ref(), now))
                } else {
                    claim.used.map(|used| week.stop(&used, now))
                };
                claim.spans.retain(|span| span.end.is_none_or(|end| end > now));
            }
            prop_assert!(open <= machines);
            // The same ones wait until the next edge.
            let middle = now + ruling.until.duration_since(now) / 2;
            let later = rule(&limits, &week, &claims, middle);
            prop_assert!(later.waiting.keys().eq(ruling.waiting.keys()));
            now = ruling.until;
        }
        let used = claims.values().filter_map(|claim| claim.used);
        let used: SignedDuration = used.map(|used| week.used(&used, week.end)).sum();
        prop_assert!(used <= hours(most_hours.into()), "{used:?}");
    }

    #[test]
    fn no_opening_exceeds_a_limit_and_none_that_fits_is_refused(
        given in given(),
        machines in prop::option::of(0..6_u32),
        most_hours in prop::option::of(0..400_u32),
        used in 0..200_i64,
    ) {
        let limits = limits(machines, most_hours);
        let names: Vec<String> = (0..given.len()).map(|it| format!("m{it:02}")).collect();
        let all: Vec<_> = given.iter().zip(&names).map(|(of, name)| Contender {
            name,
            priority: of.priority,
            holds: of.holds,
            until: of.minutes.map(|it| at(NOW) + SignedDuration::from_mins(it)),
        }).collect();
        let week = week();
        let turns_of = |all: &[Contender<'_>]| {
            turns(&limits, &week, hours(used), all, at(NOW))
        };
        let found = turns_of(&all);
        let rest = |of: &Contender<'_>| {
            of.until.unwrap_or(week.end).min(week.end).duration_since(at(NOW))
        };
        let sum = |is_counted: &dyn Fn(usize) -> bool| {
            (0..all.len()).filter(|it| is_counted(*it)).fold(hours(used), |sum, it| sum + rest(&all[it]))
        };
        let is_open = |it: usize| found[it] == Turn::Open;
        let count = (0..all.len()).filter(|it| is_open(*it)).count();
        let held = all.iter().filter(|of| of.holds).count();
        let most = machines.map_or(usize::MAX, |most| most as usize);
        let most_hours = most_hours.map_or(SignedDuration::MAX, |most| hours(most.into()));
        prop_assert!(count <= most.max(held));
        let total = sum(&is_open);
        prop_assert!(total <= most_hours.max(sum(&|it| all[it].holds)));
        for (it, of) in all.iter().enumerate() {
            match found[it] {
                Turn::Open => {}
                Turn::Wait { limit: Limit::Machines, .. } => {
                    prop_assert!(!of.holds && count >= most);
                    // Nobody passes one that waits for a place.
                    let passed = all.iter().enumerate().filter(|(other, it)| {
                        is_open(*other) && !it.holds && it.priority < of.priority
                    });
                    prop_assert_eq!(passed.count(), 0);
                }
                Turn::Wait { limit: Limit::Hours, again } => {
                    prop_assert!(!of.holds && total + rest(of) > most_hours);
                    prop_assert!(again.unwrap() > at(NOW) && again.unwrap() <= week.end);
                }
            }
        }
        // Their order is not an input.
        let mut reversed = all.clone();
        reversed.reverse();
        let mut of_reversed = turns_of(&reversed);
        of_reversed.reverse();
        prop_assert_eq!(of_reversed, found);
    }

    #[test]
    fn a_machine_is_not_refused_any_more_at_the_instant_that_was_said(
        used in 0..60_i64,
        minutes in 1..4_000_i64,
    ) {
        let limits = limits(None, Some(40));
        let of = Contender {
            name: "a",
            priority: 1,
            holds: false,
            until: Some(at(NOW) + SignedDuration::from_mins(minutes)),
        };
        let week = week();
        if let [Turn::Wait { again: Some(again), .. }] =
            turns(&limits, &week, hours(used), &[of], at(NOW))[..]
        {
            let then = Week::at(again, &TimeZone::UTC);
            let then_used = if then == week { hours(used) } else { SignedDuration::ZERO };
            if then == week || of.until.unwrap() <= again + hours(40) {
                let found = turns(&limits, &then, then_used, &[of], again);
                prop_assert_eq!(found, [Turn::Open]);
            }
            let used = hours(used);
            let before = again - SignedDuration::from_secs(1);
            if before < of.until.unwrap() {
                prop_assert_ne!(turns(&limits, &week, used, &[of], before), [Turn::Open]);
            }
        }
    }
}
