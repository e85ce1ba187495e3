//! A week of local days as a grid: a row for each day, a column for each hour.

use std::fmt;

use fivespot_schedule::Schedule;
use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};

use crate::preview::human::ClockChange;

const HOUR: i64 = 3_600;

/// A week of local days, beginning with the one that contains an instant.
#[derive(Debug)]
pub(super) struct Grid {
    days: Vec<Day>,
}

#[derive(Debug)]
struct Day {
    date: Date,
    hours: [Hour; 24],
    changes: Vec<ClockChange>,
}

/// How long the wall clock shows an hour, and how much of that is wanted, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Hour {
    shown: i64,
    wanted: i64,
}

impl Grid {
    /// The seven days from the local day of `from` on; none where the calendar ends.
    pub(super) fn of(schedule: &Schedule, from: Timestamp) -> Option<Self> {
        let zone = schedule.time_zone();
        let first = zone.to_datetime(from).date();
        let dates = (0..7).map(|n| first.checked_add(n.days()).ok());
        let mut days: Vec<Day> = dates
            .map(|date| Some(Day::empty(date?)))
            .collect::<Option<_>>()?;
        let start = first.to_zoned(zone.clone()).ok()?.timestamp();
        let end = first
            .checked_add(7.days())
            .ok()?
            .to_zoned(zone.clone())
            .ok()?
            .timestamp();
        let changes = ClockChange::all(zone, start, end);
        for change in &changes {
            let date = change.earlier_reading().date();
            if let Some(day) = days.iter_mut().find(|day| day.date == date) {
                day.changes.push(*change);
            }
        }
        let mut cuts: Vec<Timestamp> = changes.iter().map(|change| change.at).collect();
        cuts.extend(schedule.transitions(start, end).map(|(at, _)| at));
        cuts.push(end);
        cuts.sort();
        let mut since = start;
        for until in cuts {
            fill(&mut days, schedule, (since, until))?;
            since = until;
        }
        Some(Self { days })
    }
}

/// Adds a stretch of time without any change, of the clocks or of the schedule.
fn fill(
    days: &mut [Day],
    schedule: &Schedule,
    stretch: (Timestamp, Timestamp),
) -> Option<()> {
    let (since, until) = (stretch.0.as_second(), stretch.1.as_second());
    let offset = i64::from(schedule.time_zone().to_offset(stretch.0).seconds());
    let wanted = schedule.at(stretch.0).is_open();
    let mut at = since;
    while at < until {
        let next_hour = ((at + offset).div_euclid(HOUR) + 1) * HOUR - offset;
        let next = next_hour.min(until);
        let reading = schedule
            .time_zone()
            .to_datetime(Timestamp::from_second(at).ok()?);
        let day = days.iter_mut().find(|day| day.date == reading.date());
        let hour = usize::try_from(reading.hour()).ok();
        if let Some(hour) = day
            .zip(hour)
            .and_then(|(day, hour)| day.hours.get_mut(hour))
        {
            hour.shown += next - at;
            hour.wanted += if wanted { next - at } else { 0 };
        }
        at = next;
    }
    Some(())
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
            Self { shown: 0, .. } => 'x',
            Self { wanted: 0, .. } => '.',
            Self { shown, wanted } if shown == wanted => '#',
            Self { .. } => '+',
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const INDENT: usize = 16;
        write!(f, "{:INDENT$}", "")?;
        for hour in (0..21).step_by(3) {
            write!(f, "{hour:<6}")?;
        }
        writeln!(f, "21")?;
        for day in &self.days {
            let cells: Vec<String> = day
                .hours
                .iter()
                .map(|hour| hour.symbol().to_string())
                .collect();
            write!(
                f,
                "{:<INDENT$}{}",
                day.date.strftime("%a %F").to_string(),
                cells.join(" ")
            )?;
            for change in &day.changes {
                write!(f, "  {}", change.text())?;
            }
            writeln!(f)?;
        }
        write!(
            f,
            "{:INDENT$}# wanted  + part of the hour  . not wanted",
            ""
        )?;
        let is_skipped = |day: &Day| day.hours.iter().any(|hour| hour.shown == 0);
        if self.days.iter().any(is_skipped) {
            write!(f, "  x skipped by the clocks")?;
        }
        writeln!(f)
    }
}
