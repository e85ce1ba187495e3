//! Durations as v1beta1 writes them: Go's duration strings.

use std::time::Duration;

/// Parses a Go duration such as `5m`, `1h30m`, `300s` or `1.5h`. `None` if it is malformed,
/// negative, or longer than 2^63 nanoseconds.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use fivespot_capi::duration;
/// assert_eq!(duration::parse("5m0s"), Some(Duration::from_secs(300)));
/// assert_eq!(duration::parse("1.5h"), Some(Duration::from_secs(5400)));
/// assert_eq!(duration::parse("0"), Some(Duration::ZERO));
/// assert_eq!(duration::parse("5"), None);
/// ```
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let (unit, after) = unit(after)?;
        total = total.checked_add(nanoseconds(number, unit)?)?;
        rest = after;
    }
    (total <= i64::MAX.unsigned_abs()).then(|| Duration::from_nanos(total))
}

/// Formats whole seconds so that every version of Cluster API can parse them, e.g. `300s`.
pub fn print(length: Duration) -> String {
    format!("{}s", length.as_secs())
}

/// Splits off a unit. Returns its length in nanoseconds and the rest of the text.
fn unit(text: &str) -> Option<(u64, &str)> {
    // Longer names first: `m` is also a prefix of `ms`.
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    units
        .into_iter()
        .find_map(|(name, length)| Some((length, text.strip_prefix(name)?)))
}

/// `number` times `unit` nanoseconds; fractions of a nanosecond are truncated.
fn nanoseconds(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole = match whole {
        "" => 0,
        digits => digits.parse::<u64>().ok()?.checked_mul(unit)?,
    };
    let mut part = 0_u128;
    let mut scale = 1_u128;
    // Further digits have no effect at nanosecond precision.
    for digit in fraction.chars().take(18) {
        part = part * 10 + u128::from(digit.to_digit(10)?);
        scale *= 10;
    }
    let part = u64::try_from(part * u128::from(unit) / scale).ok()?;
    whole.checked_add(part)
}
