//! Parses literals: numbers, strings and bytes.

use std::sync::Arc;

/// Why a literal has no value.
pub(crate) type Reason = &'static str;

/// A signed integer as written, such as `-12` or `0x1f`.
pub(crate) fn int(text: &str, negative: bool) -> Result<i64, Reason> {
    let magnitude = magnitude(text).ok_or("invalid int literal")?;
    let value = i128::from(magnitude) * if negative { -1 } else { 1 };
    i64::try_from(value).map_err(|_| "invalid int literal")
}

/// An unsigned integer with its suffix, such as `12u`.
pub(crate) fn uint(text: &str) -> Result<u64, Reason> {
    magnitude(text.trim_end_matches(['u', 'U'])).ok_or("invalid uint literal")
}

/// A float, such as `1.5e3`.
pub(crate) fn double(text: &str, negative: bool) -> Result<f64, Reason> {
    let value: f64 = text.parse().map_err(|_| "invalid double literal")?;
    if value.is_infinite() {
        return Err("invalid double literal");
    }
    Ok(if negative { -value } else { value })
}

fn magnitude(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The text of a string literal; `literal` includes prefixes and quotes.
pub(crate) fn string(literal: &str) -> Result<Arc<str>, Reason> {
    let (body, raw) = body(literal);
    if !body.bytes().any(|byte| matches!(byte, b'\\' | b'\r')) {
        return Ok(Arc::from(body));
    }
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    if raw {
        return Ok(Arc::from(body));
    }
    let mut text = String::with_capacity(body.len());
    unescape(&body, |unit| match unit {
        Unit::Char(char) | Unit::CodePoint(char) => {
            text.push(char);
            Ok(())
        }
        Unit::Octet(byte) => {
            text.push(char::from(byte));
            Ok(())
        }
    })?;
    Ok(Arc::from(text))
}

/// The bytes of a bytes literal.
pub(crate) fn bytes(literal: &str) -> Result<Vec<u8>, Reason> {
    let (body, raw) = body(literal);
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    if raw {
        return Ok(body.into_bytes());
    }
    let mut bytes = Vec::with_capacity(body.len());
    unescape(&body, |unit| match unit {
        Unit::Char(char) => {
            bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            Ok(())
        }
        Unit::CodePoint(_) => Err(WRONG),
        Unit::Octet(byte) => {
            bytes.push(byte);
            Ok(())
        }
    })
    .map_err(|_| WRONG)
    .map(|()| bytes)
}

/// The text between the quotes, and whether it is a raw literal, without escape sequences.
fn body(literal: &str) -> (&str, bool) {
    let quoted = literal.trim_start_matches(['b', 'B', 'r', 'R']);
    let prefix = literal
        .get(..literal.len() - quoted.len())
        .unwrap_or_default();
    let triple = quoted.starts_with("\"\"\"") || quoted.starts_with("'''");
    let length = if triple && quoted.len() >= 6 { 3 } else { 1 };
    let body = quoted.get(length..quoted.len().saturating_sub(length));
    (body.unwrap_or_default(), prefix.contains(['r', 'R']))
}

const WRONG: Reason = "unable to unescape string";

/// A number of exactly `length` digits, and the rest.
fn number(digits: &str, length: usize, radix: u32) -> Result<(u32, &str), Reason> {
    let text = digits.get(..length).ok_or(WRONG)?;
    if !text.chars().all(|digit| digit.is_digit(radix)) {
        return Err(WRONG);
    }
    let value = u32::from_str_radix(text, radix).map_err(|_| WRONG)?;
    Ok((value, digits.get(length..).unwrap_or_default()))
}

enum Unit {
    /// A character, or an escape sequence for one.
    Char(char),
    /// An escape sequence for a code point, which is not allowed in bytes.
    CodePoint(char),
    /// An escape sequence for an octet: `\x41`, `\101`.
    Octet(u8),
}

fn unescape(
    body: &str,
    mut emit: impl FnMut(Unit) -> Result<(), Reason>,
) -> Result<(), Reason> {
    let mut rest = body;
    while let Some(char) = rest.chars().next() {
        rest = rest.get(char.len_utf8()..).unwrap_or_default();
        if char == '\\' {
            let (unit, after) = escape(rest)?;
            rest = after;
            emit(unit)?;
        } else {
            emit(Unit::Char(char))?;
        }
    }
    Ok(())
}

/// One escape sequence after its backslash, and the rest.
fn escape(rest: &str) -> Result<(Unit, &str), Reason> {
    let char = rest.chars().next().ok_or(WRONG)?;
    let after = rest.get(char.len_utf8()..).unwrap_or_default();
    let octet = |(value, after)| {
        let byte = u8::try_from(value).map_err(|_| WRONG)?;
        Ok((Unit::Octet(byte), after))
    };
    let code_point = |(value, after)| {
        let char = char::from_u32(value).ok_or("invalid unicode code point")?;
        Ok((Unit::CodePoint(char), after))
    };
    let plain = match char {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '`' | '?' => char,
        'x' | 'X' => return octet(number(after, 2, 16)?),
        'u' => return code_point(number(after, 4, 16)?),
        'U' => return code_point(number(after, 8, 16)?),
        '0'..='3' => return octet(number(rest, 3, 8)?),
        _ => return Err(WRONG),
    };
    Ok((Unit::Char(plain), after))
}
