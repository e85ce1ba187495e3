//! The next change after an instant, with clock changes.
//!
//! All instants are whole seconds since 1970-01-01T00:00:00Z.

use jiff::Timestamp;
use jiff::tz::TimeZone;

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
pub(crate) fn of_week(week: Week, zone: &TimeZone, now: i64) -> Option<State> {
    let mut period = OffsetPeriod::around(zone, now)?;
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
        period = period.next(zone)?;
        if week.contains(hour_of_week(period.local(at))) != wanted {
            return Some(State {
                wanted,
                until: Some(at),
            });
        }
    }
}

fn hour_of_week(local: i64) -> i64 {
    local.div_euclid(HOUR) + EPOCH_HOUR_OF_WEEK
}

/// Windows of one length, each opened by a firing of a cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CronWindows {
    cron: Cron,
    duration: Duration,
    adjacency: Adjacency,
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
        }
    }

    pub(crate) fn cron(&self) -> &Cron {
        &self.cron
    }

    pub(crate) fn duration(&self) -> Duration {
        self.duration
    }

    /// The state at an instant.
    pub(crate) fn at(&self, zone: &TimeZone, now: i64) -> Option<State> {
        let period = OffsetPeriod::around(zone, now)?;
        let horizon = horizon(now);
        let opened = self.last_within(zone, period, now - self.duration.as_secs(), now);
        Some(match opened {
            Some(firing) => State {
                wanted: true,
                until: self.end_after(zone, firing, horizon),
            },
            None => State {
                wanted: false,
                until: self.first_after(zone, period, now, horizon),
            },
        })
    }

    /// The last firing after `after` and not after `upto`. `period` contains `upto`.
    fn last_within(
        &self,
        zone: &TimeZone,
        mut period: OffsetPeriod,
        after: i64,
        mut upto: i64,
    ) -> Option<i64> {
        loop {
            let from = period.start.max(after + 1);
            let local = self.cron.last_in(period.local(from), period.local(upto));
            if let Some(local) = local {
                return Some(period.instant(local));
            }
            if period.start <= after {
                return None;
            }
            if self.fires_in_gap_before(&period) {
                return Some(period.start);
            }
            upto = period.start - 1;
            period = OffsetPeriod::around(zone, upto)?;
        }
    }

    /// The first firing after `after` and not after `horizon`. `period` contains `after`.
    fn first_after(
        &self,
        zone: &TimeZone,
        mut period: OffsetPeriod,
        after: i64,
        horizon: i64,
    ) -> Option<i64> {
        let mut from = after + 1;
        loop {
            let upto = (period.end - 1).min(horizon);
            let local = self.cron.first_in(period.local(from), period.local(upto));
            if let Some(local) = local {
                return Some(period.instant(local));
            }
            if period.end > horizon {
                return None;
            }
            period = period.next(zone)?;
            from = period.start;
            if self.fires_in_gap_before(&period) {
                return Some(from);
            }
        }
    }

    /// The first instant after a firing that no window covers, if it is not after `horizon`.
    fn end_after(&self, zone: &TimeZone, firing: i64, horizon: i64) -> Option<i64> {
        let mut firing = firing;
        loop {
            firing = self.run_end(&OffsetPeriod::around(zone, firing)?, firing, horizon);
            let end = firing.saturating_add(self.duration.as_secs());
            if end > horizon {
                return None;
            }
            match self.last_within(zone, OffsetPeriod::around(zone, end)?, firing, end) {
                Some(later) => firing = later,
                None => return Some(end),
            }
        }
    }

    /// The last firing not after `horizon`, in the period of `firing`, up to which all windows
    /// are known to be adjacent.
    fn run_end(&self, period: &OffsetPeriod, firing: i64, horizon: i64) -> i64 {
        let local = period.local(firing);
        // A firing that was moved out of a gap matches no minute; whether later windows are
        // adjacent is not determined here.
        if self.cron.first_in(local, local).is_none() {
            return firing;
        }
        let last = period.local(horizon.min(period.end - 1));
        let midnight = (local.div_euclid(DAY) + 1) * DAY;
        let reached = match self.adjacency {
            Adjacency::OverMidnight => self.cron.last_in(local, last),
            Adjacency::OverTheDay => self.cron.last_in(local, last.min(midnight - 1)),
            Adjacency::Broken => Some(self.walk(local, last.min(midnight - 1))),
        };
        period.instant(reached.unwrap_or(local))
    }

    /// As [`CronWindows::run_end`], one firing at a time.
    fn walk(&self, mut local: i64, last: i64) -> i64 {
        let reach = self.duration.as_secs();
        while let Some(later) = self.cron.first_in(local + 1, last.min(local + reach)) {
            local = later;
        }
        local
    }

    /// Whether a matching minute was skipped just before the period began.
    fn fires_in_gap_before(&self, period: &OffsetPeriod) -> bool {
        let local = period.local(period.start);
        period.skipped > 0
            && self
                .cron
                .first_in(local - period.skipped, local - 1)
                .is_some()
    }
}
