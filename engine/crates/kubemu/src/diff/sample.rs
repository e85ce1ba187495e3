//! Texts and numbers at the bounds of a schema.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};
use serde_json::Value;

/// The longest text that is generated. A server reads at most 3 MiB.
pub(super) const MAX_TEXT: usize = 1 << 20;
/// How many texts are generated for one pattern.
const MAX_SAMPLES: usize = 12;

/// Texts of each format: the first ones have it, the others nearly have it.
const FORMATS: &[(&str, &[&str])] = &[
    (
        "bsonobjectid",
        &["507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"],
    ),
    ("uri", &["https://example.com/a", "/a", "a b"]),
    ("email", &["a@example.com", "a@", "example.com"]),
    ("hostname", &["example.com", "-a", "a_b"]),
    ("ipv4", &["10.0.0.1", "10.0.0.256", "10.0.0"]),
    ("ipv6", &["2001:db8::1", "2001:db8::g"]),
    ("cidr", &["10.0.0.0/8", "2001:db8::/32", "10.0.0.0/33"]),
    ("mac", &["01:23:45:67:89:ab", "01:23:45:67:89"]),
    (
        "uuid",
        &[
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "6ba7b810-9dad-31d1-80b4-00c04fd430c8",
            "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
            "6ba7b810-9dad-51d1-80b4-00c04fd430c8",
            "6ba7b810",
        ],
    ),
    ("isbn", &["0306406152", "9780306406157", "0306406153"]),
    ("creditcard", &["4111111111111111", "4111"]),
    ("ssn", &["078-05-1120", "078"]),
    ("hexcolor", &["#fff", "#ggg"]),
    ("rgbcolor", &["rgb(1,2,3)", "rgb(1,2,300)"]),
    ("byte", &["YQ==", "YQ=", "Y"]),
    ("date", &["2026-01-31", "2026-02-30", "2026-1-1"]),
    ("duration", &["1h", "1d", "1 hour"]),
    ("datetime", &["2026-01-31T00:00:00Z", "2026-01-31 00:00"]),
    ("k8sshortname", &["a", "a.b", "A"]),
    ("k8slongname", &["a.b", "a_b"]),
];

/// A number as JSON has it: without a fraction if it is whole.
pub(super) fn number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
        return (number as i64).into();
    }
    number.into()
}

/// Texts for a schema of strings: the first one probably is valid.
pub(super) fn texts_of(schema: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let least = length(schema, "minLength").unwrap_or_default();
    if let Some(pattern) = schema["pattern"].as_str() {
        all.extend(of_pattern(pattern));
        all.extend(of_length(Some(pattern), least));
        // One that is long enough comes first.
        all.sort_by_key(|it| it.chars().count() < least);
        all.extend(near(&all));
    }
    if let Some(format) = schema["format"].as_str() {
        all.extend(of_format(format));
    }
    if all.is_empty() {
        all.push("a".repeat(least.max(1)));
    }
    all
}

/// A length in a schema, if texts of that length are generated.
pub(super) fn length(schema: &Value, name: &str) -> Option<usize> {
    let length = schema[name].as_u64()?.try_into().ok()?;
    (length < MAX_TEXT).then_some(length)
}

/// Texts that have a format or nearly have it. None for an unknown format.
fn of_format(format: &str) -> impl Iterator<Item = String> {
    let format = format.replace('-', "");
    let same = |name: &str| format.starts_with(name) && !name.is_empty();
    let found = FORMATS.iter().rfind(|(name, _)| same(name));
    let texts = found.map(|(_, texts)| *texts).unwrap_or_default();
    texts.iter().map(|it| (*it).to_owned())
}

/// Texts of every format, for a format that is changed to another or removed.
pub(super) fn of_any_format() -> impl Iterator<Item = String> {
    let texts = FORMATS.iter().flat_map(|(_, texts)| texts.iter().take(2));
    texts.map(|it| (*it).to_owned())
}

/// Texts that match a pattern: with the fewest and with more repetitions, and with each of the
/// first alternatives.
pub(super) fn of_pattern(pattern: &str) -> Vec<String> {
    let Ok(parsed) = regex_syntax::parse(pattern) else {
        return Vec::new();
    };
    let mut all: Vec<String> = Vec::new();
    for branch in 0..MAX_SAMPLES {
        for (extra, to_the_limit) in [(0, false), (1, false), (1, true)] {
            let mut text = String::new();
            let choice = Choice {
                branch,
                extra,
                to_the_limit,
            };
            write(&parsed, choice, &mut text);
            if !all.contains(&text) && all.len() < MAX_SAMPLES {
                all.push(text);
            }
        }
    }
    all
}

/// A text of this many characters, which matches the pattern if one is given and can.
pub(super) fn of_length(pattern: Option<&str>, length: usize) -> Option<String> {
    if length > MAX_TEXT {
        return None;
    }
    let Some(pattern) = pattern else {
        return Some("a".repeat(length));
    };
    let parsed = regex_syntax::parse(pattern).ok()?;
    let long = |branch: usize, extra: usize| {
        let mut text = String::new();
        let choice = Choice {
            branch,
            extra,
            to_the_limit: false,
        };
        write(&parsed, choice, &mut text);
        text
    };
    let is_open = !pattern.ends_with('$') || pattern.ends_with("\\$");
    // A longer text has more repetitions, also if there are several places for them.
    let choices = if length > 4096 { 2 } else { MAX_SAMPLES };
    for choice in 0..choices {
        let (mut low, mut high) = (0, length);
        while low < high {
            let middle = low.midpoint(high);
            if long(choice, middle).chars().count() < length {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut text = long(choice, low);
        let missing = length.saturating_sub(text.chars().count());
        if is_open {
            text.push_str(&"a".repeat(missing));
        }
        if text.chars().count() == length {
            return Some(text);
        }
    }
    None
}

/// Texts that are nearly one of these.
fn near(texts: &[String]) -> Vec<String> {
    let few = texts.iter().filter(|it| it.len() < 200).take(4);
    let changed = few.flat_map(|text| {
        let mut shorter = text.clone();
        shorter.pop();
        [
            shorter,
            format!("{text}!"),
            format!("{text}a"),
            format!("{text}1"),
            format!("-{text}"),
            text.to_uppercase(),
        ]
    });
    let mut all: Vec<String> = changed.collect();
    all.push(String::new());
    all
}

/// Texts with the first number in `text` changed by one.
pub(super) fn with_other_numbers(text: &str) -> Vec<String> {
    let Some(start) = text.find(|it: char| it.is_ascii_digit()) else {
        return Vec::new();
    };
    let (head, rest) = text.split_at(start);
    let end = rest.find(|it: char| !it.is_ascii_digit());
    let (digits, tail) = rest.split_at(end.unwrap_or(rest.len()));
    let Ok(number) = digits.parse::<u64>() else {
        return Vec::new();
    };
    let others = [number.checked_add(1), number.checked_sub(1)];
    let others = others.into_iter().flatten();
    others.map(|it| format!("{head}{it}{tail}")).collect()
}

/// Which of the texts that match is written.
#[derive(Clone, Copy)]
struct Choice {
    /// The number of the alternative.
    branch: usize,
    /// How much more often than necessary is repeated what may be.
    extra: usize,
    /// Whether what has an upper limit is repeated as often as it allows.
    to_the_limit: bool,
}

/// Appends a text that matches.
fn write(hir: &Hir, choice: Choice, out: &mut String) {
    if out.len() > MAX_TEXT {
        return;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => out.extend(character(class, choice.branch)),
        HirKind::Capture(group) => write(&group.sub, choice, out),
        HirKind::Concat(parts) => {
            for part in parts {
                write(part, choice, out);
            }
        }
        HirKind::Alternation(branches) => {
            if let Some(branch) = branches.get(choice.branch % branches.len().max(1)) {
                write(branch, choice, out);
            }
        }
        HirKind::Repetition(repetition) => repeat(repetition, choice, out),
    }
}

fn repeat(repetition: &Repetition, choice: Choice, out: &mut String) {
    let least = repetition.min as usize;
    let most = repetition.max.map(|it| it as usize);
    let times = match most {
        Some(most) if choice.to_the_limit => most,
        _ => least
            .saturating_add(choice.extra)
            .min(most.unwrap_or(usize::MAX)),
    };
    let times = times.min(MAX_TEXT);
    if let HirKind::Class(class) = repetition.sub.kind() {
        let one = character(class, choice.branch).map(String::from);
        out.push_str(&one.unwrap_or_default().repeat(times));
        return;
    }
    for number in 0..times {
        let before = out.len();
        // Nested repetitions multiply: only the last one is longer, and by no more than one. What
        // is not repeated multiplies nothing.
        let is_last = number + 1 == times;
        let extra = match most {
            Some(1) => choice.extra,
            _ if is_last => choice.extra.min(1),
            _ => 0,
        };
        let inner = Choice { extra, ..choice };
        write(&repetition.sub, inner, out);
        if out.len() == before || out.len() > MAX_TEXT {
            break;
        }
    }
}

/// A character of a class: a lower-case letter or a digit if there is one.
fn character(class: &Class, choice: usize) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|it| (it.start(), it.end())).collect(),
        Class::Bytes(class) => {
            let range = |it: &regex_syntax::hir::ClassBytesRange| {
                (char::from(it.start()), char::from(it.end()))
            };
            class.iter().map(range).collect()
        }
    };
    let has = |wanted: char| ranges.iter().any(|it| it.0 <= wanted && wanted <= it.1);
    if choice < 2
        && let Some(simple) = ['a', '1', '0', 'A'].into_iter().find(|it| has(*it))
    {
        return Some(simple);
    }
    let (start, end) = ranges.get(choice % ranges.len().max(1))?;
    let is_end = choice % 2 == 1 && end.is_ascii_graphic();
    Some(if is_end { *end } else { *start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_length_still_matches() {
        let text = of_length(Some("^[a-z]([-a-z0-9]*[a-z0-9])?$"), 64).unwrap();
        assert_eq!(text.len(), 64);
        assert!(text.chars().all(|it| it.is_ascii_lowercase() || it == '-'));
        assert_eq!(of_length(Some("^(a|b)$"), 2), None);
    }

    #[test]
    fn a_pattern_has_a_text_of_each_alternative() {
        assert_eq!(of_pattern("^(Low|High)$"), ["Low", "High"]);
        assert_eq!(of_pattern("^[0-9]+[smh]$").first().unwrap(), "1h");
    }
}
