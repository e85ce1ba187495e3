//! Numbers with check digits and other digit patterns.

fn digits(text: &str) -> Option<Vec<u32>> {
    text.chars().map(|c| c.to_digit(10)).collect()
}

fn without_separators(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '-' | '\t' | '\n' | '\u{c}' | '\r' | ' '))
        .collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let text = without_separators(text);
    let mut weight = 0;
    let mut sum = 0;
    for c in text.chars() {
        weight += 1;
        let value = match (c, weight) {
            ('X', 10) => 10,
            (c, _) => match c.to_digit(10) {
                Some(digit) => digit,
                None => return false,
            },
        };
        sum += weight * value;
    }
    weight == 10 && sum % 11 == 0
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let Some(digits) = digits(&without_separators(text)) else {
        return false;
    };
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = digits
        .iter()
        .zip(weights)
        .map(|(digit, weight)| digit * weight)
        .sum();
    digits.len() == 13 && sum.is_multiple_of(10)
}

/// The lengths and prefixes of the supported issuers, and the check digit.
pub(super) fn is_credit_card(text: &str) -> bool {
    let text: String = text.chars().filter(char::is_ascii_digit).collect();
    let starts =
        |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    let known = match text.len() {
        13 => starts(&["4"]),
        14 => starts(&["300", "301", "302", "303", "304", "305", "36", "38"]),
        15 => starts(&["34", "37", "2131", "1800"]),
        16 => {
            let ranges = ["51", "52", "53", "54", "55", "6011", "65", "35"];
            starts(&["4"]) || starts(&ranges)
        }
        _ => false,
    };
    let sum: u32 = text
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    known && sum.is_multiple_of(10)
}

/// Three, two and four digits separated by a hyphen or space.
pub(super) fn is_ssn(text: &str) -> bool {
    let bytes = text.bytes().enumerate();
    text.len() == 11
        && bytes.into_iter().all(|(at, byte)| match at {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

/// `rgb(r, g, b)` with numbers from 0 to 255 without leading zeros.
pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text
        .strip_prefix("rgb(")
        .and_then(|it| it.strip_suffix(')'))
    else {
        return false;
    };
    let is_part = |part: &str| {
        let part = part.trim_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        part.parse::<u8>()
            .is_ok_and(|value| value.to_string() == part)
    };
    let parts: Vec<_> = inner.split(',').collect();
    parts.len() == 3 && parts.into_iter().all(is_part)
}
