//! JSON syntax errors with the messages of Go's decoder.
//!
//! Kubernetes returns these messages (encoding/json/scanner.go). They are only computed for a
//! text that could not be parsed.

/// Go's error for a text that is not JSON; `None` for valid JSON.
pub(crate) fn error(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner {
        open: Vec::new(),
        state: State::Value,
    };
    for byte in text {
        if let Err(error) = scanner.step(*byte) {
            return Some(error);
        }
    }
    // A top-level number only ends at the next character.
    let complete = scanner.step(b' ').is_ok() && matches!(scanner.state, State::Top);
    (!complete).then(|| "unexpected end of JSON input".to_owned())
}

/// The maximum nesting depth of arrays and objects.
const MAX_DEPTH: usize = 10_000;

struct Scanner {
    /// The open arrays and objects.
    open: Vec<Open>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Array,
    /// An object, before or in a key.
    Key,
    /// An object, before or in a value.
    Pair,
}

#[derive(Clone, Copy)]
enum State {
    /// Before a value.
    Value,
    /// After `[`.
    FirstItem,
    /// After `{`.
    FirstKey,
    /// After the comma of an object.
    NextKey,
    /// After a value.
    After,
    /// After the top-level value.
    Top,
    Text,
    Escape,
    /// In `\u`, with this number of digits left.
    Code(u8),
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    /// In a literal, with this number of letters parsed.
    Word(&'static str, usize),
}

impl Scanner {
    fn step(&mut self, byte: u8) -> Result<(), String> {
        let blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Value | State::FirstItem | State::FirstKey | State::NextKey
                if blank => {}
            State::FirstItem if byte == b']' => self.close(),
            State::FirstKey if byte == b'}' => self.close(),
            State::Value | State::FirstItem => return self.value(byte),
            State::FirstKey | State::NextKey if byte == b'"' => self.state = State::Text,
            State::FirstKey | State::NextKey => {
                return Err(unexpected(
                    byte,
                    "looking for beginning of object key string",
                ));
            }
            State::After | State::Top => return self.after(byte),
            State::Text | State::Escape | State::Code(_) => return self.text(byte),
            State::Word(word, read) => return self.word(byte, word, read),
            _ => return self.number(byte),
        }
        Ok(())
    }

    fn value(&mut self, byte: u8) -> Result<(), String> {
        self.state = match byte {
            b'{' => self.enter(Open::Key, State::FirstKey)?,
            b'[' => self.enter(Open::Array, State::FirstItem)?,
            b'"' => State::Text,
            b'-' => State::Minus,
            b'0' => State::Zero,
            b'1'..=b'9' => State::Digits,
            b't' => State::Word("true", 1),
            b'f' => State::Word("false", 1),
            b'n' => State::Word("null", 1),
            _ => return Err(unexpected(byte, "looking for beginning of value")),
        };
        Ok(())
    }

    fn enter(&mut self, open: Open, state: State) -> Result<State, String> {
        if self.open.len() >= MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.open.push(open);
        Ok(state)
    }

    fn close(&mut self) {
        self.open.pop();
        self.state = State::After;
    }

    fn after(&mut self, byte: u8) -> Result<(), String> {
        let blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let Some(open) = self.open.last_mut() else {
            self.state = State::Top;
            return if blank {
                Ok(())
            } else {
                Err(unexpected(byte, "after top-level value"))
            };
        };
        self.state = match (*open, byte) {
            _ if blank => State::After,
            (Open::Key, b':') => {
                *open = Open::Pair;
                State::Value
            }
            (Open::Pair, b',') => {
                *open = Open::Key;
                State::NextKey
            }
            (Open::Array, b',') => State::Value,
            (Open::Pair, b'}') | (Open::Array, b']') => {
                self.close();
                return Ok(());
            }
            (Open::Key, _) => return Err(unexpected(byte, "after object key")),
            (Open::Pair, _) => {
                return Err(unexpected(byte, "after object key:value pair"));
            }
            (Open::Array, _) => return Err(unexpected(byte, "after array element")),
        };
        Ok(())
    }

    fn text(&mut self, byte: u8) -> Result<(), String> {
        self.state = match (self.state, byte) {
            (State::Text, b'"') => State::After,
            (State::Text, b'\\') => State::Escape,
            (State::Text, 0..0x20) => return Err(unexpected(byte, "in string literal")),
            (State::Escape, b'u') => State::Code(4),
            (State::Escape, b) if !br#"bfnrt\/""#.contains(&b) => {
                return Err(unexpected(byte, "in string escape code"));
            }
            (State::Code(_), b) if !b.is_ascii_hexdigit() => {
                return Err(unexpected(byte, "in \\u hexadecimal character escape"));
            }
            (State::Code(remaining), _) if remaining > 1 => State::Code(remaining - 1),
            _ => State::Text,
        };
        Ok(())
    }

    fn word(&mut self, byte: u8, word: &'static str, read: usize) -> Result<(), String> {
        let expected = word.as_bytes().get(read).copied().unwrap_or_default();
        if byte != expected {
            let expected = char::from(expected);
            let place = format!("in literal {word} (expecting '{expected}')");
            return Err(unexpected(byte, &place));
        }
        self.state = if read + 1 == word.len() {
            State::After
        } else {
            State::Word(word, read + 1)
        };
        Ok(())
    }

    fn number(&mut self, byte: u8) -> Result<(), String> {
        let digit = byte.is_ascii_digit();
        self.state = match self.state {
            State::Minus if byte == b'0' => State::Zero,
            State::Minus | State::Digits if digit => State::Digits,
            State::Minus => return Err(unexpected(byte, "in numeric literal")),
            State::Zero | State::Digits if byte == b'.' => State::Point,
            State::Zero | State::Digits | State::Fraction
                if matches!(byte, b'e' | b'E') =>
            {
                State::Exponent
            }
            State::Point | State::Fraction if digit => State::Fraction,
            State::Point => {
                let place = "after decimal point in numeric literal";
                return Err(unexpected(byte, place));
            }
            State::Exponent if matches!(byte, b'+' | b'-') => State::ExponentSign,
            State::Exponent | State::ExponentSign | State::ExponentDigits if digit => {
                State::ExponentDigits
            }
            State::Exponent | State::ExponentSign => {
                return Err(unexpected(byte, "in exponent of numeric literal"));
            }
            _ => return self.after(byte),
        };
        Ok(())
    }
}

/// Go treats the byte as a character.
fn unexpected(byte: u8, place: &str) -> String {
    let shown = match byte {
        b'\'' => "\\'".to_owned(),
        b'\\' => "\\\\".to_owned(),
        7 => "\\a".to_owned(),
        8 => "\\b".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\n' => "\\n".to_owned(),
        0x0b => "\\v".to_owned(),
        0x0c => "\\f".to_owned(),
        b'\r' => "\\r".to_owned(),
        0..0x20 | 0x7f => format!("\\x{byte:02x}"),
        0x80..=0xa0 | 0xad => format!("\\u{byte:04x}"),
        _ => char::from(byte).to_string(),
    };
    format!("invalid character '{shown}' {place}")
}

#[cfg(test)]
mod tests {
    use super::error;

    #[test]
    fn invalid_json_has_gos_messages() {
        let rows = [
            ("", "unexpected end of JSON input"),
            ("[{", "unexpected end of JSON input"),
            (
                "nonsense",
                "invalid character 'o' in literal null (expecting 'u')",
            ),
            ("{} x", "invalid character 'x' after top-level value"),
            (
                "{a",
                "invalid character 'a' looking for beginning of object key string",
            ),
            (r#"{"a" 1"#, "invalid character '1' after object key"),
            (
                r#"{"a":1 2"#,
                "invalid character '2' after object key:value pair",
            ),
            (
                r#"{"a":1,}"#,
                "invalid character '}' looking for beginning of object key string",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            ("-x", "invalid character 'x' in numeric literal"),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            (
                "1ex",
                "invalid character 'x' in exponent of numeric literal",
            ),
            ("01", "invalid character '1' after top-level value"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            (r#""\x""#, "invalid character 'x' in string escape code"),
            (
                r#""\u12g""#,
                "invalid character 'g' in \\u hexadecimal character escape",
            ),
            (
                "'",
                "invalid character '\\'' looking for beginning of value",
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(error(text.as_bytes()).as_deref(), Some(expected), "{text}");
        }
        let expected = "invalid character '\\u009e' looking for beginning of value";
        assert_eq!(error(b"\x9e").as_deref(), Some(expected));
        let deep = "[".repeat(10_001);
        assert_eq!(
            error(deep.as_bytes()).as_deref(),
            Some("exceeded max depth")
        );
    }

    #[test]
    fn valid_json_has_no_error() {
        let rows = [
            "0",
            " -1.5e+3 ",
            "\"\\u00e9\\n\"",
            "[]",
            "{}",
            "[null, true, false]",
            r#"{"a": {"b": [1, {"c": "d"}]}, "e": -0}"#,
        ];
        for text in rows {
            assert_eq!(error(text.as_bytes()), None, "{text}");
        }
    }
}
