//! What is drawn: rows of spans.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::Kind;
use crate::axis::Axis;

/// A picture of machines over a stretch of time.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// What the picture is called.
    pub title: String,
    /// The first instant shown.
    pub from: Timestamp,
    /// The first instant no longer shown.
    pub to: Timestamp,
    /// The time zone of the days and hours along the top.
    pub zone: TimeZone,
    /// Where the line of now goes; none if it is not shown.
    pub now: Option<Timestamp>,
    /// One row for each machine, from top to bottom.
    pub rows: Vec<Row>,
    /// How many machines are wanted in each column ([`Fleet::columns`]), where there are more than
    /// have a row; none where the rows are all.
    pub wanted: Option<Vec<u32>>,
}

/// One machine.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name at the left.
    pub name: String,
    /// Its schedule in words.
    pub note: String,
    /// The zone in which its schedule is read; its clock changes are marked in the row.
    pub zone: TimeZone,
    /// Where the name leads in a page.
    pub link: Option<String>,
    /// What is planned. Spans that are wanted ([`Kind::is_wanted`]) do not overlap each other.
    pub planned: Vec<Span>,
    /// What was observed.
    pub observed: Vec<Span>,
}

/// A stretch of time of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first instant.
    pub since: Timestamp,
    /// The first instant after it.
    pub until: Timestamp,
    /// What it means.
    pub kind: Kind,
    /// The name of the exception or override that causes it; empty for plain windows.
    pub name: String,
}

impl Span {
    /// The seconds of it within `from..to`, as a half-open range; empty if there are none.
    pub(crate) fn within(&self, from: i64, to: i64) -> std::ops::Range<i64> {
        self.since.as_second().max(from)..self.until.as_second().min(to)
    }
}

impl Row {
    /// For how many seconds of `from..to` the machine is wanted.
    pub fn wanted_seconds(&self, from: Timestamp, to: Timestamp) -> i64 {
        let spans = self.planned.iter().filter(|span| span.kind.is_wanted());
        spans
            .map(|span| {
                let part = span.within(from.as_second(), to.as_second());
                (part.end - part.start).max(0)
            })
            .sum()
    }
}

impl Fleet {
    /// The number of columns of a picture from one instant to another: one for each hour, fewer
    /// where hours would be narrower than a pixel.
    pub fn columns(from: Timestamp, to: Timestamp) -> usize {
        Axis::of(from, to).columns()
    }

    /// How long a column of such a picture is.
    pub fn column_length(from: Timestamp, to: Timestamp) -> SignedDuration {
        SignedDuration::from_secs(Axis::of(from, to).column())
    }

    /// How many machines are wanted: the time is divided into `columns` of equal length, and each
    /// has the largest number that is wanted at the same time within it.
    pub fn wanted_per_column(&self, columns: usize) -> Vec<u32> {
        let (from, to) = (self.from.as_second(), self.to.as_second());
        let mut changes: Vec<(i64, i32)> = Vec::new();
        for span in self.rows.iter().flat_map(|row| &row.planned) {
            let part = span.within(from, to);
            if span.kind.is_wanted() && !part.is_empty() {
                changes.extend([(part.start, 1), (part.end, -1)]);
            }
        }
        // At the same instant one that closes makes room before another opens.
        changes.sort_unstable();
        let mut changes = changes.into_iter().peekable();
        let mut most = vec![0; columns];
        let mut wanted = 0;
        let count = i64::try_from(columns).unwrap_or(i64::MAX).max(1);
        for (column, most) in (0..count).zip(&mut most) {
            let start = from + (to - from) * column / count;
            let end = from + (to - from) * (column + 1) / count;
            while changes.peek().is_some_and(|(at, _)| *at <= start) {
                wanted += changes.next().map_or(0, |(_, change)| change);
            }
            *most = wanted;
            while changes.peek().is_some_and(|(at, _)| *at < end) {
                wanted += changes.next().map_or(0, |(_, change)| change);
                *most = wanted.max(*most);
            }
        }
        most.into_iter()
            .map(|number| u32::try_from(number).unwrap_or(0))
            .collect()
    }

    /// How many machines are wanted in each column of the picture.
    pub(crate) fn counts(&self) -> Vec<u32> {
        let counted = || self.wanted_per_column(Self::columns(self.from, self.to));
        self.wanted.clone().unwrap_or_else(counted)
    }

    /// The kinds that occur, in the order of a legend.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let spans = self
            .rows
            .iter()
            .flat_map(|row| row.planned.iter().chain(&row.observed));
        let (from, to) = (self.from.as_second(), self.to.as_second());
        let shown = spans.filter(|span| !span.within(from, to).is_empty());
        let kinds: BTreeSet<Kind> = shown.map(|span| span.kind).collect();
        kinds.into_iter().collect()
    }

    /// Whether anything was observed of any machine.
    pub(crate) fn is_observed(&self) -> bool {
        self.rows.iter().any(|row| !row.observed.is_empty())
    }

    /// The picture in two sentences, for those who cannot see it.
    pub(crate) fn description(&self) -> String {
        let seconds: i64 = self
            .rows
            .iter()
            .map(|row| row.wanted_seconds(self.from, self.to))
            .sum();
        let hours = (self.to.as_second() - self.from.as_second()) / 3600;
        let most =
            self.wanted_per_column(usize::try_from(hours).unwrap_or(0).clamp(1, 10_000));
        format!(
            "{} from {} to {}, {}. Wanted for {} machine-hours; at most {} at the same time.",
            machines(self.rows.len()),
            day(self.from, &self.zone),
            day(self.to, &self.zone),
            zone_name(&self.zone),
            (seconds + 1800) / 3600,
            most.iter().max().unwrap_or(&0)
        )
    }
}

/// `1 machine`, `12 machines`.
pub(crate) fn machines(count: usize) -> String {
    if count == 1 {
        "1 machine".to_owned()
    } else {
        format!("{count} machines")
    }
}

/// `Mon 2026-03-09 00:00`, by the wall clock of a zone.
pub(crate) fn day(at: Timestamp, zone: &TimeZone) -> String {
    zone.to_datetime(at).strftime("%a %F %H:%M").to_string()
}

/// The zone's name in the tz database.
pub(crate) fn zone_name(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(since: i64, until: i64, kind: Kind) -> Span {
        Span {
            since: Timestamp::from_second(since).unwrap(),
            until: Timestamp::from_second(until).unwrap(),
            kind,
            name: String::new(),
        }
    }

    fn fleet(rows: Vec<Vec<Span>>) -> Fleet {
        Fleet {
            title: String::new(),
            from: Timestamp::from_second(0).unwrap(),
            to: Timestamp::from_second(40).unwrap(),
            zone: TimeZone::UTC,
            now: None,
            wanted: None,
            rows: rows
                .into_iter()
                .map(|planned| Row {
                    name: String::new(),
                    note: String::new(),
                    zone: TimeZone::UTC,
                    link: None,
                    planned,
                    observed: Vec::new(),
                })
                .collect(),
        }
    }

    #[test]
    fn a_column_has_the_most_that_are_wanted_at_once_and_stops_do_not_count() {
        let rows = vec![
            vec![span(-10, 5, Kind::Window), span(15, 20, Kind::OverrideRun)],
            vec![span(5, 9, Kind::Window), span(12, 30, Kind::Window)],
            vec![span(0, 40, Kind::ExceptionStop)],
            vec![span(35, 99, Kind::ExceptionRun)],
        ];
        assert_eq!(fleet(rows).wanted_per_column(4), [1, 2, 1, 1]);
        assert_eq!(fleet(Vec::new()).wanted_per_column(2), [0, 0]);
        assert_eq!(fleet(Vec::new()).wanted_per_column(0), [0; 0]);
    }

    #[test]
    fn only_what_is_shown_counts_as_wanted_time() {
        let fleet = fleet(vec![vec![
            span(-10, 5, Kind::Window),
            span(30, 50, Kind::ExceptionRun),
            span(10, 20, Kind::OverrideHold),
        ]]);
        assert_eq!(fleet.rows[0].wanted_seconds(fleet.from, fleet.to), 15);
    }
}
