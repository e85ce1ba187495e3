//! Windows with a start and an end in minutes, on days of the week.
//!
//! A window belongs to the local day on which it starts. Local times are seconds since
//! 1970-01-01 00:00 on the wall clock, instants are seconds since that time in UTC.

use jiff::Timestamp;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;

use crate::duration::{Duration, OutOfBounds};
use crate::next_change::{self, DAY, State};
use crate::offset_period::OffsetPeriod;
use crate::parse::{ParseError, Token};
use crate::week::Days;
use crate::{Error, MAX_WINDOW, MIN_WINDOW, union};

const MINUTE: i64 = 60;

/// More than the difference of any two UTC offsets: local time this far from a change of the
/// offset does not depend on that change.
const OFFSET_MARGIN: i64 = 3 * DAY;

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
    is_always: bool,
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

    /// The start and the end of the window that starts on a day. `None` if it does not start on
    /// that day, or if the clocks skip all of it.
    fn on(&self, clock: &mut Clock<'_>, day: i64) -> Option<(i64, i64)> {
        if self.days.is_some_and(|days| !days.contains(weekday(day))) {
            return None;
        }
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
        Ok(Self {
            reach: reach.max().unwrap_or_default(),
            is_always: covers_the_week(&windows),
            by_start: windows,
        })
    }

    /// The state at an instant.
    pub(crate) fn at(&self, zone: &TimeZone, now: i64) -> Option<State> {
        let mut clock = Clock::new(zone, now)?;
        if self.is_always {
            return Some(State {
                wanted: true,
                until: None,
            });
        }
        let horizon = next_change::horizon(now);
        let today = clock.period.local(now).div_euclid(DAY);
        let mut open_until = None;
        for day in today - self.reach.. {
            if day.saturating_mul(DAY) - OFFSET_MARGIN > horizon {
                break;
            }
            for window in &self.by_start {
                let Some((start, end)) = window.on(&mut clock, day) else {
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
            if let Some(until) = open_until.filter(|until| *until > horizon) {
                return Some(open(until, horizon));
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

    /// The first window, by the time of day, that starts at an instant.
    pub(crate) fn starting_at(&self, zone: &TimeZone, at: i64) -> Option<&str> {
        self.find(zone, at, |(start, _)| start == at)
    }

    /// The first window, by the time of day, that ends at an instant.
    pub(crate) fn ending_at(&self, zone: &TimeZone, at: i64) -> Option<&str> {
        self.find(zone, at, |(_, end)| end == at)
    }

    fn find(
        &self,
        zone: &TimeZone,
        at: i64,
        is_it: impl Fn((i64, i64)) -> bool,
    ) -> Option<&str> {
        let mut clock = Clock::new(zone, at)?;
        let today = clock.period.local(at).div_euclid(DAY);
        for day in today - self.reach..=today + 1 {
            for window in &self.by_start {
                if window.on(&mut clock, day).is_some_and(&is_it) {
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

/// Whether windows that end at a time of day cover every minute of a week. Then they also cover
/// clock changes, because an end is never before the start of the next window.
fn covers_the_week(windows: &[NamedWindow]) -> bool {
    const WEEK: usize = 7 * 24 * 60;
    let mut covered = vec![false; WEEK];
    for window in windows {
        let End::Local(end) = window.end else {
            continue;
        };
        for day in 0..7 {
            if window.days.is_some_and(|days| !days.contains(weekday(day))) {
                continue;
            }
            for minute in (day * DAY + window.start) / MINUTE..(day * DAY + end) / MINUTE
            {
                let minute = usize::try_from(minute).unwrap_or_default() % WEEK;
                if let Some(covered) = covered.get_mut(minute) {
                    *covered = true;
                }
            }
        }
    }
    covered.into_iter().all(|covered| covered)
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

/// Converts local times to instants. Caches the last period of one offset.
struct Clock<'z> {
    zone: &'z TimeZone,
    period: OffsetPeriod,
}

impl<'z> Clock<'z> {
    fn new(zone: &'z TimeZone, at: i64) -> Option<Self> {
        let period = OffsetPeriod::around(zone, at)?;
        Some(Self { zone, period })
    }

    /// The first instant at which the clock shows a local time or a later one.
    fn first_reaching(&mut self, local: i64) -> Option<i64> {
        if let Some(only) = self.only(local) {
            return Some(only);
        }
        for period in self.around(local)? {
            if period.local(period.start) >= local {
                return Some(period.start);
            }
            if period.instant(local) < period.end {
                return Some(period.instant(local));
            }
        }
        None
    }

    /// The first instant from which on the clock never shows an earlier time than a local time.
    fn last_before(&mut self, local: i64) -> Option<i64> {
        if let Some(only) = self.only(local) {
            return Some(only);
        }
        for period in self.around(local)?.into_iter().rev() {
            if period.local(period.end) <= local {
                return Some(period.end);
            }
            if period.instant(local) >= period.start {
                return Some(period.instant(local));
            }
        }
        None
    }

    /// The only instant at which the clock shows a local time, if it is far from any clock
    /// change.
    fn only(&self, local: i64) -> Option<i64> {
        let instant = self.period.instant(local);
        let is_far = self.period.start.saturating_add(OFFSET_MARGIN) <= instant
            && instant < self.period.end.saturating_sub(OFFSET_MARGIN);
        is_far.then_some(instant)
    }

    /// The periods of one offset around a local time, in order. The local time is after the
    /// start of the first one and before the end of the last one.
    fn around(&mut self, local: i64) -> Option<Vec<OffsetPeriod>> {
        let mut period =
            OffsetPeriod::around(self.zone, local.checked_sub(OFFSET_MARGIN)?)?;
        let mut periods = vec![period];
        let end_of_calendar = Timestamp::MAX.as_second();
        while period.end <= local.saturating_add(OFFSET_MARGIN)
            && period.end < end_of_calendar
        {
            period = period.next(self.zone)?;
            periods.push(period);
        }
        self.period = period;
        Some(periods)
    }
}
