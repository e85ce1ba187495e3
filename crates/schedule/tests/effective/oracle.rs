//! An independent oracle: when a machine is wanted and needed, minute by minute. It follows the
//! text of the contract and uses no code of the crate under test.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

pub(crate) const MINUTE: i64 = 60;
/// In minutes.
const THREE_DAYS: usize = 3 * 24 * 60;

/// A schedule in parts with public fields.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) base: Base,
    pub(crate) exceptions: Vec<Exception>,
    pub(crate) overrides: Vec<Override>,
    /// Minutes.
    pub(crate) lead_time: i64,
    /// Minutes.
    pub(crate) early_end: i64,
}

#[derive(Debug, Clone)]
pub(crate) enum Base {
    /// Days, with Monday as 0, and hours.
    Lists {
        days: Vec<i8>,
        hours: Vec<i8>,
    },
    /// Every day at these minutes of these hours; the length of a window in minutes.
    Cron {
        minutes: Vec<i8>,
        hours: Vec<i8>,
        lasts: i64,
    },
    Windows(Vec<Window>),
}

#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) days: Vec<i8>,
    /// Hour and minute.
    pub(crate) start: (i8, i8),
    pub(crate) end: End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    At(i8, i8),
    /// Minutes.
    After(i64),
}

#[derive(Debug, Clone)]
pub(crate) struct Exception {
    pub(crate) runs: bool,
    pub(crate) first: Date,
    pub(crate) last: Date,
    pub(crate) every_year: Vec<(i8, i8)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Run,
    Hold,
    Stop,
}

#[derive(Debug, Clone)]
pub(crate) struct Override {
    pub(crate) mode: Mode,
    /// Second.
    pub(crate) start: Option<i64>,
    pub(crate) end: i64,
}

/// The wall clock of a zone, minute by minute.
pub(crate) struct WallClock {
    pub(crate) first: i64,
    pub(crate) shown: Vec<DateTime>,
}

impl WallClock {
    /// From one second to another, both at full minutes.
    pub(crate) fn new(zone: &TimeZone, from: i64, to: i64) -> Self {
        let minutes = (from..to).step_by(MINUTE as usize);
        let shown =
            minutes.map(|at| zone.to_datetime(Timestamp::from_second(at).unwrap()));
        Self {
            first: from,
            shown: shown.collect(),
        }
    }

    fn second(&self, minute: usize) -> i64 {
        self.first + minute as i64 * MINUTE
    }

    /// The first minute at which the clock shows a time or a later one.
    fn start_of(&self, time: DateTime) -> Option<usize> {
        let from = self.well_before(time);
        let shown = self.shown[from..].iter();
        Some(from + shown.take(THREE_DAYS).position(|shown| *shown >= time)?)
    }

    /// The last minute at which the clock shows a time; if it never does, the first minute
    /// after it.
    fn end_of(&self, time: DateTime) -> Option<usize> {
        let from = self.well_before(time);
        let to = self.shown.len().min(from + THREE_DAYS);
        let last = self.shown[from..to]
            .iter()
            .rposition(|shown| *shown == time);
        last.map(|last| from + last).or_else(|| self.start_of(time))
    }

    /// A minute about two days before the clock shows a time.
    fn well_before(&self, time: DateTime) -> usize {
        let days = (time.date() - self.shown[0].date()).get_days() - 2;
        let minutes = usize::try_from(days).unwrap_or_default() * 24 * 60;
        minutes.min(self.shown.len())
    }

    /// Marks the minutes in which the base schedule wants a machine.
    fn base(&self, base: &Base) -> Vec<bool> {
        let mut wanted = vec![false; self.shown.len()];
        let mut mark = |start: usize, end: usize| {
            let end = end.min(wanted.len());
            if start < end {
                wanted[start..end].fill(true);
            }
        };
        match base {
            Base::Lists { days, hours } => {
                for (minute, shown) in self.shown.iter().enumerate() {
                    let day = shown.weekday().to_monday_zero_offset();
                    if days.contains(&day) && hours.contains(&shown.hour()) {
                        mark(minute, minute + 1);
                    }
                }
            }
            Base::Cron {
                minutes,
                hours,
                lasts,
            } => {
                let mut last: Option<DateTime> = None;
                for (minute, shown) in self.shown.iter().enumerate() {
                    let passed = last.map_or(*shown, |last| last + 1.minute());
                    let mut reading = if passed < *shown { passed } else { *shown };
                    while reading <= *shown {
                        if minutes.contains(&reading.minute())
                            && hours.contains(&reading.hour())
                        {
                            mark(minute, minute + *lasts as usize);
                        }
                        reading += 1.minute();
                    }
                    last = Some(*shown);
                }
            }
            Base::Windows(windows) => {
                let first = self.shown[0].date();
                let last = self.shown[self.shown.len() - 1].date();
                for window in windows {
                    let mut date = first;
                    while date <= last {
                        if window
                            .days
                            .contains(&date.weekday().to_monday_zero_offset())
                            && let Some((start, end)) = self.window_on(window, date)
                        {
                            mark(start, end);
                        }
                        date = date.tomorrow().unwrap();
                    }
                }
            }
        }
        wanted
    }

    fn window_on(&self, window: &Window, date: Date) -> Option<(usize, usize)> {
        let at = |(hour, minute)| date.to_datetime(Time::constant(hour, minute, 0, 0));
        let start = self.start_of(at(window.start))?;
        let end = match window.end {
            End::After(minutes) => start + minutes as usize,
            End::At(hour, minute) => {
                let end = at((hour, minute));
                let is_next_day = end <= at(window.start);
                let end = if is_next_day { end + 1.day() } else { end };
                self.end_of(end)?
            }
        };
        Some((start, end))
    }

    /// Marks the minutes in which the effective schedule wants a machine.
    pub(crate) fn wanted(&self, plan: &Plan) -> Vec<bool> {
        let base = self.base(&plan.base);
        let decide = |(minute, base): (usize, bool)| {
            let at = self.second(minute);
            let in_force = plan
                .overrides
                .iter()
                .filter(|it| it.start.is_none_or(|start| start <= at) && at < it.end);
            match in_force.map(|it| it.mode).max() {
                Some(Mode::Run) => return true,
                Some(Mode::Stop) => return false,
                Some(Mode::Hold) | None => {}
            }
            let date = self.shown[minute].date();
            let exception = plan.exceptions.iter().find(|it| {
                it.first <= date && date <= it.last
                    || it.every_year.contains(&(date.month(), date.day()))
            });
            exception.map_or(base, |it| it.runs)
        };
        base.into_iter().enumerate().map(decide).collect()
    }

    /// Marks the minutes in which a machine is needed, given those in which it is wanted. The
    /// state of the first minute is assumed for all time before, and that of the last for all
    /// time after.
    pub(crate) fn needed(plan: &Plan, wanted: &[bool]) -> Vec<bool> {
        let mut needed = vec![false; wanted.len()];
        let mut minute = 0;
        while minute < wanted.len() {
            if !wanted[minute] {
                minute += 1;
                continue;
            }
            let length = wanted[minute..].iter().take_while(|it| **it).count();
            let (opens, closes) = (minute, minute + length);
            let start = if opens == 0 {
                0
            } else {
                opens.saturating_sub(plan.lead_time as usize)
            };
            let end = if closes == wanted.len() {
                closes
            } else {
                closes.saturating_sub(plan.early_end as usize)
            };
            let is_cut = opens == 0 || closes == wanted.len();
            let is_long = is_cut || length > plan.early_end as usize;
            if is_long && start < end {
                needed[start..end].fill(true);
            }
            minute = closes;
        }
        needed
    }
}

/// The seconds strictly between two seconds at which marks change, with the new value.
pub(crate) fn flips(
    clock: &WallClock,
    marks: &[bool],
    span: (i64, i64),
) -> Vec<(i64, bool)> {
    let pairs = marks.windows(2).enumerate();
    let changes = pairs.filter(|(_, pair)| pair[0] != pair[1]);
    changes
        .map(|(minute, pair)| (clock.second(minute + 1), pair[1]))
        .filter(|(at, _)| span.0 < *at && *at < span.1)
        .collect()
}

pub(crate) fn mark_at(clock: &WallClock, marks: &[bool], at: i64) -> bool {
    marks[((at - clock.first) / MINUTE) as usize]
}

pub(crate) fn timestamp(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
}
