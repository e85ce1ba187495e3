//! Parsing of formatted strings as in Go, with Go's error messages.

use super::shape::Shape;

/// The layout of a `Time` in Go's notation.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";

/// The layout of a `MicroTime` in Go's notation.
const MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";

/// The error of Go's decoder for a string of a format; `None` if it is valid or any string is
/// allowed.
pub(crate) fn error(shape: Shape<'_>, text: &str) -> Option<String> {
    match (shape.name(), shape.format()) {
        (Some("MicroTime"), _) => time(text, MICRO),
        (_, Some("date-time")) => time(text, SECONDS),
        (_, Some("byte")) => {
            let at = corrupt_at(text.as_bytes())?;
            Some(format!("illegal base64 data at input byte {at}"))
        }
        _ => None,
    }
}

/// The offset of the first byte that is not standard base64 with padding (encoding/base64);
/// newlines may occur anywhere.
fn corrupt_at(text: &[u8]) -> Option<usize> {
    let is_digit = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/');
    let is_line_end = |it: &u8| matches!(it, b'\n' | b'\r');
    // Number of digits in the current group of four.
    let mut read = 0;
    for (index, byte) in text.iter().enumerate() {
        match byte {
            it if is_digit(*it) => read = (read + 1) % 4,
            it if is_line_end(it) => {}
            b'=' if read >= 2 => {
                let mut rest = (index + 1..).zip(text.get(index + 1..)?);
                let mut next = || rest.find(|(_, it)| !is_line_end(it));
                if read == 2 {
                    match next() {
                        None => return Some(text.len()),
                        Some((_, b'=')) => {}
                        Some((at, _)) => return Some(at - 1),
                    }
                }
                return next().map(|(at, _)| at);
            }
            _ => return Some(index),
        }
    }
    (read > 0).then(|| text.len() - read)
}

/// The error of Go's `time.Parse` for a text that is not RFC 3339; `layout` is the layout to
/// print.
fn time(text: &str, layout: &str) -> Option<String> {
    let (numbers, rest) = match date_and_time(text, layout) {
        Ok(read) => read,
        Err(refused) => return Some(refused),
    };
    let mut rest = rest;
    let refuse = |rest: &str, part: &str| Some(unread(text, layout, rest, part));
    let fraction = rest.strip_prefix(['.', ',']).unwrap_or_default();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    if layout == MICRO {
        if digits < 6 {
            return refuse(rest, ".000000");
        }
        rest = fraction.get(6..).unwrap_or_default();
    } else if digits > 0 {
        rest = fraction.get(digits..).unwrap_or_default();
    }
    let zone = match rest.as_bytes() {
        [b'Z', ..] => 1,
        [b'+' | b'-', h1, h2, b':', m1, m2, ..]
            if [h1, h2, m1, m2].iter().all(|it| it.is_ascii_digit()) =>
        {
            6
        }
        _ => return refuse(rest, "Z07:00"),
    };
    let remaining = rest.get(zone..).unwrap_or_default();
    if !remaining.is_empty() {
        return Some(format!("parsing time {text:?}: extra text: {remaining:?}"));
    }
    match numbers.as_slice() {
        [year, month, day, ..] if !is_day(*year, *month, *day) => {
            Some(out_of_range(text, "day"))
        }
        _ => None,
    }
}

/// Parses up to the seconds; returns the numbers and the rest of the text.
fn date_and_time<'a>(text: &'a str, layout: &str) -> Result<(Vec<i16>, &'a str), String> {
    let parts = [
        ("2006", 4),
        ("-", 0),
        ("01", 2),
        ("-", 0),
        ("02", 2),
        ("T", 0),
        ("15", 2),
        (":", 0),
        ("04", 2),
        (":", 0),
        ("05", 2),
    ];
    let mut rest = text;
    let mut numbers = Vec::new();
    for (part, digits) in parts {
        let read = if digits == 0 {
            rest.strip_prefix(part)
        } else {
            let number = rest.get(..digits).filter(|it| is_number(it));
            let number = number.and_then(|it| it.parse::<i16>().ok());
            numbers.extend(number);
            number.and_then(|_| rest.get(digits..))
        };
        match read {
            Some(remaining) => rest = remaining,
            None => return Err(unread(text, layout, rest, part)),
        }
        let limit = match (part, numbers.last()) {
            ("01", Some(it)) if !(1..=12).contains(it) => Some("month"),
            ("15", Some(24..)) => Some("hour"),
            ("04", Some(60..)) => Some("minute"),
            ("05", Some(60..)) => Some("second"),
            _ => None,
        };
        if let Some(what) = limit {
            return Err(out_of_range(text, what));
        }
    }
    Ok((numbers, rest))
}

fn unread(text: &str, layout: &str, rest: &str, part: &str) -> String {
    let (text, rest) = (quoted(text), quoted(rest));
    format!("parsing time {text} as {layout:?}: cannot parse {rest} as {part:?}")
}

fn out_of_range(text: &str, what: &str) -> String {
    format!("parsing time {}: {what} out of range", quoted(text))
}

/// A text as Go's package `time` quotes it: byte by byte.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for it in text.chars() {
        if matches!(it, '"' | '\\') {
            quoted.extend(['\\', it]);
        } else if it.is_ascii_graphic() || it == ' ' {
            quoted.push(it);
        } else {
            let mut buffer = [0; 4];
            let bytes = it.encode_utf8(&mut buffer).bytes();
            quoted.extend(bytes.map(|byte| format!("\\x{byte:02x}")));
        }
    }
    quoted.push('"');
    quoted
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_digit())
}

fn is_day(year: i16, month: i16, day: i16) -> bool {
    let month = i8::try_from(month).unwrap_or_default();
    let day = i8::try_from(day).unwrap_or_default();
    jiff::civil::Date::new(year, month, day).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_base64_is_reported_at_the_same_byte_as_in_go() {
        let rows = [
            ("", None),
            ("YQ==", None),
            ("YW\nI=\n", None),
            ("%%", Some(0)),
            ("YWJj%", Some(4)),
            ("YQ", Some(0)),
            ("YQ=", Some(3)),
            ("YQ=a", Some(2)),
            ("Y===", Some(1)),
            ("YQ==YQ==", Some(4)),
            ("YWI=x", Some(4)),
        ];
        for (text, at) in rows {
            assert_eq!(corrupt_at(text.as_bytes()), at, "{text:?}");
        }
    }

    #[test]
    fn invalid_times_have_gos_messages() {
        let rows = [
            ("2026-01-01T00:00:00Z", ""),
            ("2026-01-01T00:00:00.5+01:00", ""),
            (
                "noon",
                "parsing time \"noon\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \
                 \"noon\" as \"2006\"",
            ),
            (
                "2026-01-01",
                "parsing time \"2026-01-01\" as \"2006-01-02T15:04:05Z07:00\": cannot \
                 parse \"\" as \"T\"",
            ),
            (
                "2026-13-01T00:00:00Z",
                "parsing time \"2026-13-01T00:00:00Z\": month out of range",
            ),
            (
                "2026-02-30T00:00:00Z",
                "parsing time \"2026-02-30T00:00:00Z\": day out of range",
            ),
            (
                "2026-01-01T00:00:00",
                "parsing time \"2026-01-01T00:00:00\" as \"2006-01-02T15:04:05Z07:00\": \
                 cannot parse \"\" as \"Z07:00\"",
            ),
            (
                "2026-01-01T00:00:00Zx",
                "parsing time \"2026-01-01T00:00:00Zx\": extra text: \"x\"",
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(time(text, SECONDS).unwrap_or_default(), expected);
        }
        assert_eq!(time("2026-01-01T00:00:00.123456Z", MICRO), None);
        let micro = time("2026-01-01T00:00:00Z", MICRO);
        assert!(
            micro
                .unwrap()
                .ends_with("cannot parse \"Z\" as \".000000\"")
        );
    }
}
