//! Local days as a grid: a row for each day, a column for each hour.

use std::fmt::Write as _;

use fivespot_drawing::ClockChange;
use fivespot_schedule::Schedule;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};

use crate::preview::human;
use crate::preview::span::Span;

const HOUR: i64 = 3_600;

/// The width of the date column.
const INDENT: usize = 16;

/// The smallest width at which hours are separated by spaces.
const MIN_SPACED_WIDTH: usize = 80;

/// The local days of a span.
#[derive(Debug)]
pub(super) struct Grid {
    first: Date,
    days: Vec<Day>,
    /// The number of days that are left out.
    more: usize,
}

#[derive(Debug)]
struct Day {
    date: Date,
    hours: [Hour; 24],
    changes: Vec<ClockChange>,
}

/// For one hour of the wall clock, in seconds: how long it lasts, how much of it is in the span,
/// and how much is wanted.
#[derive(Clone, Copy, Debug, Default)]
struct Hour {
    length: i64,
    in_span: i64,
    wanted: i64,
}

impl Grid {
    /// The first days of `span`, at most `most`. `None` beyond the end of the calendar.
    pub(super) fn of(schedule: &Schedule, span: Span, most: usize) -> Option<Self> {
        let zone = schedule.time_zone();
        let first = zone.to_datetime(span.from).date();
        let last_instant = Timestamp::from_second(span.to.as_second() - 1).ok()?;
        let last = zone.to_datetime(last_instant).date();
        let count = usize::try_from((last - first).get_days()).ok()? + 1;
        let shown = count.min(most);
        let date = |n: usize| first.checked_add(i64::try_from(n).ok()?.days()).ok();
        let days: Option<Vec<Day>> =
            (0..shown).map(|n| date(n).map(Day::empty)).collect();
        let mut grid = Self {
            first,
            days: days?,
            more: count - shown,
        };
        let start = first.to_zoned(zone.clone()).ok()?.timestamp();
        let end = date(shown)?.to_zoned(zone.clone()).ok()?.timestamp();
        let changes = ClockChange::all(zone, start, end);
        for change in &changes {
            if let Some(day) = grid.day_mut(change.earlier_reading().date()) {
                day.changes.push(*change);
            }
        }
        let mut cuts: Vec<Timestamp> = changes.iter().map(|change| change.at).collect();
        let bounds = [span.from, span.to];
        cuts.extend(bounds.into_iter().filter(|at| (start..end).contains(at)));
        let until = span.to.min(end);
        cuts.extend(schedule.transitions(span.from, until).map(|(at, _)| at));
        cuts.push(end);
        cuts.sort();
        let mut since = start;
        for until in cuts {
            grid.fill(
                schedule,
                Span {
                    from: since,
                    to: until,
                },
                span,
            )?;
            since = until;
        }
        Some(grid)
    }

    fn day_mut(&mut self, date: Date) -> Option<&mut Day> {
        let index = usize::try_from((date - self.first).get_days()).ok()?;
        self.days.get_mut(index)
    }

    /// Adds a time range without any change of the clocks or of the schedule.
    fn fill(&mut self, schedule: &Schedule, part: Span, span: Span) -> Option<()> {
        let zone = schedule.time_zone();
        let (since, until) = (part.from.as_second(), part.to.as_second());
        let offset = i64::from(zone.to_offset(part.from).seconds());
        let is_inside = (span.from..span.to).contains(&part.from);
        let is_wanted = is_inside && schedule.at(part.from).is_open();
        let mut at = since;
        while at < until {
            let next_hour = ((at + offset).div_euclid(HOUR) + 1) * HOUR - offset;
            let next = next_hour.min(until);
            let reading = zone.to_datetime(Timestamp::from_second(at).ok()?);
            let hour = usize::try_from(reading.hour()).ok()?;
            let day = self.day_mut(reading.date());
            if let Some(hour) = day.and_then(|day| day.hours.get_mut(hour)) {
                hour.length += next - at;
                hour.in_span += if is_inside { next - at } else { 0 };
                hour.wanted += if is_wanted { next - at } else { 0 };
            }
            at = next;
        }
        Some(())
    }

    /// The grid as lines for a terminal of that width. `now` is the local time.
    pub(super) fn text(&self, width: usize, now: jiff::civil::DateTime) -> String {
        let apart = if width >= MIN_SPACED_WIDTH { " " } else { "" };
        let mut lines = vec![heads(apart)];
        for day in &self.days {
            let cells = day.hours.map(|hour| hour.symbol().to_string());
            let mut line = day.date.strftime("%a %F").to_string();
            line = format!("{line:INDENT$}{}", cells.join(apart));
            line.truncate(line.trim_end().len());
            for change in &day.changes {
                line = format!("{line:63}  {}", change.short_text());
            }
            if day.date == now.date() {
                line = format!("{line:63}  now {}", now.strftime("%H:%M"));
            }
            lines.push(line);
        }
        if self.more > 0 {
            let more = human::count(self.more);
            lines.push(format!("… {more} more days; --all prints them"));
        }
        lines.push(format!(
            "{:INDENT$}# wanted  + part of the hour  . not wanted",
            ""
        ));
        let is_skipped = |day: &Day| day.hours.iter().any(|hour| hour.length == 0);
        if self.days.iter().any(is_skipped) {
            lines.push(format!("{:INDENT$}x skipped by the clocks", ""));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

/// The line with the hours above the columns.
fn heads(apart: &str) -> String {
    let step = 3 * (1 + apart.len());
    let mut line = " ".repeat(INDENT);
    for hour in (0..21).step_by(3) {
        let _ = write!(line, "{hour:<step$}");
    }
    line + "21"
}

impl Day {
    fn empty(date: Date) -> Self {
        Self {
            date,
            hours: [Hour::default(); 24],
            changes: Vec::new(),
        }
    }
}

impl Hour {
    fn symbol(self) -> char {
        match self {
            Self { length: 0, .. } => 'x',
            Self { in_span: 0, .. } => ' ',
            Self { wanted: 0, .. } => '.',
            Self {
                in_span, wanted, ..
            } if in_span == wanted => '#',
            Self { .. } => '+',
        }
    }
}
