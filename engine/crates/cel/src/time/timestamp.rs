//! Timestamps: from year 1 to year 9999, in nanoseconds.

use kubemu_gostd::strconv::Quoted;
use kubemu_gostd::time::{self as go, Layout};
use std::cmp::Ordering;
use std::fmt;

use jiff::tz::{Offset, TimeZone};

use super::Duration;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// 0001-01-01T00:00:00Z
const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z
const LAST_SECOND: i64 = 253_402_300_799;

/// A timestamp. The range is the API server's, one day longer than jiff's.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Since 1970.
    seconds: i64,
    /// 0 to 999,999,999.
    nanos: u32,
    /// Seconds east of UTC in which it was written; it is printed in the same offset. Two
    /// timestamps that differ only in the offset are equal.
    offset: i32,
}

/// The component that a getter such as `getFullYear()` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    FullYear,
    /// From 0.
    Month,
    /// From 1.
    Date,
    /// From 0.
    DayOfMonth,
    /// Sunday is 0.
    DayOfWeek,
    /// From 0.
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

/// A date and time of day without a zone.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    second_of_day: i64,
}

impl Timestamp {
    /// The timestamp this number of seconds after 1970, if it is in range.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        Self::new(seconds, 0)
    }

    fn new(seconds: i64, nanos: u32) -> Option<Self> {
        (FIRST_SECOND..=LAST_SECOND)
            .contains(&seconds)
            .then_some(Self {
                seconds,
                nanos,
                offset: 0,
            })
    }

    /// Whole seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// The nanoseconds since that second: 0 to 999,999,999.
    pub(crate) fn subsecond_nanos(self) -> u32 {
        self.nanos
    }

    /// Parses RFC 3339 as Go does: `2026-03-08T09:00:00.5+01:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (seconds, nanos, offset) = Self::fields(text)?;
        let instant = Self::new(seconds, nanos)?;
        Some(instant.in_offset(i32::try_from(offset).ok()?))
    }

    /// Whether the text is RFC 3339, possibly out of range.
    pub(crate) fn is_rfc_3339(text: &str) -> bool {
        Self::fields(text).is_some()
    }

    /// Seconds since 1970, nanoseconds and the seconds of the offset.
    fn fields(text: &str) -> Option<(i64, u32, i64)> {
        let (date, clock) = (text.get(..10)?, text.get(11..)?);
        if text.as_bytes().get(10) != Some(&b'T') {
            return None;
        }
        let days = parse_days(date)?;
        // Go accepts hours of one digit too.
        let end = if clock.as_bytes().get(1) == Some(&b':') {
            7
        } else {
            8
        };
        let (clock, zone) = (clock.get(..end)?, clock.get(end..)?);
        let second_of_day = parse_clock(clock)?;
        let (nanos, zone) = match zone.strip_prefix(['.', ',']) {
            Some(fraction) => {
                let end = fraction.find(|c: char| !c.is_ascii_digit())?;
                let digits = fraction
                    .get(..end.min(9))
                    .filter(|digits| !digits.is_empty())?;
                let nanos: u32 = format!("{digits:0<9}").parse().ok()?;
                (nanos, fraction.get(end..)?)
            }
            None => (0, zone),
        };
        let offset = parse_zone(zone)?;
        Some((days * 86_400 + second_of_day - offset, nanos, offset))
    }

    /// Parses a date as its first instant in UTC.
    ///
    /// # Errors
    /// Go's message for text that is not a date.
    pub fn parse_date(text: &str) -> Result<Self, String> {
        Self::civil(text, &go::DATE)
    }

    /// Parses RFC 3339, or a time without a zone as UTC; empty text is 1970.
    ///
    /// # Errors
    /// Go's message for text that is neither.
    pub fn parse_lenient(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Self::civil("1970-01-01", &go::DATE);
        }
        match Self::parse(text) {
            Some(instant) => Ok(instant),
            None => Self::civil(text, &go::LOCAL_TIME),
        }
    }

    fn civil(text: &str, layout: &Layout) -> Result<Self, String> {
        let read = layout.read(text)?;
        let days = days_of(read.year, read.month, read.day);
        Self::new(days * 86_400 + read.second_of_day, read.nanos)
            .ok_or_else(|| go::out_of_range(text, "day"))
    }

    /// The timestamp plus a duration, if it is in range.
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let sum = self.total_nanos() + i128::from(duration.nanos());
        Some(Self::of_nanos(sum)?.in_offset(self.offset))
    }

    /// The duration from `earlier` to this timestamp, if it is in range.
    pub fn since(self, earlier: Self) -> Option<Duration> {
        let nanos = self.total_nanos() - earlier.total_nanos();
        i64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    fn in_offset(self, offset: i32) -> Self {
        Self { offset, ..self }
    }

    /// Whether it is the first timestamp, which is Go's zero time.
    pub(crate) fn is_zero(self) -> bool {
        self.seconds == FIRST_SECOND && self.nanos == 0
    }

    fn total_nanos(self) -> i128 {
        i128::from(self.seconds) * NANOS_PER_SECOND + i128::from(self.nanos)
    }

    fn of_nanos(nanos: i128) -> Option<Self> {
        let seconds = i64::try_from(nanos.div_euclid(NANOS_PER_SECOND)).ok()?;
        let nanos = u32::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).ok()?;
        Self::new(seconds, nanos)
    }

    /// A component of the local date and time in `zone`: an IANA name or an offset, `-08:00`.
    ///
    /// # Errors
    /// The API server's message for a zone that does not exist.
    pub(crate) fn part(self, part: Part, zone: &str) -> Result<i64, String> {
        let local = self.seconds + self.offset(zone)?;
        let civil = Civil::of(local);
        Ok(match part {
            Part::FullYear => civil.year,
            Part::Month => civil.month - 1,
            Part::Date => civil.day,
            Part::DayOfMonth => civil.day - 1,
            Part::DayOfWeek => (local.div_euclid(86_400) + 4).rem_euclid(7),
            Part::DayOfYear => local.div_euclid(86_400) - days_of(civil.year, 1, 1),
            Part::Hours => civil.second_of_day / 3600,
            Part::Minutes => civil.second_of_day / 60 % 60,
            Part::Seconds => civil.second_of_day % 60,
            Part::Milliseconds => i64::from(self.nanos) / 1_000_000,
        })
    }

    /// Seconds east of UTC in `zone` at this instant.
    fn offset(self, zone: &str) -> Result<i64, String> {
        if let Some((hours, minutes)) = zone.split_once(':') {
            return numeric_offset(zone, hours, minutes);
        }
        // The server's local zone is assumed to be UTC.
        if matches!(zone, "" | "UTC" | "Local") {
            return Ok(0);
        }
        if zone.contains("..") || zone.starts_with(['/', '\\']) {
            return Err("time: invalid location name".to_owned());
        }
        // A file name cannot contain it.
        if zone.contains('\0') {
            return Err("invalid argument".to_owned());
        }
        // Go's zone names are case-sensitive.
        let found = TimeZone::get(zone).ok();
        let found = found.filter(|found| found.iana_name() == Some(zone));
        let zone = found.ok_or_else(|| format!("unknown time zone {zone}"))?;
        // jiff's range ends a day earlier; no zone changes its offset on that day.
        let nearest =
            jiff::Timestamp::from_second(self.seconds).unwrap_or(if self.seconds > 0 {
                jiff::Timestamp::MAX
            } else {
                jiff::Timestamp::MIN
            });
        Ok(i64::from(Offset::seconds(zone.to_offset(nearest))))
    }
}

/// Hours and minutes of any size, each with its own sign; a sign before the hours alone applies
/// to both.
fn numeric_offset(zone: &str, hours: &str, minutes: &str) -> Result<i64, String> {
    const NANOS_PER_MINUTE: i64 = 60_000_000_000;
    let number = |text: &str| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number =
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let why = if is_number {
            "value out of range"
        } else {
            "invalid syntax"
        };
        let refused = || format!("strconv.Atoi: parsing {}: {why}", Quoted(text));
        let parsed = text.parse::<i64>().ok();
        parsed.filter(|_| is_number).ok_or_else(refused)
    };
    let (hours, minutes) = (number(hours)?.wrapping_mul(60), number(minutes)?);
    let offset = if zone.starts_with('-') {
        hours.wrapping_sub(minutes)
    } else {
        hours.wrapping_add(minutes)
    };
    // Go computes it in nanoseconds, which wrap.
    Ok(offset.wrapping_mul(NANOS_PER_MINUTE) / 1_000_000_000)
}

fn two_digits(text: &str) -> Option<i64> {
    let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Days from 1970 to `2026-03-08`.
fn parse_days(date: &str) -> Option<i64> {
    let bytes = date.as_bytes();
    if bytes.get(4) != Some(&b'-') || bytes.get(7) != Some(&b'-') {
        return None;
    }
    let year = date
        .get(..4)
        .filter(|year| year.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (month, day) = (two_digits(date.get(5..7)?)?, two_digits(date.get(8..10)?)?);
    let year: i64 = year.parse().ok()?;
    if !(1..=12).contains(&month) {
        return None;
    }
    let days = days_of(year, month, day);
    let same = Civil::of(days * 86_400);
    ((same.month, same.day) == (month, day)).then_some(days)
}

/// The second of the day of `09:30:00` or `9:30:00`.
fn parse_clock(clock: &str) -> Option<i64> {
    let (hours, rest) = clock.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':')?;
    let hours = match hours.as_bytes() {
        [digit @ b'0'..=b'9'] => i64::from(digit - b'0'),
        _ => two_digits(hours).filter(|hours| *hours < 24)?,
    };
    let minutes = two_digits(minutes).filter(|minutes| *minutes < 60)?;
    let seconds = two_digits(seconds).filter(|seconds| *seconds < 60)?;
    Some(hours * 3600 + minutes * 60 + seconds)
}

/// `Z` or `+01:00` as seconds east of UTC.
fn parse_zone(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, clock) = match zone.strip_prefix('-') {
        Some(clock) => (-1, clock),
        None => (1, zone.strip_prefix('+')?),
    };
    let (hours, minutes) = clock.split_once(':')?;
    let hours = two_digits(hours).filter(|hours| *hours <= 24)?;
    // Go accepts 60 minutes in an offset, though not in a time.
    let minutes = two_digits(minutes).filter(|minutes| *minutes <= 60)?;
    Some(sign * (hours * 3600 + minutes * 60))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; years begin in March so that
/// the leap day comes last.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

impl Civil {
    /// The inverse of [`days_of`], with the time of day.
    fn of(seconds: i64) -> Self {
        let days = seconds.div_euclid(86_400) + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524
            - day_of_era / 146_096)
            / 365;
        let day_of_year =
            day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self {
            year,
            month,
            day,
            second_of_day: seconds.rem_euclid(86_400),
        }
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

/// RFC 3339 in the offset it was written in, with as many fractional digits as needed.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil {
            year,
            month,
            day,
            second_of_day,
        } = Civil::of(self.seconds + i64::from(self.offset));
        let (hours, minutes) = (second_of_day / 3600, second_of_day / 60 % 60);
        let seconds = second_of_day % 60;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}"
        )?;
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}
