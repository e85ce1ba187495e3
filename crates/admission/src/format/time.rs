//! Dates, times of day and lengths of time.

use jiff::civil::Date;

/// `2006-01-02`.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.get(4) == Some(&b'-')
        && bytes.get(7) == Some(&b'-')
        && Date::strptime("%Y-%m-%d", text).is_ok()
}

/// `2006-01-02T15:04:05`, an optional fraction, and `Z` or an offset; in any case.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return false;
    };
    let two = |at: usize| clock.get(at..at + 2).filter(|two| is_digits(two));
    let separated = clock.get(2..3) == Some(":") && clock.get(5..6) == Some(":");
    let (Some(hour), Some(minute), Some(second)) = (two(0), two(3), two(6)) else {
        return false;
    };
    let in_range = hour <= "23" && minute <= "59" && second <= "59";
    separated && in_range && is_fraction_and_zone(rest)
}

fn is_fraction_and_zone(text: &str) -> bool {
    let zone = match text.find(['z', '+', '-']) {
        Some(at) => text.split_at(at),
        None => return false,
    };
    let fraction = zone.0.is_empty()
        || zone.0.chars().next().is_some_and(|first| {
            let digits = zone.0.get(first.len_utf8()..).unwrap_or_default();
            !digits.is_empty() && is_digits(digits)
        });
    let offset = |text: &str| match text.get(1..).and_then(|text| text.split_once(':')) {
        Some((hours, minutes)) => {
            hours.len() == 2
                && minutes.len() == 2
                && is_digits(hours)
                && is_digits(minutes)
        }
        None => false,
    };
    fraction && (zone.1 == "z" || offset(zone.1))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A length of time as Go reads it (`1h15m30.5s`), or words with units (`2 weeks`).
pub(super) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_worded_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let Some(end) = number else {
            return false;
        };
        let (number, after) = rest.split_at(end);
        let has_digits = number.bytes().any(|byte| byte.is_ascii_digit());
        if !has_digits || number.matches('.').count() > 1 {
            return false;
        }
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if !["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&unit) {
            return false;
        }
        rest = after;
    }
    true
}

/// Units that may be abbreviated, and one that words may start with.
const UNITS: &[(&[&str], &str)] = &[
    (&["ns"], "nano"),
    (&["us", "µs"], "micro"),
    (&["ms"], "milli"),
    (&["s"], "sec"),
    (&["m"], "min"),
    (&["h", "hr"], "hour"),
    (&["d"], "day"),
    (&["w", "week"], "wk"),
];

/// Whether there is a number with a unit anywhere; the rest of the text does not matter.
fn is_worded_duration(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let from = rest.get(at..).unwrap_or_default();
        let after = from.trim_start_matches(|c: char| c.is_ascii_digit());
        let word: String = after
            .trim_start()
            .chars()
            .take_while(|c| c.is_ascii_alphabetic() || *c == 'µ')
            .collect::<String>()
            .to_lowercase();
        let is_unit = |(short, long): &(&[&str], &str)| {
            short.contains(&word.as_str()) || word.starts_with(long)
        };
        if UNITS.iter().any(is_unit) {
            return true;
        }
        rest = after;
    }
    false
}
