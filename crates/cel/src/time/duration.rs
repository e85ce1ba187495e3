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

/// Units of a JSON `format: duration`: their short names, what their long names begin with, and
/// nanoseconds.
const LONG_UNITS: [(&[&str], &str, i64); 8] = [
    (&["ns"], "nano", 1),
    (&["us", "\u{b5}s"], "micro", 1_000),
    (&["ms"], "milli", 1_000_000),
    (&["s"], "sec", NANOS_PER_SECOND),
    (&["m"], "min", 60 * NANOS_PER_SECOND),
    (&["h", "hr"], "hour", 3600 * NANOS_PER_SECOND),
    (&["d"], "day", 86_400 * NANOS_PER_SECOND),
    (&["w", "wk"], "week", 604_800 * NANOS_PER_SECOND),
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
    /// units up to weeks somewhere in the text, `in 2 days, 3 hours`. What is no number with
    /// a unit is passed over, and a sum out of range wraps, as in Kubernetes' `strfmt`.
    pub fn parse_lenient(text: &str) -> Option<Self> {
        if let Some(duration) = Self::parse(text) {
            return Some(duration);
        }
        let mut total: Option<i64> = None;
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let (_, from) = rest.split_at(at);
            let after = from.trim_start_matches(|c: char| c.is_ascii_digit());
            let (number, _) = from.split_at(from.len() - after.len());
            let word = after.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
            let is_inner = |c: char| c.is_ascii_alphabetic() || c == '\u{b5}';
            let end = word.trim_start_matches(is_inner);
            let (unit, _) = word.split_at(word.len() - end.len());
            rest = after;
            if unit.is_empty() {
                continue;
            }
            rest = end;
            let factor = number.parse::<i64>().ok()?;
            if let Some(scale) = long_unit(&unit.to_lowercase()) {
                let span = factor.wrapping_mul(scale);
                total = Some(total.unwrap_or(0).wrapping_add(span));
            }
        }
        total.map(Self::from_nanos)
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

fn long_unit(name: &str) -> Option<i64> {
    let is_meant = |(short, long, _): &&(&[&str], &str, i64)| {
        short.contains(&name) || name.starts_with(long)
    };
    LONG_UNITS.iter().find(is_meant).map(|(_, _, nanos)| *nanos)
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
        i128::from(whole.parse::<u64>().ok()?)
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

/// As `string(duration)` writes it, `90s` or `1.5s`: a float of seconds, which has no room for
/// all nanoseconds of many years.
impl fmt::Display for Duration {
    #[expect(
        clippy::cast_precision_loss,
        reason = "Go's `Duration.Seconds` converts so"
    )]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = (self.nanos / NANOS_PER_SECOND) as f64;
        let rest = (self.nanos % NANOS_PER_SECOND) as f64;
        write!(f, "{}s", whole + rest / 1e9)
    }
}
