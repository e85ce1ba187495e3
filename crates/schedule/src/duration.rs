//! Lengths of time as users write them: `30s`, `5m`, `1h`.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;

use crate::parse::{ParseError, Token};

/// A length of time written as digits and one unit: `90s`, `5m`, `24h`.
///
/// Whole seconds, never negative. Printing uses the largest unit that is exact, so `90m` prints
/// unchanged and `60m` as `1h`. The printed text parses to the same length.
///
/// # Example
/// ```
/// use fivespot_schedule::Duration;
///
/// let grace: Duration = "300s".parse()?;
/// assert_eq!(grace.as_secs(), 300);
/// assert_eq!(grace.to_string(), "5m");
/// assert!(grace.within(Duration::ZERO, Duration::hours(24)).is_ok());
/// assert_eq!(
///     "five minutes".parse::<Duration>().unwrap_err().to_string(),
///     "expected digits and a unit of s, m or h, such as '5m', found 'five minutes'",
/// );
/// # Ok::<_, fivespot_schedule::ParseError>(())
/// ```
///
/// # Errors
/// Parsing fails unless the text matches `^[0-9]+[smh]$`, and on more seconds than an `i64`
/// holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(SignedDuration);

/// A duration outside the bounds of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be from {least} to {most}, not {given}")]
pub struct OutOfBounds {
    given: Duration,
    least: Duration,
    most: Duration,
}

impl Duration {
    /// Zero, `0s`.
    pub const ZERO: Self = Self(SignedDuration::ZERO);

    /// A duration in seconds.
    pub const fn seconds(seconds: u32) -> Self {
        Self(SignedDuration::from_secs(seconds as i64))
    }

    /// A duration in minutes.
    pub const fn minutes(minutes: u32) -> Self {
        Self(SignedDuration::from_secs(minutes as i64 * 60))
    }

    /// A duration in hours.
    pub const fn hours(hours: u32) -> Self {
        Self(SignedDuration::from_secs(hours as i64 * 3600))
    }

    /// The length in whole seconds, never negative.
    pub const fn as_secs(self) -> i64 {
        self.0.as_secs()
    }

    /// Returns the duration if it is neither shorter than `least` nor longer than `most`.
    pub fn within(self, least: Self, most: Self) -> Result<Self, OutOfBounds> {
        if (least..=most).contains(&self) {
            Ok(self)
        } else {
            Err(OutOfBounds {
                given: self,
                least,
                most,
            })
        }
    }
}

impl From<Duration> for SignedDuration {
    fn from(duration: Duration) -> Self {
        duration.0
    }
}

impl FromStr for Duration {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let whole = Token::whole(text);
        let error = || whole.error("digits and a unit of s, m or h, such as '5m'");
        let (unit, seconds) = match text.as_bytes().last() {
            Some(b's') => ('s', 1),
            Some(b'm') => ('m', 60),
            Some(b'h') => ('h', 3600),
            _ => return Err(error()),
        };
        let digits = text.strip_suffix(unit).unwrap_or_default();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error());
        }
        let number = digits.parse::<i64>().ok();
        number
            .and_then(|number| number.checked_mul(seconds))
            .map(|seconds| Self(SignedDuration::from_secs(seconds)))
            .ok_or_else(|| whole.error("fewer than 2^63 seconds"))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_secs() {
            0 => f.write_str("0s"),
            seconds if seconds % 3600 == 0 => write!(f, "{}h", seconds / 3600),
            seconds if seconds % 60 == 0 => write!(f, "{}m", seconds / 60),
            seconds => write!(f, "{seconds}s"),
        }
    }
}
