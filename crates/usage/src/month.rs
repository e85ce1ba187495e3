//! A month in UTC.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::{Serialize, Serializer};

/// A month in UTC, written `2026-10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month(Date);

/// The error of a text that is not a month such as `2026-10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAMonth;

impl Month {
    /// The month of an instant.
    pub fn at(instant: Timestamp) -> Self {
        Self(instant.to_zoned(TimeZone::UTC).date().first_of_month())
    }

    /// Its first instant.
    pub fn start(self) -> Timestamp {
        midnight(self.0)
    }

    /// The first instant after it.
    pub fn end(self) -> Timestamp {
        self.next().map_or(Timestamp::MAX, Self::start)
    }

    /// The month after it. `None` at the end of the calendar.
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1.month()).ok().map(Self)
    }

    /// The month before it. `None` at the beginning of the calendar.
    pub fn previous(self) -> Option<Self> {
        self.0.checked_sub(1.month()).ok().map(Self)
    }

    /// The month for display: `October 2026`.
    pub fn in_words(self) -> String {
        self.0.strftime("%B %Y").to_string()
    }
}

fn midnight(date: Date) -> Timestamp {
    let midnight = date.to_zoned(TimeZone::UTC);
    midnight.map_or(Timestamp::MAX, |at| at.timestamp())
}

impl FromStr for Month {
    type Err = NotAMonth;

    fn from_str(text: &str) -> Result<Self, NotAMonth> {
        let is_written_so = text.len() == 7 && text.as_bytes().get(4) == Some(&b'-');
        let first = format!("{text}-01").parse().map(Self);
        first.ok().filter(|_| is_written_so).ok_or(NotAMonth)
    }
}

impl fmt::Display for Month {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04}-{:02}", self.0.year(), self.0.month())
    }
}

impl Serialize for Month {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for NotAMonth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("expected a month such as 2026-10")
    }
}

impl std::error::Error for NotAMonth {}
