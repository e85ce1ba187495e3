//! Spans of time: Go's `time.Duration`.

use std::fmt;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A span of time in nanoseconds; at most some 292 years either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    nanos: i64,
}

/// Units by name, in nanoseconds.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3600 * NANOS_PER_SECOND),
];

/// Further units that a JSON `format: duration` may use.
const LONG_UNITS: [(&str, i64); 20] = [
    ("nanosecond", 1),
    ("nanoseconds", 1),
    ("microsecond", 1_000),
    ("microseconds", 1_000),
    ("millisecond", 1_000_000),
    ("milliseconds", 1_000_000),
    ("sec", NANOS_PER_SECOND),
    ("second", NANOS_PER_SECOND),
    ("seconds", NANOS_PER_SECOND),
    ("min", 60 * NANOS_PER_SECOND),
    ("minute", 60 * NANOS_PER_SECOND),
    ("minutes", 60 * NANOS_PER_SECOND),
    ("hour", 3600 * NANOS_PER_SECOND),
    ("hours", 3600 * NANOS_PER_SECOND),
    ("d", 86_400 * NANOS_PER_SECOND),
    ("day", 86_400 * NANOS_PER_SECOND),
    ("days", 86_400 * NANOS_PER_SECOND),
    ("w", 604_800 * NANOS_PER_SECOND),
    ("week", 604_800 * NANOS_PER_SECOND),
    ("weeks", 604_800 * NANOS_PER_SECOND),
];

impl Duration {
    /// A span of so many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// The span in nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.nanos
    }

    /// Reads Go's form: `1h30m`, `-1.5s`, `0`.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix(['-', '+']) {
            Some(rest) => (text.starts_with('-'), rest),
            None => (false, text),
        };
        if rest == "0" {
            return Some(Self::from_nanos(0));
        }
        let mut total = 0_i128;
        let mut rest = rest;
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, after) = rest.split_at(end);
            let end = after.find(|c: char| c.is_ascii_digit() || c == '.');
            let (unit, after) = after.split_at(end.unwrap_or(after.len()));
            let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
            total = total.checked_add(scaled(number, *scale)?)?;
            rest = after;
        }
        let signed = if negative { -total } else { total };
        i64::try_from(signed).ok().map(Self::from_nanos)
    }

    /// Reads what an OpenAPI `format: duration` allows: Go's form, or whole numbers with
    /// units up to weeks, `2 days 3 hours`.
    pub fn parse_lenient(text: &str) -> Option<Self> {
        if let Some(duration) = Self::parse(text) {
            return Some(duration);
        }
        let mut total = 0_i64;
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            let (number, after) = rest.split_at(end);
            let after = after.trim_start();
            let end = after
                .find(|c: char| !c.is_alphabetic())
                .unwrap_or(after.len());
            let (unit, after) = after.split_at(end);
            let unit = unit.to_lowercase();
            let mut units = UNITS.iter().chain(&LONG_UNITS);
            let (_, scale) = units.find(|(name, _)| *name == unit)?;
            total =
                total.checked_add(number.parse::<i64>().ok()?.checked_mul(*scale)?)?;
            rest = after.trim_start();
        }
        (!text.trim().is_empty()).then_some(Self::from_nanos(total))
    }

    /// The sum, unless it is out of range.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.nanos.checked_add(other.nanos).map(Self::from_nanos)
    }

    /// The difference, unless it is out of range.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.nanos.checked_sub(other.nanos).map(Self::from_nanos)
    }

    /// The span negated, unless it is out of range.
    pub fn checked_neg(self) -> Option<Self> {
        self.nanos.checked_neg().map(Self::from_nanos)
    }
}

/// A decimal number times a unit, cut to whole nanoseconds.
fn scaled(number: &str, scale: i64) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let scale = i128::from(scale);
    let whole = if whole.is_empty() {
        0
    } else {
        i128::from(whole.parse::<i64>().ok()?)
    };
    let mut nanos = whole.checked_mul(scale)?;
    let mut unit = scale;
    let mut rest = 0_i128;
    let mut divisor = 1_i128;
    for digit in fraction.bytes().take(18) {
        rest = rest * 10 + i128::from(digit - b'0');
        divisor *= 10;
    }
    unit *= rest;
    nanos += unit / divisor;
    Some(nanos)
}

/// As `string(duration)` writes it: seconds, `90s`, `1.5s`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let nanos = self.nanos.unsigned_abs();
        let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        write!(f, "{sign}{seconds}")?;
        if rest > 0 {
            let digits = format!("{rest:09}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("s")
    }
}
