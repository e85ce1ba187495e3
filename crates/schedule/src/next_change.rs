//! The next change after an instant, with clock changes.
//!
//! All instants are whole seconds since 1970-01-01T00:00:00Z.

use jiff::Timestamp;

use crate::clock::Clock;
use crate::cron::Cron;
use crate::duration::Duration;
use crate::offset_period::OffsetPeriod;
use crate::week::Week;

const HOUR: i64 = 3_600;
pub(crate) const DAY: i64 = 86_400;

/// How far ahead a change is searched for: ten years, with any number of leap days.
pub(crate) const HORIZON: i64 = 3_653 * DAY;

/// 1970-01-01 was a Thursday: this many hours after a Monday 00:00.
const EPOCH_HOUR_OF_WEEK: i64 = 3 * 24;

/// Whether a machine is wanted at an instant, and when that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) wanted: bool,
    /// The first later instant with another state, up to [`HORIZON`].
    pub(crate) until: Option<i64>,
}

impl State {
    /// The state outside of the supported years of local time: no machine is wanted.
    pub(crate) const UNKNOWN: Self = Self {
        wanted: false,
        until: None,
    };
}

/// The last instant that a search from `now` covers.
pub(crate) fn horizon(now: i64) -> i64 {
    now.saturating_add(HORIZON)
        .min(Timestamp::MAX.as_second() - 1)
}

/// The state of a week of hours.
pub(crate) fn of_week(week: Week, clock: &mut Clock<'_>, now: i64) -> Option<State> {
    let mut period = clock.period(now)?;
    let wanted = week.contains(hour_of_week(period.local(now)));
    if week.is_always() {
        return Some(State {
            wanted,
            until: None,
        });
    }
    let horizon = horizon(now);
    let mut at = now;
    loop {
        clock.count(STEPS_PER_WEEK);
        let local = period.local(at);
        let hour = hour_of_week(local);
        let flip = (1..=Week::HOURS).find(|ahead| week.contains(hour + ahead) != wanted);
        if let Some(ahead) = flip {
            let until = period.instant((local.div_euclid(HOUR) + ahead) * HOUR);
            if until < period.end {
                return Some(State {
                    wanted,
                    until: (until <= horizon).then_some(until),
                });
            }
        }
        if period.end > horizon {
            return Some(State {
                wanted,
                until: None,
            });
        }
        at = period.end;
        period = clock.period(at)?;
        if week.contains(hour_of_week(period.local(at))) != wanted {
            return Some(State {
                wanted,
                until: Some(at),
            });
        }
    }
}

/// What a search among the hours of a week costs, in steps.
const STEPS_PER_WEEK: u64 = 8;

fn hour_of_week(local: i64) -> i64 {
    local.div_euclid(HOUR) + EPOCH_HOUR_OF_WEEK
}

/// Windows of one length, each opened by a firing of a cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CronWindows {
    cron: Cron,
    duration: Duration,
    adjacency: Adjacency,
    /// Whether no two firings are as close as the duration, in time without clock changes.
    are_apart: bool,
}

/// How far adjacent windows extend, without an inspection of each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adjacency {
    /// Between the first and the last firing of a day there are times outside all windows.
    Broken,
    /// From the first firing of a day to its last firing.
    OverTheDay,
    /// From any firing to any later one, as long as the offset does not change.
    OverMidnight,
}

impl CronWindows {
    pub(crate) fn new(cron: Cron, duration: Duration) -> Self {
        let minutes: Vec<u32> = cron.minutes_of_day().collect();
        let touches = |minutes: u32| i64::from(minutes) * 60 <= duration.as_secs();
        let within_day = minutes.windows(2).all(|pair| match pair {
            [earlier, later] => touches(later - earlier),
            _ => true,
        });
        let are_apart = minutes.windows(2).all(|pair| match pair {
            [earlier, later] => !touches(later - earlier),
            _ => true,
        });
        let over_midnight = match (minutes.first(), minutes.last()) {
            (Some(first), Some(last)) => touches(first + 24 * 60 - last),
            _ => false,
        };
        let adjacency = match (within_day, over_midnight && cron.is_daily()) {
            (false, _) => Adjacency::Broken,
            (true, false) => Adjacency::OverTheDay,
            (true, true) => Adjacency::OverMidnight,
        };
        Self {
            cron,
            duration,
            adjacency,
            are_apart: are_apart && !over_midnight,
        }
    }

    /// The same firings with windows that are longer by some seconds.
    pub(crate) fn lengthened(&self, seconds: i64) -> Self {
        let seconds = self.duration.as_secs().saturating_add(seconds);
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        Self::new(self.cron, Duration::seconds(seconds))
    }

    /// Whether no two windows touch, in time without clock changes.
    pub(crate) fn are_apart(&self) -> bool {
        self.are_apart
    }

    /// The first firing from `from` to `last`.
    pub(crate) fn first_from(
        &self,
        clock: &mut Clock<'_>,
        from: i64,
        last: i64,
    ) -> Option<i64> {
        self.first_after(clock, from.checked_sub(1)?, last)
    }

    /// The last firing from `from` to `last`, and before the next change of the offset together
    /// with its window.
    pub(crate) fn last_in_period(
        &self,
        clock: &mut Clock<'_>,
        from: i64,
        last: i64,
    ) -> Option<i64> {
        let period = clock.period(from)?;
        let last = last.min(period.end - self.duration.as_secs() - 1);
        let local = self
            .cron
            .last_in(clock, period.local(from), period.local(last))?;
        Some(period.instant(local))
    }

    /// The last firing not after `last` up to which, from a firing on, all windows are adjacent.
    pub(crate) fn last_adjacent(
        &self,
        clock: &mut Clock<'_>,
        mut firing: i64,
        last: i64,
    ) -> Option<i64> {
        loop {
            firing = self.run_end(clock, firing, last)?;
            let reached = firing.saturating_add(self.duration.as_secs()).min(last);
            clock.period(reached)?;
            match self.last_within(clock, firing, reached) {
                Some(later) => firing = later,
                None => return Some(firing),
            }
        }
    }

    pub(crate) fn cron(&self) -> &Cron {
        &self.cron
    }

    pub(crate) fn duration(&self) -> Duration {
        self.duration
    }

    /// The state at an instant.
    pub(crate) fn at(&self, clock: &mut Clock<'_>, now: i64) -> Option<State> {
        clock.period(now)?;
        let horizon = horizon(now);
        let opened = self.last_within(clock, now - self.duration.as_secs(), now);
        Some(match opened {
            Some(firing) => State {
                wanted: true,
                until: self.end_after(clock, firing, horizon),
            },
            None => State {
                wanted: false,
                until: self.first_after(clock, now, horizon),
            },
        })
    }

    /// The last firing after `after` and not after `upto`.
    fn last_within(
        &self,
        clock: &mut Clock<'_>,
        after: i64,
        mut upto: i64,
    ) -> Option<i64> {
        loop {
            let period = clock.period(upto)?;
            let from = period.local(period.start.max(after + 1));
            let local = self.cron.last_in(clock, from, period.local(upto));
            if let Some(local) = local {
                return Some(period.instant(local));
            }
            if period.start <= after {
                return None;
            }
            if self.fires_in_gap_before(clock, &period) {
                return Some(period.start);
            }
            upto = period.start - 1;
        }
    }

    /// The first firing after `after` and not after `horizon`.
    fn first_after(
        &self,
        clock: &mut Clock<'_>,
        after: i64,
        horizon: i64,
    ) -> Option<i64> {
        let mut period = clock.period(after)?;
        let mut from = after + 1;
        loop {
            let upto = period.local((period.end - 1).min(horizon));
            let local = self.cron.first_in(clock, period.local(from), upto);
            if let Some(local) = local {
                return Some(period.instant(local));
            }
            if period.end > horizon {
                return None;
            }
            period = clock.period(period.end)?;
            from = period.start;
            if self.fires_in_gap_before(clock, &period) {
                return Some(from);
            }
        }
    }

    /// The first instant after a firing that no window covers, if it is not after `horizon`.
    fn end_after(&self, clock: &mut Clock<'_>, firing: i64, horizon: i64) -> Option<i64> {
        let mut firing = firing;
        loop {
            firing = self.run_end(clock, firing, horizon)?;
            let end = firing.saturating_add(self.duration.as_secs());
            if end > horizon {
                return None;
            }
            clock.period(end)?;
            match self.last_within(clock, firing, end) {
                Some(later) => firing = later,
                None => return Some(end),
            }
        }
    }

    /// The last firing not after `horizon`, in the period of `firing`, up to which all windows
    /// are known to be adjacent.
    fn run_end(&self, clock: &mut Clock<'_>, firing: i64, horizon: i64) -> Option<i64> {
        let period = clock.period(firing)?;
        let local = period.local(firing);
        // A firing that was moved out of a gap matches no minute; whether later windows are
        // adjacent is not determined here.
        if self.cron.first_in(clock, local, local).is_none() {
            return Some(firing);
        }
        let last = period.local(horizon.min(period.end - 1));
        let midnight = (local.div_euclid(DAY) + 1) * DAY;
        let reached = match self.adjacency {
            Adjacency::OverMidnight => self.cron.last_in(clock, local, last),
            Adjacency::OverTheDay => {
                self.cron.last_in(clock, local, last.min(midnight - 1))
            }
            Adjacency::Broken => Some(self.walk(clock, local, last.min(midnight - 1))),
        };
        Some(period.instant(reached.unwrap_or(local)))
    }

    /// As [`CronWindows::run_end`], one firing at a time.
    fn walk(&self, clock: &mut Clock<'_>, mut local: i64, last: i64) -> i64 {
        let reach = self.duration.as_secs();
        let next = |clock: &mut _, local: i64| {
            let upto = last.min(local.saturating_add(reach));
            self.cron.first_in(clock, local + 1, upto)
        };
        while let Some(later) = next(clock, local) {
            local = later;
        }
        local
    }

    /// Whether a matching minute was skipped just before the period began.
    fn fires_in_gap_before(&self, clock: &mut Clock<'_>, period: &OffsetPeriod) -> bool {
        let local = period.local(period.start);
        period.skipped > 0
            && self
                .cron
                .first_in(clock, local - period.skipped, local - 1)
                .is_some()
    }
}
