//! Escapes, and characters in the syntax of the `regex` crate.

use super::syntax_error;

/// One character of a pattern, as parsed by Go's `parseEscape`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point(pub(super) u32);

impl Point {
    /// The character; `None` for a surrogate, which no text contains.
    pub(super) fn char(self) -> Option<char> {
        char::from_u32(self.0)
    }
}

/// Parses the escape at the start of `at`, which begins with a backslash; returns the
/// character and the rest.
///
/// # Errors
/// Go's error.
pub(super) fn escaped(at: &str) -> Result<(Point, &str), String> {
    let mut reader = Reader {
        at,
        rest: at.strip_prefix('\\').unwrap_or(at),
    };
    let Some(c) = reader.next() else {
        return Err(syntax_error("trailing backslash at end of expression", ""));
    };
    let value = match c {
        '1'..='7' if !reader.rest.starts_with(is_octal) => {
            return reader.invalid_escape();
        }
        '0'..='7' => reader.octal(c),
        'x' => match reader.hexadecimal() {
            Some(value) => value,
            None => return reader.invalid_escape(),
        },
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        // Punctuation is literal.
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => u32::from(c),
        _ => return reader.invalid_escape(),
    };
    Ok((Point(value), reader.rest))
}

const fn is_octal(c: char) -> bool {
    matches!(c, '0'..='7')
}

struct Reader<'p> {
    at: &'p str,
    rest: &'p str,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    fn digit(&mut self) -> Option<u32> {
        self.next()?.to_digit(16)
    }

    /// Returns Go's error for the part parsed so far.
    fn invalid_escape<T>(&self) -> Result<T, String> {
        let read = self.at.len() - self.rest.len();
        let read = self.at.get(..read).unwrap_or(self.at);
        Err(syntax_error("invalid escape sequence", read))
    }

    /// Parses up to three octal digits, of which `first` has been parsed.
    fn octal(&mut self, first: char) -> u32 {
        let mut value = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let digit = self.rest.chars().next().and_then(|c| c.to_digit(8));
            let Some(digit) = digit else {
                break;
            };
            self.next();
            value = value * 8 + digit;
        }
        value
    }

    /// Parses two digits, or any number of digits in braces.
    fn hexadecimal(&mut self) -> Option<u32> {
        if !self.rest.starts_with('{') {
            // Both are parsed before either is checked.
            let (high, low) = (self.next(), self.next());
            return Some(high?.to_digit(16)? * 16 + low?.to_digit(16)?);
        }
        self.next();
        let mut value = None;
        while !self.rest.starts_with('}') {
            let digit = self.digit()?;
            let next = value.unwrap_or(0) * 16 + digit;
            value = Some(next).filter(|next| *next <= u32::from(char::MAX));
            value?;
        }
        self.next();
        value
    }
}

/// Adds a literal character outside a class.
pub(super) fn push_literal(out: &mut String, point: Point) {
    match point.char() {
        Some(c) => {
            if r"\.+*?()|[]{}^$".contains(c) {
                out.push('\\');
            }
            out.push(c);
        }
        None => out.push_str(NOTHING),
    }
}

/// A class without characters.
pub(super) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// Adds a range to a class, or a character if both are the same.
pub(super) fn push_range(out: &mut String, first: Point, last: Point) {
    // Surrogates can be skipped: no text contains them.
    let first = first.char().unwrap_or('\u{e000}');
    let last = last.char().unwrap_or('\u{d7ff}');
    if first > last {
        out.push_str(NOTHING);
        return;
    }
    push_member(out, first);
    if first < last {
        out.push('-');
        push_member(out, last);
    }
}

fn push_member(out: &mut String, c: char) {
    if r"\[]^-&~".contains(c) {
        out.push('\\');
    }
    out.push(c);
}
