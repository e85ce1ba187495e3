//! The planned spans of a schedule.

use fivespot_schedule::{DecidedBy, ExceptionAction, OverrideMode, Part, Schedule};
use jiff::{SignedDuration, Timestamp};

use crate::{Kind, Span};

/// The planned spans of a schedule within `from..to`, cut off at both ends, in order: windows,
/// exceptions and overrides. A span of [`Kind::OverrideHold`] overlaps the spans that it holds.
pub fn spans(schedule: &Schedule, from: Timestamp, to: Timestamp) -> Vec<Span> {
    schedule.parts(from, to).flat_map(of_part).collect()
}

fn of_part(part: Part<'_>) -> impl Iterator<Item = Span> {
    let span = |kind, name: &str| Span {
        since: part.since,
        until: part.until,
        kind,
        name: name.to_owned(),
    };
    let decided = match part.decided_by {
        DecidedBy::Base => part.wanted.then(|| span(Kind::Window, "")),
        DecidedBy::Exception(exception) => {
            let kind = match exception.action {
                ExceptionAction::Run => Kind::ExceptionRun,
                ExceptionAction::Stop | ExceptionAction::StopFrom { .. } => {
                    Kind::ExceptionStop
                }
            };
            Some(span(kind, &exception.name))
        }
        DecidedBy::Override(by) => {
            let kind = match by.mode {
                OverrideMode::Stop => Kind::OverrideStop,
                OverrideMode::Run | OverrideMode::Hold => Kind::OverrideRun,
            };
            Some(span(kind, &by.name))
        }
    };
    let hold = part.hold.map(|by| span(Kind::OverrideHold, &by.name));
    decided.into_iter().chain(hold)
}

/// For each of `columns` columns of `length`, beginning at `from`, whether the schedule wants a
/// machine at some time in it.
///
/// Queries the schedule at most three times for each column, however often it changes.
pub fn wanted_columns(
    schedule: &Schedule,
    from: Timestamp,
    length: SignedDuration,
    columns: usize,
) -> Vec<bool> {
    let mut wanted = vec![false; columns];
    let length = length.as_secs().max(1);
    let start = from.as_second();
    let column = |at: i64| usize::try_from((at - start) / length).unwrap_or(usize::MAX);
    let count = i64::try_from(columns).unwrap_or(i64::MAX);
    let end = start.saturating_add(length.saturating_mul(count));
    let mut at = start;
    while at < end {
        let Ok(instant) = Timestamp::from_second(at) else {
            break;
        };
        let window = schedule.at(instant);
        let until = window
            .until()
            .map_or(end, |until| until.as_second().min(end));
        if window.is_open() {
            let last = column(until - 1);
            if let Some(open) = wanted.get_mut(column(at)..=last) {
                open.fill(true);
            }
            // Further changes within that column do not matter.
            let next = start + (i64::try_from(last).unwrap_or(count) + 1) * length;
            at = until.max(next.min(end));
        } else {
            at = until;
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use fivespot_schedule::{DateEntry, Exception, Override};

    use super::*;

    #[test]
    fn windows_are_cut_off_at_the_ends() {
        let night = Schedule::weekly(&["mon-sun"], &["22-1"], "UTC").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (from, to) = (at("2026-03-06T00:30:00Z"), at("2026-03-07T01:00:00Z"));
        let spans: Vec<_> = spans(&night, from, to)
            .iter()
            .map(|span| (span.since, span.until))
            .collect();
        let first = (from, at("2026-03-06T02:00:00Z"));
        assert_eq!(spans, [first, (at("2026-03-06T22:00:00Z"), to)]);
    }

    #[test]
    fn exceptions_and_overrides_are_spans_of_their_own() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let by = |name: &str, mode, start: &str, end: &str| Override {
            name: name.to_owned(),
            mode,
            start: Some(at(start)),
            end: at(end),
            created: None,
        };
        let holiday = Exception {
            name: "holiday".to_owned(),
            action: ExceptionAction::Stop,
            dates: [DateEntry::parse("2026-03-07").unwrap()]
                .into_iter()
                .collect(),
        };
        let schedule = Schedule::weekly(&["mon-sun"], &["9-17"], "UTC")
            .unwrap()
            .with_exceptions(vec![holiday])
            .with_overrides(vec![
                by(
                    "late",
                    OverrideMode::Run,
                    "2026-03-06T17:00:00Z",
                    "2026-03-06T20:00:00Z",
                ),
                by(
                    "wait",
                    OverrideMode::Hold,
                    "2026-03-08T10:00:00Z",
                    "2026-03-08T11:00:00Z",
                ),
            ]);
        let (from, to) = (at("2026-03-06T00:00:00Z"), at("2026-03-09T00:00:00Z"));
        let spans: Vec<_> = spans(&schedule, from, to)
            .iter()
            .map(|it| format!("{} {} {:?} {}", it.since, it.until, it.kind, it.name))
            .collect();
        assert_eq!(
            spans,
            [
                "2026-03-06T09:00:00Z 2026-03-06T17:00:00Z Window ",
                "2026-03-06T17:00:00Z 2026-03-06T20:00:00Z OverrideRun late",
                "2026-03-07T00:00:00Z 2026-03-08T00:00:00Z ExceptionStop holiday",
                "2026-03-08T09:00:00Z 2026-03-08T10:00:00Z Window ",
                "2026-03-08T10:00:00Z 2026-03-08T11:00:00Z Window ",
                "2026-03-08T10:00:00Z 2026-03-08T11:00:00Z OverrideHold wait",
                "2026-03-08T11:00:00Z 2026-03-08T18:00:00Z Window ",
            ]
        );
    }

    #[test]
    fn a_column_counts_where_a_machine_is_wanted_at_some_time_in_it() {
        let restless = Schedule::cron("*/2 3-4 * * *", Some("1m"), "UTC").unwrap();
        let from = "2026-03-06T00:30:00Z".parse().unwrap();
        let hours = wanted_columns(&restless, from, SignedDuration::from_hours(1), 6);
        assert_eq!(hours, [false, false, true, true, true, false]);
    }
}
