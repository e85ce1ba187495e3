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
    /// No machine is wanted from this hour of the day on, 0 to 24; before it, the exception does
    /// not apply. Dates of every year are ignored.
    StopFrom {
        /// The hour, on the local wall clock.
        hour: u8,
    },
}

impl ExceptionAction {
    /// The local time from which it applies, in seconds after midnight.
    pub(crate) fn begins(self) -> i64 {
        match self {
            Self::Run | Self::Stop => 0,
            Self::StopFrom { hour } => i64::from(hour) * 3_600,
        }
    }

    /// Whether it applies to a part of each date only.
    pub(crate) fn is_partial(self) -> bool {
        match self {
            Self::Run | Self::Stop => false,
            Self::StopFrom { .. } => true,
        }
    }
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
    ///     "expected a date such as '2026-12-24' or '12-24', found '2027-02-29'",
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
    /// Days since 1970-01-01, ascending and not adjacent.
    runs: Vec<Run>,
    /// As numbers of a leap year where January 1 is 0, ascending and not adjacent.
    every_year: Vec<Run>,
}

/// Days that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: i64,
    /// Included.
    pub(crate) last: i64,
}

impl FromIterator<DateEntry> for Dates {
    fn from_iter<I: IntoIterator<Item = DateEntry>>(entries: I) -> Self {
        let (mut runs, mut every_year) = (Vec::new(), Vec::new());
        for entry in entries {
            match entry {
                DateEntry::Range { first, last } if first <= last => runs.push(Run {
                    first: number_of(first),
                    last: number_of(last),
                }),
                DateEntry::Range { .. } => {}
                DateEntry::EveryYear { month, day } => {
                    let number = number_in_leap_year(month, day);
                    every_year.extend(number.map(|number| Run {
                        first: number,
                        last: number,
                    }));
                }
            }
        }
        Self {
            runs: joined(runs),
            every_year: joined(every_year),
        }
    }
}

impl Dates {
    /// Whether the set contains `date`.
    pub fn contains(&self, date: Date) -> bool {
        self.first_from(date) == Some(date)
    }

    /// The first date of the set that is not before `date`.
    pub fn first_from(&self, date: Date) -> Option<Date> {
        let day = number_of(date);
        let run = self.run_from(day)?;
        date_of(run.first.max(day))
    }

    /// The first run of dates that ends on `day` or later.
    fn run_from(&self, day: i64) -> Option<Run> {
        let of_years = next_of_every_year(&self.every_year, day);
        match (self.listed_run_from(day), of_years) {
            (Some(one), Some(other)) => Some(if one.first <= other.run.first {
                one
            } else {
                other.run
            }),
            (one, other) => one.or(other.map(|found| found.run)),
        }
    }

    /// As [`Dates::run_from`], without the dates of every year.
    pub(crate) fn listed_run_from(&self, day: i64) -> Option<Run> {
        let place = self.runs.partition_point(|run| run.last < day);
        self.runs.get(place).copied()
    }
}

/// The exceptions of a schedule. The first one that contains a date decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exceptions {
    all: Vec<Exception>,
    /// The dates of every year of all of them, each with the exception that decides.
    every_year: Vec<Run>,
    /// The places of those exceptions, one for each run.
    deciding: Vec<usize>,
}

/// A run of dates of every year, in one year.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunOfYear {
    /// The place of the run, or of the exception that decides.
    pub(crate) place: usize,
    pub(crate) run: Run,
}

impl Exceptions {
    pub(crate) fn of(all: Vec<Exception>) -> Self {
        let mut deciders = [None; DAYS_OF_LEAP_YEAR];
        let whole = all.iter().enumerate();
        for (place, exception) in whole.filter(|(_, it)| !it.action.is_partial()) {
            for run in &exception.dates.every_year {
                for number in run.first..=run.last {
                    let day = usize::try_from(number).ok();
                    if let Some(day) = day.and_then(|day| deciders.get_mut(day)) {
                        *day = day.or(Some(place));
                    }
                }
            }
        }
        let mut exceptions = Self {
            all,
            ..Self::default()
        };
        let mut first = 0;
        for same in deciders.chunk_by(|one, next| one == next) {
            let after = first + i64::try_from(same.len()).unwrap_or_default();
            if let Some(Some(place)) = same.first() {
                exceptions.deciding.push(*place);
                exceptions.every_year.push(Run {
                    first,
                    last: after - 1,
                });
            }
            first = after;
        }
        exceptions
    }

    pub(crate) fn all(&self) -> &[Exception] {
        &self.all
    }

    /// The first run of dates of every year that ends on `day` or later, and for which the same
    /// exception decides among all of every year.
    pub(crate) fn next_of_every_year(&self, day: i64) -> Option<RunOfYear> {
        let found = next_of_every_year(&self.every_year, day)?;
        Some(RunOfYear {
            place: *self.deciding.get(found.place)?,
            ..found
        })
    }
}

/// The first run that ends on `day` or later.
fn next_of_every_year(every_year: &[Run], day: i64) -> Option<RunOfYear> {
    /// The longest gap: from February 29 of 2096 to that of 2104.
    const MAX_WAIT: i16 = 8;
    if every_year.is_empty() {
        return None;
    }
    let year = date_of(day)?.year();
    for year in year..=year.saturating_add(MAX_WAIT) {
        let new_year = Date::new(year, 1, 1).ok()?;
        let days = DaysOf {
            new_year: number_of(new_year),
            is_leap: new_year.in_leap_year(),
        };
        let first = every_year.partition_point(|run| days.last(run.last) < day);
        let mut runs = (first..).zip(every_year.get(first..)?);
        let found = runs.find_map(|(place, run)| {
            let run = Run {
                first: days.first(run.first),
                last: days.last(run.last),
            };
            // February 29 alone is empty in most years.
            (run.first <= run.last).then_some(RunOfYear { place, run })
        });
        if found.is_some() {
            return found;
        }
    }
    None
}

const DAYS_OF_LEAP_YEAR: usize = 366;

/// The days of a year, by their number in a leap year, which contains every date.
struct DaysOf {
    new_year: i64,
    is_leap: bool,
}

/// The number of February 29 in a leap year, where January 1 is 0.
const LEAP_DAY: i64 = 59;

impl DaysOf {
    /// The first day that is not before a date.
    fn first(&self, number: i64) -> i64 {
        self.new_year + number - i64::from(!self.is_leap && number > LEAP_DAY)
    }

    /// The last day that is not after a date.
    fn last(&self, number: i64) -> i64 {
        self.new_year + number - i64::from(!self.is_leap && number >= LEAP_DAY)
    }
}

/// The number of a date in a leap year, where January 1 is 0.
fn number_in_leap_year(month: i8, day: i8) -> Option<i64> {
    let (date, new_year) = (Date::new(2000, month, day), Date::new(2000, 1, 1));
    Some(number_of(date.ok()?) - number_of(new_year.ok()?))
}

/// Sorts runs and joins those that touch.
fn joined(mut runs: Vec<Run>) -> Vec<Run> {
    runs.sort_unstable_by_key(|run| (run.first, run.last));
    runs.dedup_by(|later, earlier| {
        let touches = later.first <= earlier.last + 1;
        if touches {
            earlier.last = earlier.last.max(later.last);
        }
        touches
    });
    runs
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
