//! Instants and durations as text.

use jiff::{SignedDuration, Zoned};

/// `Sun 2026-03-08 03:00:00 -04:00`: an instant in local time with its offset.
pub(crate) fn local(at: &Zoned) -> String {
    at.strftime("%a %F %T %:z").to_string()
}

/// `45h`, `1h 30m`, `1m 30s`: hours, minutes and seconds that are not zero.
pub(super) fn length(seconds: i64) -> String {
    format!("{:#}", SignedDuration::from_secs(seconds))
}

/// `1,234,567`: a number with separators.
pub(crate) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
