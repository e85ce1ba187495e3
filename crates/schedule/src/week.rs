//! Days of the week and hours of the day as values: `mon-fri`, `9-17`.

use std::fmt;
use std::ops::BitOr;
use std::str::FromStr;

use jiff::civil::Weekday;

use crate::parse::{ParseError, Token};
use crate::set::Set;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAYS_PER_WEEK: u32 = 7;
pub(crate) const HOURS_PER_DAY: u32 = 24;

/// Some days of the week: `mon`, `mon-fri`, `fri-mon` (over the weekend), `mon-wed,sat`.
///
/// Names are lower case, without surrounding spaces. Never empty when parsed. Printing gives
/// the shortest text that parses to the same days.
///
/// # Example
/// ```
/// use fivespot_schedule::Days;
/// use jiff::civil::Weekday;
///
/// let days: Days = "fri,mon,sat-sun".parse()?;
/// assert!(days.contains(Weekday::Sunday) && !days.contains(Weekday::Tuesday));
/// assert_eq!(days.to_string(), "fri-mon");
/// # Ok::<_, fivespot_schedule::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Days(Set);

impl Days {
    /// Whether `day` is one of the days.
    pub fn contains(self, day: Weekday) -> bool {
        self.0
            .contains(u32::from(day.to_monday_zero_offset().unsigned_abs()))
    }

    /// Whether the set is every day of the week.
    pub fn is_every_day(self) -> bool {
        self.0 == Set::range(0, DAYS_PER_WEEK - 1, 1)
    }
}

impl BitOr for Days {
    type Output = Self;

    /// The days that are in either set.
    fn bitor(self, other: Self) -> Self {
        Self(self.0.union(other.0))
    }
}

impl FromStr for Days {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        dial(text, DAYS_PER_WEEK, |token| {
            let named = DAYS.iter().zip(0..).find(|(name, _)| **name == token.text);
            named
                .map(|(_, day)| day)
                .ok_or_else(|| token.error("a day (mon, tue, wed, thu, fri, sat or sun)"))
        })
        .map(Self)
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |day: u32| DAYS.get(day as usize).copied().unwrap_or_default();
        print_runs(f, &self.0.runs_on_dial(DAYS_PER_WEEK), name)
    }
}

/// Some hours of the day: `9`, `9-17`, `22-6` (over midnight), `0-5,18-23`.
///
/// Hour `h` covers `[h:00, h+1:00)` on the local wall clock, so `9-17` closes at 18:00.
/// One or two digits each. Never empty when parsed. Printing gives the shortest text that
/// parses to the same hours.
///
/// # Example
/// ```
/// use fivespot_schedule::Hours;
///
/// let hours: Hours = "22-6".parse()?;
/// assert!(hours.contains(23) && hours.contains(6) && !hours.contains(7));
/// assert!(hours.is_over_midnight());
/// # Ok::<_, fivespot_schedule::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hours(Set);

impl Hours {
    /// Whether the hour that starts at `hour`:00 is in the set; false above 23.
    pub fn contains(self, hour: u8) -> bool {
        self.0.contains(u32::from(hour))
    }

    /// Whether the set is every hour of the day.
    pub fn is_every_hour(self) -> bool {
        self.0 == Set::range(0, HOURS_PER_DAY - 1, 1)
    }

    /// Whether the hours cross midnight without filling the day.
    ///
    /// Together with only some days of the week this is rarely intended: `fri` with `22-6` is
    /// open from 00:00 to 07:00 *and* from 22:00 to 24:00 on Friday, because day and hour are
    /// compared at the same instant.
    pub fn is_over_midnight(self) -> bool {
        self.contains(0) && self.contains(23) && !self.is_every_hour()
    }
}

impl BitOr for Hours {
    type Output = Self;

    /// The hours that are in either set.
    fn bitor(self, other: Self) -> Self {
        Self(self.0.union(other.0))
    }
}

impl FromStr for Hours {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        dial(text, HOURS_PER_DAY, |token| {
            let hour = token.number().filter(|_| token.text.len() <= 2);
            hour.filter(|hour| *hour < HOURS_PER_DAY)
                .ok_or_else(|| token.error("an hour from 0 to 23"))
        })
        .map(Self)
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_runs(f, &self.0.runs_on_dial(HOURS_PER_DAY), |hour| hour)
    }
}

/// The 168 hours of a week, each wanted or not. By default none is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Week {
    /// The hours of each day, from Monday on.
    days: [Set; 7],
}

impl Week {
    pub(crate) const HOURS: i64 = 168;

    pub(crate) fn new(days: Days, hours: Hours) -> Self {
        let mut week = Self::default();
        for (day, of_day) in (0..).zip(&mut week.days) {
            if days.0.contains(day) {
                *of_day = hours.0;
            }
        }
        week
    }

    /// Every hour.
    pub(crate) fn always() -> Self {
        Self {
            days: [Set::range(0, HOURS_PER_DAY - 1, 1); 7],
        }
    }

    /// The hours that are in either week.
    pub(crate) fn union(mut self, other: Self) -> Self {
        for (hours, others) in self.days.iter_mut().zip(other.days) {
            *hours = hours.union(others);
        }
        self
    }

    /// Whether the `hour`-th hour after any Monday 00:00 is wanted.
    pub(crate) fn contains(self, hour: i64) -> bool {
        let hour = u32::try_from(hour.rem_euclid(Self::HOURS)).unwrap_or_default();
        let hours = self.days.get((hour / HOURS_PER_DAY) as usize);
        hours.is_some_and(|hours| hours.contains(hour % HOURS_PER_DAY))
    }

    /// Whether every hour is wanted.
    pub(crate) fn is_always(self) -> bool {
        let every_hour = Set::range(0, HOURS_PER_DAY - 1, 1);
        self.days.iter().all(|hours| *hours == every_hour)
    }
}

/// A comma list of numbers and ranges on a dial of `size` numbers.
fn dial(
    text: &str,
    size: u32,
    number: impl Fn(Token<'_>) -> Result<u32, ParseError>,
) -> Result<Set, ParseError> {
    let mut all = Set::default();
    for entry in Token::whole(text).split(',') {
        let (first, last) = entry.split_once('-');
        let first = number(first)?;
        let last = last.map_or(Ok(first), &number)?;
        all = all.union(Set::range_on_dial(first, last, size));
    }
    Ok(all)
}

/// Prints runs as `a-b,c`, each number formatted by `name`.
pub(crate) fn print_runs<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    runs: &[(u32, u32)],
    name: impl Fn(u32) -> T,
) -> fmt::Result {
    let mut comma = "";
    for &(first, last) in runs {
        f.write_str(comma)?;
        if first == last {
            write!(f, "{}", name(first))?;
        } else {
            write!(f, "{}-{}", name(first), name(last))?;
        }
        comma = ",";
    }
    Ok(())
}
