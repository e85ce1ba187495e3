//! Text in quotes, after `strconv.Quote` (src/strconv/quote.go).

use std::fmt::{self, Write};

use crate::unicode::is_printable;

/// A string as Go's `%q` and `strconv.Quote` print it.
///
/// ```
/// use kubemu_gostd::strconv::Quoted;
/// assert_eq!(Quoted("a\u{8}\u{1}\u{a0}").to_string(), r#""a\b\x01\u00a0""#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        QuotedBytes(self.0.as_bytes()).fmt(f)
    }
}

/// Bytes as Go's `%q` and `strconv.Quote` print them; they need not be UTF-8.
///
/// ```
/// use kubemu_gostd::strconv::QuotedBytes;
/// assert_eq!(QuotedBytes(b"a\x95b").to_string(), r#""a\x95b""#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct QuotedBytes<'a>(pub &'a [u8]);

impl fmt::Display for QuotedBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                write_char(c, f)?;
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        f.write_char('"')
    }
}

fn write_char(c: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match c {
        '"' => f.write_str("\\\""),
        '\\' => f.write_str("\\\\"),
        ' '..='~' => f.write_char(c),
        '\u{7}' => f.write_str("\\a"),
        '\u{8}' => f.write_str("\\b"),
        '\u{c}' => f.write_str("\\f"),
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        '\u{b}' => f.write_str("\\v"),
        c if (c as u32) < 0x80 => write!(f, "\\x{:02x}", c as u32),
        c if is_printable(c) => f.write_char(c),
        c if (c as u32) < 0x1_0000 => write!(f, "\\u{:04x}", c as u32),
        c => write!(f, "\\U{:08x}", c as u32),
    }
}
