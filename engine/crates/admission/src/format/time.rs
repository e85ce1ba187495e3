//! Dates and times of day.

use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;

/// `2006-01-02`.
pub(super) fn is_date(text: &str) -> bool {
    let has_form = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    text.len() == 10 && has_form && Date::strptime("%Y-%m-%d", text).is_ok()
}

/// `2006-01-02T15:04:05`, an optional fraction, and `Z` or an offset; case-insensitive.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

/// Kubernetes' pattern for the time of a `date-time`.
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let zone = "(z|[+-][0-9]{2}:[0-9]{2})";
    Regex::new(&format!(
        "^([0-9]{{2}}):([0-9]{{2}}):([0-9]{{2}})(.[0-9]+)?{zone}$"
    ))
    .ok()
});

fn is_time(text: &str) -> bool {
    let Some(parts) = TIME.as_ref().and_then(|time| time.captures(text)) else {
        return false;
    };
    let is_at_most =
        |at: usize, most: &str| parts.get(at).is_some_and(|part| part.as_str() <= most);
    is_at_most(1, "23") && is_at_most(2, "59") && is_at_most(3, "59")
}
