//! Validates a cron schedule as the parser that Kubernetes uses does (github.com/robfig/cron/v3,
//! `ParseStandard`).

use std::ops::RangeInclusive;

use kubemu_gostd::strconv::Quoted;
use kubemu_gostd::time::Duration;

/// One field of a schedule.
struct Part {
    bounds: RangeInclusive<u64>,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const PARTS: [Part; 5] = [
    Part {
        bounds: 0..=59,
        names: &[],
    },
    Part {
        bounds: 0..=23,
        names: &[],
    },
    Part {
        bounds: 1..=31,
        names: &[],
    },
    Part {
        bounds: 1..=12,
        names: MONTHS,
    },
    Part {
        bounds: 0..=6,
        names: DAYS,
    },
];

/// Validates a schedule.
///
/// # Errors
/// The error message of that parser.
pub(super) fn check(text: &str) -> Result<(), String> {
    let text = match text.strip_prefix("CRON_TZ=").or(text.strip_prefix("TZ=")) {
        Some(rest) => {
            let (zone, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            if !zone.is_empty() && jiff::tz::TimeZone::get(zone).is_err() {
                return Err(format!(
                    "provided bad location {zone}: unknown time zone {zone}"
                ));
            }
            rest.trim()
        }
        None => text,
    };
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != PARTS.len() {
        let (expected, found) = (PARTS.len(), fields.len());
        let shown = fields.join(" ");
        return Err(format!(
            "expected exactly {expected} fields, found {found}: [{shown}]"
        ));
    }
    let mut parts = fields.iter().zip(&PARTS);
    parts.try_for_each(|(field, part)| {
        let mut ranges = field.split(',').filter(|it| !it.is_empty());
        ranges.try_for_each(|it| part.check(it))
    })
}

fn descriptor(text: &str) -> Result<(), String> {
    const KNOWN: [&str; 7] = [
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
    ];
    if KNOWN.contains(&text) {
        return Ok(());
    }
    let Some(duration) = text.strip_prefix("@every ") else {
        return Err(format!("unrecognized descriptor: {text}"));
    };
    if Duration::parse(duration).is_none() {
        let quoted = Quoted(duration);
        return Err(format!(
            "failed to parse duration {text}: time: invalid duration {quoted}"
        ));
    }
    Ok(())
}

impl Part {
    /// Checks `*`, `1`, `1-5`, `*/2`, `1-5/2`.
    fn check(&self, text: &str) -> Result<(), String> {
        let (least, most) = (*self.bounds.start(), *self.bounds.end());
        let steps: Vec<&str> = text.split('/').collect();
        let (range, step) = match steps.as_slice() {
            [range] => (*range, None),
            [range, step] => (*range, Some(*step)),
            _ => (steps[0], None),
        };
        let ends: Vec<&str> = range.split('-').collect();
        let (start, mut end) = match ends.as_slice() {
            ["*" | "?", ..] => (least, most),
            [one] => self.number(one).map(|it| (it, it))?,
            [start, end] => (self.number(start)?, self.number(end)?),
            _ => return Err(format!("too many hyphens: {text}")),
        };
        if steps.len() > 2 {
            return Err(format!("too many slashes: {text}"));
        }
        let step = match step {
            None => 1,
            Some(step) => {
                if ends.len() == 1 {
                    end = most;
                }
                integer(step)?
            }
        };
        if start < least {
            return Err(format!(
                "beginning of range ({start}) below minimum ({least}): {text}"
            ));
        }
        if end > most {
            return Err(format!(
                "end of range ({end}) above maximum ({most}): {text}"
            ));
        }
        if start > end {
            return Err(format!(
                "beginning of range ({start}) beyond end of range ({end}): {text}"
            ));
        }
        if step == 0 {
            return Err(format!("step of range should be a positive number: {text}"));
        }
        Ok(())
    }

    /// A number, or the number of a name.
    fn number(&self, text: &str) -> Result<u64, String> {
        let lower = text.to_lowercase();
        match self.names.iter().position(|it| *it == lower) {
            Some(index) => Ok(*self.bounds.start() + index as u64),
            None => integer(text),
        }
    }
}

fn integer(text: &str) -> Result<u64, String> {
    let number: i64 = text.parse().map_err(|_| {
        let quoted = Quoted(text);
        format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {quoted}: invalid syntax"
        )
    })?;
    u64::try_from(number)
        .map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_has_five_fields_or_a_name() {
        for good in [
            "*/5 * * * *",
            "0 9 * jan-dec mon-fri",
            "0 9 ? * ?",
            "1,2 3-4/2 1 * 0",
            "@daily",
            "@every 5m",
            "TZ=UTC 0 9 * * *",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn invalid_schedules_have_the_messages_of_the_parser() {
        let rows = [
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("0 0 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "10-5 * * * *",
                "beginning of range (10) beyond end of range (5): 10-5",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("@often", "unrecognized descriptor: @often"),
            (
                "TZ=Nowhere/None * * * * *",
                "provided bad location Nowhere/None: unknown time zone Nowhere/None",
            ),
        ];
        for (text, why) in rows {
            assert_eq!(check(text), Err(why.to_owned()), "{text}");
        }
    }
}
