//! Searches in both directions for the wall-clock minutes that a cron expression matches.
//!
//! Local times are seconds since 1970-01-01 00:00 on the wall clock.

use super::Cron;
use crate::clock::{Clock, LocalDate};

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;
const LAST_MINUTE_OF_DAY: i64 = DAY / MINUTE - 1;

impl Cron {
    /// The first matching minute that starts within `from..=to`.
    pub(crate) fn first_in(
        &self,
        clock: &mut Clock<'_>,
        from: i64,
        to: i64,
    ) -> Option<i64> {
        let mut day = from.div_euclid(DAY);
        let mut minute = (from.rem_euclid(DAY) + MINUTE - 1) / MINUTE;
        while day * DAY <= to {
            let date = clock.date(day)?;
            if self.is_on(&date)
                && let Some(found) = self.first_minute_from(minute)
            {
                let found = day * DAY + found * MINUTE;
                return (found <= to).then_some(found);
            }
            day += if self.month.matches.contains(date.month) {
                1
            } else {
                i64::from(date.days_in_month - date.day + 1)
            };
            minute = 0;
        }
        None
    }

    /// The last matching minute that starts within `from..=to`.
    pub(crate) fn last_in(
        &self,
        clock: &mut Clock<'_>,
        from: i64,
        to: i64,
    ) -> Option<i64> {
        let mut day = to.div_euclid(DAY);
        let mut minute = to.rem_euclid(DAY) / MINUTE;
        while (day + 1) * DAY > from {
            let date = clock.date(day)?;
            if self.is_on(&date)
                && let Some(found) = self.last_minute_upto(minute)
            {
                let found = day * DAY + found * MINUTE;
                return (found >= from).then_some(found);
            }
            day -= if self.month.matches.contains(date.month) {
                1
            } else {
                i64::from(date.day)
            };
            minute = LAST_MINUTE_OF_DAY;
        }
        None
    }

    fn is_on(&self, date: &LocalDate) -> bool {
        let by_date = self.day_of_month.matches.contains(date.day);
        let by_weekday = self.day_of_week.matches.contains(date.sunday_zero_weekday);
        let on_day = if self.is_on_either_day() {
            by_date || by_weekday
        } else {
            by_date && by_weekday
        };
        on_day && self.month.matches.contains(date.month)
    }

    /// The first matching minute of a day that is not before `minute`, counted from midnight.
    fn first_minute_from(&self, minute: i64) -> Option<i64> {
        let (hours, minutes) = (self.hour.matches, self.minute.matches);
        let minute = u32::try_from(minute).ok()?;
        let (hour, minute) = (minute / 60, minute % 60);
        let this_hour = minutes.first_from(minute).filter(|_| hours.contains(hour));
        let found = match this_hour {
            Some(minute) => hour * 60 + minute,
            None => hours.first_from(hour + 1)? * 60 + minutes.first()?,
        };
        Some(i64::from(found))
    }

    /// The last matching minute of a day that is not after `minute`, counted from midnight.
    fn last_minute_upto(&self, minute: i64) -> Option<i64> {
        let (hours, minutes) = (self.hour.matches, self.minute.matches);
        let minute = u32::try_from(minute).ok()?;
        let (hour, minute) = (minute / 60, minute % 60);
        let this_hour = minutes.last_upto(minute).filter(|_| hours.contains(hour));
        let found = match this_hour {
            Some(minute) => hour * 60 + minute,
            None => hours.last_upto(hour.checked_sub(1)?)? * 60 + minutes.last()?,
        };
        Some(i64::from(found))
    }
}
