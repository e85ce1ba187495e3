//! Text in quotes, as Go writes it.

use std::fmt::{self, Write};

use crate::characters::PRINTABLE;

/// A string as Go's `%q` and `strconv.Quote` print it.
///
/// ```
/// use fivespot_cel::Quoted;
/// assert_eq!(Quoted("a\u{8}\u{1}\u{a0}").to_string(), r#""a\b\x01\u00a0""#);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                ' '..='~' => f.write_char(c)?,
                '\u{7}' => f.write_str("\\a")?,
                '\u{8}' => f.write_str("\\b")?,
                '\u{c}' => f.write_str("\\f")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                '\u{b}' => f.write_str("\\v")?,
                c if (c as u32) < 0x80 => write!(f, "\\x{:02x}", c as u32)?,
                c if PRINTABLE.contains(c) => f.write_char(c)?,
                c if (c as u32) < 0x1_0000 => write!(f, "\\u{:04x}", c as u32)?,
                c => write!(f, "\\U{:08x}", c as u32)?,
            }
        }
        f.write_char('"')
    }
}
