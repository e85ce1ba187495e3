//! Durations, after `time.Duration` and `time.ParseDuration` (src/time/time.go, format.go).

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A duration in nanoseconds; at most some 292 years, positive or negative.
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

impl Duration {
    /// A duration of this number of nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    /// The duration in nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.nanos
    }

    /// The duration in seconds (Go's `Duration.Seconds`); nanoseconds of long durations are
    /// rounded.
    #[expect(clippy::cast_precision_loss, reason = "the same conversion as in Go")]
    pub const fn seconds(self) -> f64 {
        let whole = (self.nanos / NANOS_PER_SECOND) as f64;
        let rest = (self.nanos % NANOS_PER_SECOND) as f64;
        whole + rest / 1e9
    }

    /// Same as `time.ParseDuration`: parses `1h30m`, `-1.5s`, `0`; `None` if it is malformed.
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

    /// The sum, unless it is out of range.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.nanos.checked_add(other.nanos).map(Self::from_nanos)
    }

    /// The difference, unless it is out of range.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.nanos.checked_sub(other.nanos).map(Self::from_nanos)
    }

    /// The negated duration, unless it is out of range.
    pub fn checked_neg(self) -> Option<Self> {
        self.nanos.checked_neg().map(Self::from_nanos)
    }
}

/// A decimal number times a unit, truncated to whole nanoseconds.
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
