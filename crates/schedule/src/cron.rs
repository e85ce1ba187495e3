//! Five cron fields, and the wall-clock minutes they match.

mod field;
mod search;

use std::fmt;
use std::str::FromStr;

use crate::parse::{ParseError, Token};

use field::{DAYS_OF_MONTH, DAYS_OF_WEEK, Field, HOURS, Kind, MINUTES, MONTHS};

/// Five cron fields: minute, hour, day of month, month, day of week.
///
/// Each is `*`, a number, a range, either of the last two forms of a step (`*/n`, `a-b/n`), or a
/// comma list of these. Months and days may be named (`jan`, `MON`); 0 and 7 are Sunday, and
/// `sun` at the end of a range is 7. When neither day field starts with `*`, a day matches if
/// either does, otherwise it must match both, as in Vixie's cron. There are no seconds, no
/// `@daily`, `L`, `W`, `#` or `?`.
///
/// Printing gives a text that parses to the same value.
///
/// # Example
/// ```
/// use fivespot_schedule::Cron;
///
/// let cron: Cron = "0 9-17 * * MON-FRI".parse()?;
/// assert_eq!(cron.to_string(), "0 9-17 * * 1-5");
/// assert!(!"0 0 30 2 *".parse::<Cron>()?.can_fire());
/// assert_eq!(
///     "0 24 * * *".parse::<Cron>().unwrap_err().to_string(),
///     "expected an hour from 0 to 23 at byte 2, found '24'",
/// );
/// # Ok::<_, fivespot_schedule::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cron {
    minute: Field,
    hour: Field,
    day_of_month: Field,
    month: Field,
    day_of_week: Field,
}

impl FromStr for Cron {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut words = Token::whole(text).words();
        let end = Token {
            text: "",
            offset: text.len(),
        };
        let mut field = |kind: &Kind| {
            let word = words.next().ok_or_else(|| {
                end.error("five fields: minute, hour, day of month, month, day of week")
            })?;
            Field::parse(word, kind)
        };
        let cron = Self {
            minute: field(&MINUTES)?,
            hour: field(&HOURS)?,
            day_of_month: field(&DAYS_OF_MONTH)?,
            month: field(&MONTHS)?,
            day_of_week: field(&DAYS_OF_WEEK)?,
        };
        match words.next() {
            None => Ok(cron),
            Some(word) => Err(word.error("the end after five fields")),
        }
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.minute.print(f, &MINUTES)?;
        f.write_str(" ")?;
        self.hour.print(f, &HOURS)?;
        f.write_str(" ")?;
        self.day_of_month.print(f, &DAYS_OF_MONTH)?;
        f.write_str(" ")?;
        self.month.print(f, &MONTHS)?;
        f.write_str(" ")?;
        self.day_of_week.print(f, &DAYS_OF_WEEK)
    }
}

impl Cron {
    /// Whether it ever fires: false for February 30.
    pub fn can_fire(&self) -> bool {
        // The maximum length of each month. Over the decades every date falls on every weekday,
        // so a weekday that must match as well excludes no date.
        const MAX_DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let first = self.day_of_month.matches.first();
        let mut months = MAX_DAYS.iter().zip(1..);
        self.is_on_either_day()
            || months.any(|(&days, month)| {
                self.month.matches.contains(month) && first.is_some_and(|day| day <= days)
            })
    }

    /// Whether it fires on every day of the calendar.
    pub(crate) fn is_daily(&self) -> bool {
        let dates = self.day_of_month.is_full(&DAYS_OF_MONTH);
        let weekdays = self.day_of_week.is_full(&DAYS_OF_WEEK);
        let days = if self.is_on_either_day() {
            dates || weekdays
        } else {
            dates && weekdays
        };
        days && self.month.is_full(&MONTHS)
    }

    /// The minutes of a day on which it fires, counted from midnight, in ascending order.
    pub(crate) fn minutes_of_day(&self) -> impl Iterator<Item = u32> {
        let minutes = self.minute.matches;
        let hours = self.hour.matches.members();
        hours
            .flat_map(move |hour| minutes.members().map(move |minute| hour * 60 + minute))
    }

    /// Whether a matching date or a matching weekday is enough; otherwise both must match.
    fn is_on_either_day(&self) -> bool {
        !self.day_of_month.is_starred && !self.day_of_week.is_starred
    }
}
