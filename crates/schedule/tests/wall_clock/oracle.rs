//! An independent oracle: schedules evaluated by stepping along the wall clock.
//!
//! It is slow and simple on purpose, and uses no code of the crate under test.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A schedule in parts, which can be formatted as text and inspected.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    Weekly {
        days: Vec<(u8, u8)>,
        hours: Vec<(u8, u8)>,
    },
    Cron {
        fields: [Vec<Entry>; 5],
        seconds: i64,
    },
}

/// One entry of a cron field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry {
    All,
    Every(u8),
    Only(u8),
    Range { first: u8, last: u8, step: u8 },
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl Entry {
    fn text(self) -> String {
        match self {
            Self::All => "*".to_owned(),
            Self::Every(step) => format!("*/{step}"),
            Self::Only(value) => value.to_string(),
            Self::Range {
                first,
                last,
                step: 1,
            } => format!("{first}-{last}"),
            Self::Range { first, last, step } => format!("{first}-{last}/{step}"),
        }
    }

    fn is_starred(self) -> bool {
        matches!(self, Self::All | Self::Every(_))
    }

    fn matches(self, least: i8, value: i8) -> bool {
        let (least, value) = (least.unsigned_abs(), value.unsigned_abs());
        match self {
            Self::All => true,
            Self::Every(step) => (value - least).is_multiple_of(step),
            Self::Only(only) => only == value,
            Self::Range { first, last, step } => {
                (first..=last).contains(&value) && (value - first).is_multiple_of(step)
            }
        }
    }
}

fn on_dial((first, last): (u8, u8), value: i8) -> bool {
    let value = value.unsigned_abs();
    if first <= last {
        first <= value && value <= last
    } else {
        value >= first || value <= last
    }
}

pub(crate) fn day_entries(days: &[(u8, u8)]) -> Vec<String> {
    let name = |day: u8| DAYS[usize::from(day)];
    days.iter()
        .map(|&(a, b)| format!("{}-{}", name(a), name(b)))
        .collect()
}

pub(crate) fn hour_entries(hours: &[(u8, u8)]) -> Vec<String> {
    hours.iter().map(|(a, b)| format!("{a}-{b}")).collect()
}

pub(crate) fn expression(fields: &[Vec<Entry>; 5]) -> String {
    let field = |entries: &Vec<Entry>| {
        entries
            .iter()
            .map(|entry| entry.text())
            .collect::<Vec<_>>()
            .join(",")
    };
    fields.iter().map(field).collect::<Vec<_>>().join(" ")
}

fn fires_at(fields: &[Vec<Entry>; 5], local: DateTime) -> bool {
    let [minute, hour, date, month, weekday] = fields;
    let any = |entries: &[Entry], least, value| {
        entries.iter().any(|entry| entry.matches(least, value))
    };
    let day = local.weekday().to_sunday_zero_offset();
    let on_date = any(date, 1, local.day());
    let on_weekday = any(weekday, 0, day)
        || day == 0
            && weekday
                .iter()
                .any(|entry| !entry.is_starred() && entry.matches(0, 7));
    let on_day = if date[0].is_starred() || weekday[0].is_starred() {
        on_date && on_weekday
    } else {
        on_date || on_weekday
    };
    local.second() == 0
        && any(minute, 0, local.minute())
        && any(hour, 0, local.hour())
        && any(month, 1, local.month())
        && on_day
}

/// The seconds inside `span` at which the plan changes, and whether it is wanted at the start
/// of `span`. It checks every `step` seconds. The zone's clock may change only at multiples of
/// `step`, and must show whole minutes only at multiples of it.
pub(crate) fn flips(
    plan: &Plan,
    zone: &TimeZone,
    span: (i64, i64),
    step: i64,
) -> (bool, Vec<(i64, bool)>) {
    let (from, to) = span;
    let windows = match plan {
        Plan::Weekly { days, hours } => every(from, to, step)
            .filter(|&at| {
                let local = shown(zone, at);
                let day = local.weekday().to_monday_zero_offset();
                days.iter().any(|range| on_dial(*range, day))
                    && hours.iter().any(|range| on_dial(*range, local.hour()))
            })
            .map(|at| (at, at + step))
            .collect::<Vec<_>>(),
        Plan::Cron { fields, seconds } => every(from - seconds - step, to, step)
            .filter(|&at| readings(zone, at, step).any(|local| fires_at(fields, local)))
            .map(|at| (at, at + seconds))
            .collect(),
    };
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for (opens, closes) in windows {
        match merged.last_mut() {
            Some(last) if opens <= last.1 => last.1 = closes.max(last.1),
            _ => merged.push((opens, closes)),
        }
    }
    let wanted = merged
        .iter()
        .any(|&(opens, closes)| opens <= from && from < closes);
    let edges = merged
        .iter()
        .flat_map(|&(opens, closes)| [(opens, true), (closes, false)]);
    (
        wanted,
        edges.filter(|&(at, _)| from < at && at < to).collect(),
    )
}

fn every(from: i64, to: i64, step: i64) -> impl Iterator<Item = i64> {
    let first = from.div_euclid(step) * step;
    (0..)
        .map(move |n| first + n * step)
        .take_while(move |at| *at < to)
}

fn shown(zone: &TimeZone, at: i64) -> DateTime {
    zone.to_datetime(Timestamp::from_second(at).unwrap())
}

/// The readings of the clock at an instant, preceded by all that it skipped since the previous
/// step.
fn readings(zone: &TimeZone, at: i64, step: i64) -> impl Iterator<Item = DateTime> {
    let (before, now) = (shown(zone, at - step), shown(zone, at));
    let step = SignedDuration::from_secs(step);
    let mut reading = if now > before { before } else { now - step };
    std::iter::from_fn(move || {
        reading += step;
        (reading <= now).then_some(reading)
    })
}
