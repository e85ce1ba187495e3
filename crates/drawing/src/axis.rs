//! The horizontal time axis.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

const HOUR: i64 = 3_600;

/// The width in pixels of the plot of a long time range.
const MAX_WIDTH: f64 = 1_500.0;

/// The largest width in pixels of the plot in a page.
const MAX_PAGE_WIDTH: f64 = 7_992.0;

/// Maps instants to x coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The width of an hour in pixels.
    pub(crate) hour: f64,
}

/// A local day, or the part of it that is shown.
#[derive(Clone, Debug)]
pub(crate) struct Day {
    pub(crate) date: Date,
    pub(crate) since: i64,
    pub(crate) until: i64,
}

impl Day {
    /// Whether it is a Saturday or a Sunday.
    pub(crate) fn is_weekend(&self) -> bool {
        matches!(self.date.weekday(), Weekday::Saturday | Weekday::Sunday)
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "pixels of at most ten years"
)]
impl Axis {
    pub(crate) fn of(from: Timestamp, to: Timestamp) -> Self {
        let (from, to) = (from.as_second(), to.as_second().max(from.as_second() + 1));
        let hours = (to - from) as f64 / HOUR as f64;
        let hour = match hours {
            day if day <= 25.0 => 30.0,
            two if two <= 49.0 => 20.0,
            week if week <= 170.0 => 6.0,
            fortnight if fortnight <= 338.0 => 4.0,
            longer => MAX_WIDTH / longer,
        };
        Self { from, to, hour }
    }

    /// The same range, as wide as `pixels` if that is wider. A long range, whose columns are longer than
    /// an hour, stays as it is.
    pub(crate) fn at_least(self, pixels: f64) -> Self {
        let hours = (self.to - self.from) as f64 / HOUR as f64;
        let hour = if self.hour < 1.0 {
            self.hour
        } else {
            self.hour.max(pixels.min(MAX_PAGE_WIDTH) / hours)
        };
        Self { hour, ..self }
    }

    /// The width of the whole axis in pixels.
    pub(crate) fn width(self) -> f64 {
        self.length(self.to - self.from)
    }

    /// The width of a number of seconds in pixels.
    pub(crate) fn length(self, seconds: i64) -> f64 {
        seconds as f64 / HOUR as f64 * self.hour
    }

    /// The x coordinate of an instant. An instant outside the range is at the nearer edge.
    pub(crate) fn x(self, at: i64) -> f64 {
        self.length(at.clamp(self.from, self.to) - self.from)
    }

    /// The length of a column: an hour, or more where an hour is narrower than a pixel.
    pub(crate) fn column(self) -> i64 {
        ((1.0 / self.hour).ceil() as i64).max(1) * HOUR
    }

    /// The number of columns.
    pub(crate) fn columns(self) -> usize {
        let whole = (self.to - self.from + self.column() - 1) / self.column();
        usize::try_from(whole).unwrap_or(0)
    }

    /// The local days that are shown, in order. The first and the last are cut off where the
    /// picture begins or ends within a day. At most one for each day of the calendar.
    pub(crate) fn days(self, zone: &TimeZone) -> Vec<Day> {
        let mut days = Vec::new();
        let Ok(first) = Timestamp::from_second(self.from) else {
            return days;
        };
        let mut date = zone.to_datetime(first).date();
        let mut since = self.from;
        while since < self.to {
            let Ok(tomorrow) = date.checked_add(1.day()) else {
                break;
            };
            let midnight = tomorrow.to_zoned(zone.clone());
            let until = midnight.map_or(self.to, |at| at.timestamp().as_second());
            let until = until.clamp(since, self.to);
            // A local day that the zone skips has no length.
            if until > since {
                days.push(Day { date, since, until });
            }
            (date, since) = (tomorrow, until);
        }
        days
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(from: &str, to: &str) -> Axis {
        Axis::of(from.parse().unwrap(), to.parse().unwrap())
    }

    #[test]
    fn the_length_of_days_follows_clock_changes() {
        let axis = axis("2026-03-07T12:00:00Z", "2026-03-10T04:00:00Z");
        let zone = TimeZone::get("America/New_York").unwrap();
        let days = axis.days(&zone);
        let hours: Vec<_> = days
            .iter()
            .map(|day| (day.date.to_string(), (day.until - day.since) / HOUR))
            .collect();
        let expected = [("2026-03-07", 17), ("2026-03-08", 23), ("2026-03-09", 24)];
        assert_eq!(
            hours,
            expected.map(|(date, hours)| (date.to_owned(), hours))
        );
        assert!(days[0].is_weekend() && !days[2].is_weekend());
    }

    #[test]
    fn a_day_that_does_not_exist_is_left_out() {
        let axis = axis("2011-12-29T12:00:00Z", "2012-01-01T00:00:00Z");
        let zone = TimeZone::get("Pacific/Apia").unwrap();
        let dates: Vec<_> = axis.days(&zone).iter().map(|day| day.date.day()).collect();
        assert_eq!(dates, [29, 31, 1]);
    }

    #[test]
    fn a_column_is_an_hour_unless_that_is_too_narrow() {
        let week = axis("2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z");
        assert_eq!((week.column(), week.columns()), (HOUR, 168));
        let years = axis("2026-01-01T00:00:00Z", "2036-01-01T00:00:00Z");
        assert!(years.columns() <= 1_500, "{}", years.columns());
        assert!(years.width() <= MAX_WIDTH + 0.1);
    }
}
