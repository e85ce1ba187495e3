//! Dates and times without a zone, after `time.Parse` with such a layout (src/time/format.go),
//! with its error messages.

use std::fmt::Write as _;

/// An element of a layout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    Literal(char),
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

use Element::{Day, Hour, Literal, Minute, Month, Second, Year};

/// A layout in Go's notation, and its elements.
pub struct Layout {
    written: &'static str,
    elements: &'static [Element],
}

/// A date.
pub const DATE: Layout = Layout {
    written: "2006-01-02",
    elements: &[Year, Literal('-'), Month, Literal('-'), Day],
};

/// A date and a time of day.
pub const LOCAL_TIME: Layout = Layout {
    written: "2006-01-02T15:04:05",
    elements: &[
        Year,
        Literal('-'),
        Month,
        Literal('-'),
        Day,
        Literal('T'),
        Hour,
        Literal(':'),
        Minute,
        Literal(':'),
        Second,
    ],
};

/// A parsed date and time of day without a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Civil {
    /// The year, from 0 to 9999.
    pub year: i64,
    /// The month, from 1 to 12.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
    /// Seconds since midnight.
    pub second_of_day: i64,
    /// Nanoseconds of that second.
    pub nanos: u32,
}

impl Layout {
    /// Parses the whole `text`.
    ///
    /// ```
    /// use kubemu_gostd::time;
    /// assert_eq!(time::DATE.read("2024-02-29").map(|date| date.day), Ok(29));
    /// assert_eq!(
    ///     time::DATE.read("2023-02-29").unwrap_err(),
    ///     r#"parsing time "2023-02-29": day out of range"#
    /// );
    /// ```
    ///
    /// # Errors
    /// Go's message.
    pub fn read(&self, text: &str) -> Result<Civil, String> {
        let mut read = Civil::default();
        let mut rest = text;
        for element in self.elements {
            let before = rest;
            let Some((number, after)) = element.take(rest) else {
                let element = element.written();
                return Err(format!(
                    "parsing time {} as {:?}: cannot parse {} as {element:?}",
                    quoted(text),
                    self.written,
                    quoted(before)
                ));
            };
            rest = after;
            if let Some(what) = element.out_of_range(number) {
                return Err(out_of_range(text, what));
            }
            match element {
                Literal(_) => {}
                Year => read.year = number,
                Month => read.month = number,
                Day => read.day = number,
                Hour => read.second_of_day = number * 3600,
                Minute => read.second_of_day += number * 60,
                Second => {
                    read.second_of_day += number;
                    (read.nanos, rest) = fraction(rest);
                }
            }
        }
        if !rest.is_empty() {
            let (text, rest) = (quoted(text), quoted(rest));
            return Err(format!("parsing time {text}: extra text: {rest}"));
        }
        if read.day < 1 || read.day > read.days_of_month() {
            return Err(out_of_range(text, "day"));
        }
        Ok(read)
    }
}

impl Civil {
    const fn days_of_month(&self) -> i64 {
        let is_leap =
            self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

/// Go's message for a part that is out of range.
pub fn out_of_range(text: &str, what: &str) -> String {
    format!("parsing time {}: {what} out of range", quoted(text))
}

/// The text as quoted by Go's package `time`: bytes that are not printable ASCII are in
/// hexadecimal.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7f => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted + "\""
}

impl Element {
    /// Parses the element; returns its number (0 for a literal) and the rest.
    fn take(self, text: &str) -> Option<(i64, &str)> {
        let digits = |count: usize| {
            let (digits, rest) = text.split_at_checked(count)?;
            let all = digits.bytes().all(|byte| byte.is_ascii_digit());
            all.then_some((digits.parse().ok()?, rest))
        };
        match self {
            Literal(char) => text.strip_prefix(char).map(|rest| (0, rest)),
            Year => digits(4),
            Hour => digits(2).or_else(|| digits(1)),
            Month | Day | Minute | Second => digits(2),
        }
    }

    const fn out_of_range(self, number: i64) -> Option<&'static str> {
        match self {
            Month if number < 1 || number > 12 => Some("month"),
            Hour if number > 23 => Some("hour"),
            Minute if number > 59 => Some("minute"),
            Second if number > 59 => Some("second"),
            _ => None,
        }
    }

    fn written(self) -> String {
        match self {
            Literal(char) => return char.to_string(),
            Year => "2006",
            Month => "01",
            Day => "02",
            Hour => "15",
            Minute => "04",
            Second => "05",
        }
        .to_owned()
    }
}

/// The nanoseconds after a dot or comma, if any, and the rest.
fn fraction(text: &str) -> (u32, &str) {
    let Some(after) = text.strip_prefix(['.', ',']) else {
        return (0, text);
    };
    let end = after
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(after.len());
    let (digits, rest) = after.split_at(end);
    let nanos = digits.get(..end.min(9)).unwrap_or_default();
    match format!("{nanos:0<9}").parse() {
        Ok(nanos) if end > 0 => (nanos, rest),
        _ => (0, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_times_have_gos_messages() {
        let rows = [
            (
                "2024-01-01",
                "as \"2006-01-02T15:04:05\": cannot parse \"\" as \"T\"",
            ),
            (
                "tab",
                "as \"2006-01-02T15:04:05\": cannot parse \"tab\" as \"2006\"",
            ),
            (
                "tab\t",
                "as \"2006-01-02T15:04:05\": cannot parse \"tab\\x09\" as \"2006\"",
            ),
            (
                "2024-1-1",
                "as \"2006-01-02T15:04:05\": cannot parse \"1-1\" as \"01\"",
            ),
            ("2024-13-01T00:00:00", ": month out of range"),
            ("2024-01-01T25:00:00", ": hour out of range"),
            ("2024-01-01T00:00:00+1", ": extra text: \"+1\""),
        ];
        for (text, wanted) in rows {
            let found = LOCAL_TIME.read(text).expect_err(text);
            let text = quoted(text);
            let wanted = format!("parsing time {text} {wanted}").replace(" :", ":");
            assert_eq!(found, wanted);
        }
        let extra = DATE.read("2024-01-01T").expect_err("it is too long");
        assert_eq!(extra, "parsing time \"2024-01-01T\": extra text: \"T\"");
    }

    #[test]
    fn a_time_may_have_a_fraction_and_a_short_hour() {
        let read = LOCAL_TIME.read("2024-02-29T7:05:06.5").expect("it is one");
        let wanted = Civil {
            year: 2024,
            month: 2,
            day: 29,
            second_of_day: 7 * 3600 + 5 * 60 + 6,
            nanos: 500_000_000,
        };
        assert_eq!(read, wanted);
    }
}
