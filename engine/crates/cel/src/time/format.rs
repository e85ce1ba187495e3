//! Durations in JSON, as Kubernetes' `strfmt` parses them.

use kubemu_gostd::time::Duration;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Units of a JSON `format: duration`: their short names, the prefixes of their long names, and
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

/// Parses an OpenAPI `format: duration`: Go's form, or integers with units up to weeks anywhere
/// in the text, `in 2 days, 3 hours`. Other text is skipped, and a sum out of range wraps, as
/// in Kubernetes' `strfmt`.
///
/// # Errors
/// Go's message, if no number has a unit or one is larger than an `int64`.
pub fn read_duration(text: &str) -> Result<Duration, String> {
    if let Some(duration) = Duration::parse(text) {
        return Ok(duration);
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
        let Ok(factor) = number.parse::<i64>() else {
            return Err(format!(
                "strconv.Atoi: parsing \"{number}\": value out of range"
            ));
        };
        if let Some(scale) = long_unit(&unit.to_lowercase()) {
            let span = factor.wrapping_mul(scale);
            total = Some(total.unwrap_or(0).wrapping_add(span));
        }
    }
    let total = total.ok_or_else(|| format!("unable to parse {text} as duration"))?;
    Ok(Duration::from_nanos(total))
}

fn long_unit(name: &str) -> Option<i64> {
    let is_meant = |(short, long, _): &&(&[&str], &str, i64)| {
        short.contains(&name) || name.starts_with(long)
    };
    LONG_UNITS.iter().find(is_meant).map(|(_, _, nanos)| *nanos)
}
