//! The data of a picture: rows of spans.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::Kind;
use crate::axis::Axis;

/// A picture of machines over a time range.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The title.
    pub title: String,
    /// The first instant shown.
    pub from: Timestamp,
    /// The first instant after the range.
    pub to: Timestamp,
    /// The time zone of the days and hours along the top.
    pub zone: TimeZone,
    /// The current time, drawn as a line. `None` if it is not shown.
    pub now: Option<Timestamp>,
    /// One row for each machine, from top to bottom.
    pub rows: Vec<Row>,
    /// The number of wanted machines per column ([`Fleet::columns`]), for a fleet with more
    /// machines than rows. `None` if every machine has a row.
    pub wanted: Option<Vec<u32>>,
    /// The width in pixels that a part of a page has for the plot. `None` if it is not known.
    pub width: Option<u32>,
}

/// One machine.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name at the left.
    pub name: String,
    /// A description of its schedule.
    pub note: String,
    /// The time zone of its schedule. Clock changes of this zone are marked in the row.
    pub zone: TimeZone,
    /// The target of the link on its name in a page.
    pub link: Option<String>,
    /// The planned spans. Spans that are wanted ([`Kind::is_wanted`]) do not overlap.
    pub planned: Vec<Span>,
    /// The observed spans.
    pub observed: Vec<Span>,
    /// Whether it is no machine, but the heading of the rows below.
    pub is_heading: bool,
}

/// A time range of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first instant.
    pub since: Timestamp,
    /// The first instant after the span.
    pub until: Timestamp,
    /// Its kind.
    pub kind: Kind,
    /// The name of the exception or override that causes it. Empty for windows.
    pub name: String,
}

impl Span {
    /// The part of it within `from..to` in seconds, as a half-open range. Empty if there is none.
    pub(crate) fn clamped(&self, from: i64, to: i64) -> std::ops::Range<i64> {
        self.since.as_second().max(from)..self.until.as_second().min(to)
    }
}

impl Row {
    /// A heading of the rows below, up to the next one.
    pub fn heading(name: String) -> Self {
        Self {
            name,
            note: String::new(),
            zone: TimeZone::UTC,
            link: None,
            planned: Vec::new(),
            observed: Vec::new(),
            is_heading: true,
        }
    }

    /// The number of seconds of `from..to` in which the machine is wanted.
    pub fn wanted_seconds(&self, from: Timestamp, to: Timestamp) -> i64 {
        let spans = self.planned.iter().filter(|span| span.kind.is_wanted());
        spans
            .map(|span| {
                let part = span.clamped(from.as_second(), to.as_second());
                (part.end - part.start).max(0)
            })
            .sum()
    }
}

impl Fleet {
    /// The number of columns of a picture of this range: one for each hour, fewer if an hour would
    /// be narrower than a pixel.
    pub fn columns(from: Timestamp, to: Timestamp) -> usize {
        Axis::of(from, to).columns()
    }

    /// The length of a column of a picture of this range.
    pub fn column_length(from: Timestamp, to: Timestamp) -> SignedDuration {
        SignedDuration::from_secs(Axis::of(from, to).column())
    }

    /// The number of wanted machines per column. The range is divided into `columns` of equal
    /// length; the value of a column is the largest number of machines wanted at the same time in
    /// it.
    pub fn wanted_per_column(&self, columns: usize) -> Vec<u32> {
        let (from, to) = (self.from.as_second(), self.to.as_second());
        let mut changes: Vec<(i64, i32)> = Vec::new();
        for span in self.rows.iter().flat_map(|row| &row.planned) {
            let part = span.clamped(from, to);
            if span.kind.is_wanted() && !part.is_empty() {
                changes.extend([(part.start, 1), (part.end, -1)]);
            }
        }
        // At the same instant, spans that end (-1) are counted before spans that begin (+1).
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

    /// The number of wanted machines in each column of the picture.
    pub(crate) fn counts(&self) -> Vec<u32> {
        let counted = || self.wanted_per_column(Self::columns(self.from, self.to));
        self.wanted.clone().unwrap_or_else(counted)
    }

    /// The kinds that occur, in the order of the legend.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let spans = self
            .rows
            .iter()
            .flat_map(|row| row.planned.iter().chain(&row.observed));
        let (from, to) = (self.from.as_second(), self.to.as_second());
        let shown = spans.filter(|span| !span.clamped(from, to).is_empty());
        let kinds: BTreeSet<Kind> = shown.map(|span| span.kind).collect();
        kinds.into_iter().collect()
    }

    /// Whether any machine has observed spans.
    pub(crate) fn is_observed(&self) -> bool {
        self.rows.iter().any(|row| !row.observed.is_empty())
    }

    /// A description of the picture in two sentences, for screen readers.
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
            machines(self.rows.iter().filter(|row| !row.is_heading).count()),
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

/// `Mon 2026-03-09 00:00`, in the local time of a zone.
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
            width: None,
            rows: rows
                .into_iter()
                .map(|planned| Row {
                    name: String::new(),
                    note: String::new(),
                    zone: TimeZone::UTC,
                    link: None,
                    planned,
                    observed: Vec::new(),
                    is_heading: false,
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
    fn only_spans_within_the_range_count_as_wanted_time() {
        let fleet = fleet(vec![vec![
            span(-10, 5, Kind::Window),
            span(30, 50, Kind::ExceptionRun),
            span(10, 20, Kind::OverrideHold),
        ]]);
        assert_eq!(fleet.rows[0].wanted_seconds(fleet.from, fleet.to), 15);
    }
}
