//! Dates on which a schedule does not apply: a machine is wanted all day, or not at all.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;

use crate::next_change::DAY;
use crate::parse::{ParseError, Token};

/// What happens on the dates of an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExceptionAction {
    /// A machine is wanted from 00:00 to 24:00.
    Run,
    /// No machine is wanted.
    Stop,
}

/// Dates on which the schedule does not apply, in its time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    /// The name, unique in its schedule.
    pub name: String,
    /// What happens on the dates.
    pub action: ExceptionAction,
    /// The dates.
    pub dates: Dates,
}

/// A date, a range of dates or a date of every year, as written in a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateEntry {
    /// From the first to the last date, both included.
    Range {
        /// The first date.
        first: Date,
        /// The last date. If it is before the first, the range is empty.
        last: Date,
    },
    /// A date of every year in which it exists.
    EveryYear {
        /// From 1 to 12.
        month: i8,
        /// From 1 to 31.
        day: i8,
    },
}

impl DateEntry {
    /// A date `YYYY-MM-DD`, or `MM-DD` for every year.
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::DateEntry;
    ///
    /// assert!(matches!(DateEntry::parse("02-29")?, DateEntry::EveryYear { month: 2, day: 29 }));
    /// assert_eq!(
    ///     DateEntry::parse("2027-02-29").unwrap_err().to_string(),
    ///     "expected a date such as '2026-12-24' or '12-24' at byte 0, found '2027-02-29'",
    /// );
    /// # Ok::<_, fivespot_schedule::ParseError>(())
    /// ```
    ///
    /// # Errors
    /// Other texts, and dates that do not exist.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let error = || Token::whole(text).error("a date such as '2026-12-24' or '12-24'");
        let entry = if text.len() == "MM-DD".len() {
            // A leap year contains every date.
            date(&format!("2000-{text}")).map(|date| Self::EveryYear {
                month: date.month(),
                day: date.day(),
            })
        } else {
            date(text).map(|date| Self::Range {
                first: date,
                last: date,
            })
        };
        entry.ok_or_else(error)
    }

    /// The dates from `first` to `last`, both `YYYY-MM-DD` and both included.
    ///
    /// # Errors
    /// A text that is not such a date. A range that ends before it starts is empty and not an
    /// error.
    pub fn range(first: &str, last: &str) -> Result<Self, ParseError> {
        let read = |text: &str| {
            let expected = "a date such as '2026-12-24'";
            date(text).ok_or_else(|| Token::whole(text).error(expected))
        };
        Ok(Self::Range {
            first: read(first)?,
            last: read(last)?,
        })
    }
}

/// Parses `YYYY-MM-DD` only.
fn date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let mut number = |length: usize| {
        let part = parts.next()?;
        let is_number =
            part.len() == length && part.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| part.parse::<i16>().ok()).flatten()
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    if parts.next().is_some() {
        return None;
    }
    Date::new(year, month.try_into().ok()?, day.try_into().ok()?).ok()
}

/// A set of dates.
///
/// # Example
/// ```
/// use fivespot_schedule::{DateEntry, Dates};
///
/// let dates: Dates = [DateEntry::parse("12-25")?, DateEntry::range("2026-07-01", "2026-07-14")?]
///     .into_iter()
///     .collect();
/// assert!(dates.contains("2031-12-25".parse().expect("a date")));
/// assert!(!dates.contains("2027-07-01".parse().expect("a date")));
/// assert_eq!(dates.first_from("2026-07-15".parse().expect("a date")).map(|it| it.to_string()),
///     Some("2026-12-25".to_owned()));
/// # Ok::<_, fivespot_schedule::ParseError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dates {
    /// The first and the last day of each run, as days since 1970-01-01, ascending and not
    /// adjacent.
    runs: Vec<(i64, i64)>,
    /// Month and day, ascending.
    every_year: Vec<(i8, i8)>,
}

impl FromIterator<DateEntry> for Dates {
    fn from_iter<I: IntoIterator<Item = DateEntry>>(entries: I) -> Self {
        let mut dates = Self::default();
        for entry in entries {
            match entry {
                DateEntry::Range { first, last } if first <= last => {
                    dates.runs.push((number_of(first), number_of(last)));
                }
                DateEntry::Range { .. } => {}
                DateEntry::EveryYear { month, day } => {
                    dates.every_year.push((month, day));
                }
            }
        }
        dates.every_year.sort_unstable();
        dates.every_year.dedup();
        dates.runs.sort_unstable();
        dates.runs.dedup_by(|later, earlier| {
            let touches = later.0 <= earlier.1 + 1;
            if touches {
                earlier.1 = earlier.1.max(later.1);
            }
            touches
        });
        dates
    }
}

impl Dates {
    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.every_year.is_empty()
    }

    /// Whether the set contains `date`.
    pub fn contains(&self, date: Date) -> bool {
        self.first_from(date) == Some(date)
    }

    /// The first date of the set that is not before `date`.
    pub fn first_from(&self, date: Date) -> Option<Date> {
        self.first_day_from(number_of(date)).and_then(date_of)
    }

    pub(crate) fn contains_day(&self, day: i64) -> bool {
        let run = self.runs.partition_point(|(_, last)| *last < day);
        let is_in_run = self.runs.get(run).is_some_and(|(first, _)| *first <= day);
        is_in_run
            || !self.every_year.is_empty()
                && date_of(day).is_some_and(|date| {
                    let key = (date.month(), date.day());
                    self.every_year.binary_search(&key).is_ok()
                })
    }

    /// The first day, counted from 1970-01-01, that is not before `day`.
    pub(crate) fn first_day_from(&self, day: i64) -> Option<i64> {
        let run = self.runs.partition_point(|(_, last)| *last < day);
        let of_runs = self.runs.get(run).map(|(first, _)| (*first).max(day));
        let of_years = self.first_of_every_year(day);
        match (of_runs, of_years) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn first_of_every_year(&self, day: i64) -> Option<i64> {
        /// The longest gap: from February 29 of 2096 to that of 2104.
        const MAX_WAIT: i16 = 8;
        if self.every_year.is_empty() {
            return None;
        }
        let from = date_of(day)?;
        let last_year = from.year().saturating_add(MAX_WAIT);
        for year in from.year()..=last_year {
            for &(month, day) in &self.every_year {
                if let Ok(date) = Date::new(year, month, day)
                    && date >= from
                {
                    return Some(number_of(date));
                }
            }
        }
        None
    }
}

/// The number of days from 1970-01-01 to a date.
fn number_of(date: Date) -> i64 {
    let midnight =
        Offset::UTC.to_timestamp(date.to_datetime(jiff::civil::Time::midnight()));
    midnight.map_or(i64::MAX / DAY, |midnight| {
        midnight.as_second().div_euclid(DAY)
    })
}

/// The date that many days after 1970-01-01; `None` outside of the years -9999 to 9999.
fn date_of(day: i64) -> Option<Date> {
    let midnight = Timestamp::from_second(day.checked_mul(DAY)?).ok()?;
    Some(Offset::UTC.to_datetime(midnight).date())
}
