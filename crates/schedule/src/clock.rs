//! The wall clock of one zone, read with what was already looked up and counted.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use crate::next_change::DAY;
use crate::offset_period::OffsetPeriod;

/// More than the difference of any two UTC offsets: local time this far from a change of the
/// offset does not depend on that change.
pub(crate) const OFFSET_MARGIN: i64 = 3 * DAY;

/// What a search for a change of the offset costs, in steps.
const STEPS_PER_PERIOD: u64 = 32;

/// Converts between instants and local times. Counts the steps of every search that uses it.
#[derive(Debug, Clone)]
pub(crate) struct Clock<'z> {
    zone: &'z TimeZone,
    /// The periods that were looked up, in order: two for each year of a search.
    known: Vec<OffsetPeriod>,
    /// The place of the one that was used last.
    last: usize,
    /// The date that was looked up last, with its day: many searches are of one day.
    date: Option<(i64, LocalDate)>,
    /// The steps that were taken and not yet reported.
    steps: u64,
}

/// The properties of a local day that a cron expression matches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalDate {
    pub(crate) month: u32,
    pub(crate) day: u32,
    pub(crate) sunday_zero_weekday: u32,
    pub(crate) days_in_month: u32,
}

impl LocalDate {
    fn of(day: i64) -> Option<Self> {
        let midnight = Timestamp::from_second(day.checked_mul(DAY)?).ok()?;
        let date = Offset::UTC.to_datetime(midnight).date();
        Some(Self {
            month: u32::from(date.month().unsigned_abs()),
            day: u32::from(date.day().unsigned_abs()),
            sunday_zero_weekday: u32::from(
                date.weekday().to_sunday_zero_offset().unsigned_abs(),
            ),
            days_in_month: u32::from(date.days_in_month().unsigned_abs()),
        })
    }
}

impl<'z> Clock<'z> {
    pub(crate) fn new(zone: &'z TimeZone) -> Self {
        Self {
            zone,
            known: Vec::new(),
            last: 0,
            date: None,
            steps: 0,
        }
    }

    /// Counts steps.
    pub(crate) fn count(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// The steps since the last call.
    pub(crate) fn take_steps(&mut self) -> u64 {
        std::mem::take(&mut self.steps)
    }

    /// The date that many days after 1970-01-01; `None` outside of the years -9999 to 9999.
    pub(crate) fn date(&mut self, day: i64) -> Option<LocalDate> {
        self.count(1);
        if let Some((_, date)) = self.date.filter(|(known, _)| *known == day) {
            return Some(date);
        }
        let date = LocalDate::of(day)?;
        self.date = Some((day, date));
        Some(date)
    }

    /// The period that contains an instant; `None` outside of the years -9999 to 9999.
    pub(crate) fn period(&mut self, instant: i64) -> Option<OffsetPeriod> {
        // The last second of the calendar is not after its last period.
        let contains = |period: &OffsetPeriod| {
            period.start <= instant
                && (instant < period.end || period.end == Timestamp::MAX.as_second())
        };
        if let Some(last) = self.known.get(self.last).filter(|it| contains(it)) {
            return Some(*last);
        }
        let is_earlier = |period: &OffsetPeriod| {
            period.end <= instant && period.end < Timestamp::MAX.as_second()
        };
        let place = self.known.partition_point(is_earlier);
        self.last = place;
        if let Some(known) = self.known.get(place).filter(|it| contains(it)) {
            return Some(*known);
        }
        self.count(STEPS_PER_PERIOD);
        let found = OffsetPeriod::around(self.zone, instant)?;
        self.known.insert(place, found);
        Some(found)
    }

    /// The first instant at which the clock shows a local time or a later one. A window starts at
    /// that of its start, and ends at [`last_before`](Self::last_before) of its end. Both are
    /// monotone, so windows can be found in the order of their days, and both give the documented
    /// result: for a skipped time the instant after it, for a repeated one the first occurrence of
    /// a start and the second of an end.
    pub(crate) fn first_reaching(&mut self, local: i64) -> Option<i64> {
        let mut period = self.period(local.checked_sub(OFFSET_MARGIN)?)?;
        loop {
            if period.local(period.start) >= local {
                return Some(period.start);
            }
            if period.instant(local) < period.end {
                return Some(period.instant(local));
            }
            if period.end == Timestamp::MAX.as_second() {
                return None;
            }
            period = self.period(period.end)?;
        }
    }

    /// The first instant from which on the clock never shows an earlier time than a local time.
    pub(crate) fn last_before(&mut self, local: i64) -> Option<i64> {
        let last = local.saturating_add(OFFSET_MARGIN);
        let mut period = self.period(last.min(Timestamp::MAX.as_second()))?;
        loop {
            if period.local(period.end) <= local {
                return Some(period.end);
            }
            if period.instant(local) >= period.start {
                return Some(period.instant(local));
            }
            period = self.period(period.start.checked_sub(1)?)?;
        }
    }
}
