//! Windows with a start and an end in minutes, on days of the week.
//!
//! A window belongs to the local day on which it starts. Local times are seconds since
//! 1970-01-01 00:00 on the wall clock, instants are seconds since that time in UTC.

use jiff::civil::Weekday;

use crate::clock::{Clock, OFFSET_MARGIN};
use crate::duration::{Duration, OutOfBounds};
use crate::next_change::{self, DAY, State};
use crate::offset_period::OffsetPeriod;
use crate::parse::{ParseError, Token};
use crate::week::Days;
use crate::{Error, MAX_WINDOW, MIN_WINDOW, union};

const MINUTE: i64 = 60;
/// In days.
const WEEK: i64 = 7;

/// A window of a schedule as text.
#[derive(Debug, Clone, Copy)]
pub struct WindowText<'t, D> {
    /// The name, unique in its schedule.
    pub name: &'t str,
    /// The days on which it starts, as in [`Schedule::weekly`](crate::Schedule::weekly); every
    /// day if empty.
    pub days: &'t [D],
    /// When it starts, `HH:MM` on the wall clock.
    pub start: &'t str,
    /// When it ends, `HH:MM` on the wall clock: on the next day if that is not after `start`.
    pub end: Option<&'t str>,
    /// How long it lasts, instead of `end`; elapsed time.
    pub duration: Option<&'t str>,
}

/// One window of a week.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedWindow {
    name: String,
    /// `None` for every day.
    days: Option<Days>,
    /// Seconds after midnight.
    start: i64,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Seconds after the midnight before the start, more than `start`.
    Local(i64),
    /// Seconds after the start.
    Elapsed(i64),
}

/// All windows of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Sorted by their start in the day.
    by_start: Vec<NamedWindow>,
    /// The maximum number of days between the start of a window and an instant within it.
    reach: i64,
    /// What they cover while the offset stays the same.
    steady: Covered,
    is_always: bool,
}

/// What windows cover in the two weeks from 1970-01-01 on, and so in every week, while the offset
/// stays the same: spans of local time that do not touch, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Covered(Vec<(i64, i64)>);

impl Covered {
    fn by<'w>(windows: impl Iterator<Item = &'w NamedWindow>, reach: i64) -> Self {
        let on_days = |window: &NamedWindow| {
            let (start, end) = (window.start, window.start + window.length());
            let days = (-reach..2 * WEEK).filter(|day| window.starts_on(*day));
            let spans = days.map(move |day| (day * DAY + start, day * DAY + end));
            spans.collect::<Vec<_>>()
        };
        let mut spans: Vec<_> = windows.flat_map(on_days).collect();
        spans.sort_unstable();
        spans.dedup_by(|later, earlier| {
            let touches = later.0 <= earlier.1;
            if touches {
                earlier.1 = earlier.1.max(later.1);
            }
            touches
        });
        Self(spans)
    }

    /// Whether a local time is covered, and the first later one at which that changes. What is covered
    /// from the first week to the end of the second one is always covered.
    fn at(&self, local: i64) -> (bool, Option<i64>) {
        let time = local.rem_euclid(WEEK * DAY);
        let next = self.0.partition_point(|(_, end)| *end <= time);
        match self.0.get(next) {
            Some((start, end)) if *start <= time => {
                let ends = *end < 2 * WEEK * DAY;
                (true, ends.then_some(local - time + end))
            }
            next => (false, next.map(|(start, _)| local - time + start)),
        }
    }
}

impl NamedWindow {
    fn parse<D: AsRef<str>>(text: &WindowText<'_, D>) -> Result<Self, Error> {
        let unreadable = |member| {
            move |error| Error::Window {
                window: text.name.to_owned(),
                member,
                error,
            }
        };
        let start = time_of_day(text.start).map_err(unreadable("start"))?;
        let end = match (text.end, text.duration) {
            (Some(end), None) => {
                let end = time_of_day(end).map_err(unreadable("end"))?;
                End::Local(if end > start { end } else { end + DAY })
            }
            (None, Some(duration)) => {
                let duration: Duration =
                    duration.parse().map_err(unreadable("duration"))?;
                let bounded = duration.within(MIN_WINDOW, MAX_WINDOW);
                End::Elapsed(
                    bounded
                        .map_err(|error| text.out_of_bounds(error))?
                        .as_secs(),
                )
            }
            _ => {
                return Err(Error::WindowEnd {
                    window: text.name.to_owned(),
                });
            }
        };
        Ok(Self {
            name: text.name.to_owned(),
            days: union(text.days, |_, error| unreadable("days")(error))?,
            start,
            end,
        })
    }

    fn starts_on(&self, day: i64) -> bool {
        self.days.is_none_or(|days| days.contains(weekday(day)))
    }

    /// While the offset stays the same.
    fn length(&self) -> i64 {
        match self.end {
            End::Local(end) => end - self.start,
            End::Elapsed(seconds) => seconds,
        }
    }

    /// The start and the end of the window that starts on a day. `None` if it does not start on
    /// that day, or if the clocks skip all of it.
    fn on(&self, clock: &mut Clock<'_>, day: i64) -> Option<(i64, i64)> {
        // Not counted on other days, on which this is all that is done.
        if !self.starts_on(day) {
            return None;
        }
        clock.count(1);
        let start = clock.first_reaching(day * DAY + self.start)?;
        let end = match self.end {
            End::Local(end) => clock.last_before(day * DAY + end)?,
            End::Elapsed(seconds) => start.saturating_add(seconds),
        };
        (start < end).then_some((start, end))
    }
}

impl<D> WindowText<'_, D> {
    fn out_of_bounds(&self, error: OutOfBounds) -> Error {
        Error::WindowOutOfBounds {
            window: self.name.to_owned(),
            error,
        }
    }
}

impl Windows {
    pub(crate) fn parse<D: AsRef<str>>(
        texts: &[WindowText<'_, D>],
    ) -> Result<Self, Error> {
        let windows: Result<Vec<_>, _> = texts.iter().map(NamedWindow::parse).collect();
        let mut windows = windows?;
        if windows.is_empty() {
            return Err(Error::NoWindows);
        }
        windows.sort_by_key(|window| window.start);
        let reach = windows.iter().map(|window| match window.end {
            End::Local(_) => 2,
            End::Elapsed(seconds) => seconds / DAY + 2,
        });
        let reach = reach.max().unwrap_or_default();
        // Windows that end at a time of day then also cover clock changes, because an end is never
        // before the start of the next window.
        let by_the_clock = windows.iter().filter(|it| matches!(it.end, End::Local(_)));
        let is_always = Covered::by(by_the_clock, reach).at(0) == (true, None);
        Ok(Self {
            reach,
            steady: Covered::by(windows.iter(), reach),
            is_always,
            by_start: windows,
        })
    }

    /// The state at an instant.
    pub(crate) fn at(&self, clock: &mut Clock<'_>, now: i64) -> Option<State> {
        let period = clock.period(now)?;
        if self.is_always {
            return Some(State {
                wanted: true,
                until: None,
            });
        }
        let horizon = next_change::horizon(now);
        match self.steady_at(clock, &period, now) {
            Some((true, Some(until))) => return Some(open(until, horizon)),
            Some((false, Some(until))) => return Some(closed(until, horizon)),
            Some((_, None)) | None => {}
        }
        let mut day = period.local(now).div_euclid(DAY) - self.reach;
        let mut open_until = None;
        while day.saturating_mul(DAY) - OFFSET_MARGIN <= horizon {
            for window in &self.by_start {
                let Some((start, end)) = window.on(clock, day) else {
                    continue;
                };
                match open_until {
                    Some(until) if start > until => return Some(open(until, horizon)),
                    Some(until) => open_until = Some(end.max(until)),
                    None if start > now => return Some(closed(start, horizon)),
                    None if end > now => open_until = Some(end),
                    None => {}
                }
            }
            day += 1;
            let Some(until) = open_until else {
                continue;
            };
            if until > horizon {
                return Some(open(until, horizon));
            }
            let ahead = clock.period(until)?;
            match self.steady_at(clock, &ahead, until) {
                Some((false, _)) => return Some(open(until, horizon)),
                Some((true, Some(until))) => return Some(open(until, horizon)),
                Some((true, None)) => {
                    let last = ahead.end - OFFSET_MARGIN;
                    open_until = Some(last);
                    day = day.max(ahead.local(last).div_euclid(DAY) - self.reach);
                }
                None => {}
            }
        }
        Some(match open_until {
            Some(until) => open(until, horizon),
            None => State {
                wanted: false,
                until: None,
            },
        })
    }

    /// Whether a window is open at an instant of a period, and when that changes, if both are the
    /// same as in a week without a change of the offset. Without an instant, the state lasts to the
    /// margin before the next change.
    fn steady_at(
        &self,
        clock: &mut Clock<'_>,
        period: &OffsetPeriod,
        at: i64,
    ) -> Option<(bool, Option<i64>)> {
        clock.count(1);
        let (first, last) = (
            period.start + OFFSET_MARGIN + self.reach * DAY,
            period.end - OFFSET_MARGIN,
        );
        if at < first || last <= at {
            return None;
        }
        let (wanted, until) = self.steady.at(period.local(at));
        let until = until.map(|until| period.instant(until));
        Some((wanted, until.filter(|until| *until < last)))
    }

    /// The first window, by the time of day, that starts at an instant.
    pub(crate) fn starting_at(&self, clock: &mut Clock<'_>, at: i64) -> Option<&str> {
        self.find(clock, at, |(start, _)| start == at)
    }

    /// The first window, by the time of day, that ends at an instant.
    pub(crate) fn ending_at(&self, clock: &mut Clock<'_>, at: i64) -> Option<&str> {
        self.find(clock, at, |(_, end)| end == at)
    }

    fn find(
        &self,
        clock: &mut Clock<'_>,
        at: i64,
        is_it: impl Fn((i64, i64)) -> bool,
    ) -> Option<&str> {
        let today = clock.period(at)?.local(at).div_euclid(DAY);
        for day in today - self.reach..=today + 1 {
            for window in &self.by_start {
                if window.on(clock, day).is_some_and(&is_it) {
                    return Some(&window.name);
                }
            }
        }
        None
    }
}

fn open(until: i64, horizon: i64) -> State {
    State {
        wanted: true,
        until: (until <= horizon).then_some(until),
    }
}

fn closed(until: i64, horizon: i64) -> State {
    State {
        wanted: false,
        until: (until <= horizon).then_some(until),
    }
}

/// The weekday of a day that is counted from 1970-01-01, a Thursday.
fn weekday(day: i64) -> Weekday {
    let after_thursday = i8::try_from(day.rem_euclid(7)).unwrap_or_default();
    Weekday::Thursday.wrapping_add(after_thursday)
}

/// Seconds after midnight of `HH:MM`.
fn time_of_day(text: &str) -> Result<i64, ParseError> {
    let whole = Token::whole(text);
    let error = || whole.error("a time of day from 00:00 to 23:59");
    let (hour, Some(minute)) = whole.split_once(':') else {
        return Err(error());
    };
    let number = |token: Token<'_>, most: u32| {
        let number = token.number().filter(|_| token.text.len() == 2);
        number.filter(|number| *number <= most).map(i64::from)
    };
    let (Some(hour), Some(minute)) = (number(hour, 23), number(minute, 59)) else {
        return Err(error());
    };
    Ok((hour * 60 + minute) * MINUTE)
}
