//! Percent encoding.

use crate::strconv::Quoted;

/// The part of a URL that is escaped or unescaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The path.
    Path,
    /// The host, with its port.
    Host,
    /// The zone of an IPv6 address, from its `%25` on.
    Zone,
    /// A user, or a password.
    UserPassword,
    /// A key or value of a query, where a plus is a space.
    QueryComponent,
    /// The fragment, after `#`.
    Fragment,
}

/// Whether Go escapes the byte in this part.
fn is_escaped(byte: u8, mode: Mode) -> bool {
    use Mode::{Fragment, Host, Path, QueryComponent, UserPassword, Zone};
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
        b'!' | b'(' | b')' | b'*' => !matches!(mode, Host | Zone | Fragment),
        b'\'' | b'[' | b']' | b'<' | b'>' | b'"' => !matches!(mode, Host | Zone),
        b'$' | b'&' | b'+' | b',' | b';' | b'=' => mode == QueryComponent,
        b':' => matches!(mode, UserPassword | QueryComponent),
        b'/' | b'@' => !matches!(mode, Path | Fragment),
        b'?' => mode != Fragment,
        _ => true,
    }
}

/// Whether all characters are allowed in this part unescaped, or belong to an escape.
pub(super) fn is_plain(text: &str, mode: Mode) -> bool {
    text.bytes()
        .all(|byte| b"!'()*[]%".contains(&byte) || !is_escaped(byte, mode))
}

/// The unescaped bytes of a part (Go's `unescape`).
///
/// # Errors
/// Go's message for an invalid escape, or for a character that is not allowed in a host.
pub fn unescape(text: &str, mode: Mode) -> Result<Vec<u8>, String> {
    let in_host = matches!(mode, Mode::Host | Mode::Zone);
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'%' => {
                let Some(byte) = escaped_byte(after, mode) else {
                    let shown: String = text
                        .get(text.len() - after.len()..)
                        .map(|after| format!("%{after}"))
                        .unwrap_or_default();
                    return Err(bad_escape(&shown));
                };
                decoded.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            b'+' if mode == Mode::QueryComponent => decoded.push(b' '),
            byte if in_host && byte.is_ascii() && is_escaped(*byte, mode) => {
                let shown = char::from(*byte).to_string();
                let shown = Quoted(&shown);
                return Err(format!("invalid character {shown} in host name"));
            }
            byte => decoded.push(*byte),
        }
    }
    Ok(decoded)
}

/// The byte of the first two digits, if it may be escaped in this part: hosts only escape
/// bytes that are not ASCII (and `%`), and zones also bytes that a host may contain.
fn escaped_byte(digits: &[u8], mode: Mode) -> Option<u8> {
    let digit = |at: usize| {
        let digit = char::from(*digits.get(at)?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    let byte = digit(0)? << 4 | digit(1)?;
    let is_allowed = match mode {
        Mode::Host => !byte.is_ascii() || byte == b'%',
        Mode::Zone => byte == b'%' || byte == b' ' || !is_escaped(byte, Mode::Host),
        _ => true,
    };
    is_allowed.then_some(byte)
}

/// Prints at most three bytes, even of a longer character.
fn bad_escape(from: &str) -> String {
    let end = (0..=3).rev().find(|at| from.is_char_boundary(*at));
    let whole = from.get(..end.unwrap_or(0)).unwrap_or_default();
    let mut shown = Quoted(whole).to_string();
    if let Some(cut) = from.as_bytes().get(whole.len()..from.len().min(3)) {
        shown.pop();
        shown.extend(cut.iter().map(|byte| format!("\\x{byte:02x}")));
        shown.push('"');
    }
    format!("invalid URL escape {shown}")
}

/// The escaped text of the bytes in this part.
pub(super) fn escape(bytes: &[u8], mode: Mode) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for byte in bytes {
        if !is_escaped(*byte, mode) {
            escaped.push(char::from(*byte));
        } else if *byte == b' ' && mode == Mode::QueryComponent {
            escaped.push('+');
        } else {
            escaped.push('%');
            escaped.extend([byte >> 4, byte & 15].map(hex_digit));
        }
    }
    escaped
}

fn hex_digit(value: u8) -> char {
    let digit = char::from_digit(u32::from(value), 16);
    digit.map_or('0', |digit| digit.to_ascii_uppercase())
}

/// Decoded bytes as text; invalid UTF-8 becomes the replacement character.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
