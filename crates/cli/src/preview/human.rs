//! Instants and durations as text.

use jiff::Zoned;
use jiff::tz::Offset;

/// `Sun 2026-03-08 03:00:00 -04:00`: an instant in local time with its offset.
pub(crate) fn local(at: &Zoned) -> String {
    format!("{} {}", at.strftime("%a %F %T"), offset(at.offset()))
}

/// `-04:00`, with seconds if they are not zero.
fn offset(offset: Offset) -> String {
    let seconds = offset.seconds();
    let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match seconds {
        0 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// `45h`, `1h 30m`, `90s`: hours, minutes and seconds that are not zero.
pub(super) fn length(seconds: i64) -> String {
    let parts = [
        (seconds / 3600, 'h'),
        (seconds / 60 % 60, 'm'),
        (seconds % 60, 's'),
    ];
    let shown: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    if shown.is_empty() {
        "0s".to_owned()
    } else {
        shown.join(" ")
    }
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
