//! Prints values as Go does.
//!
//! Kubernetes builds messages with Go's `%q`, `%v` and `encoding/json`; these differ from
//! Rust's printing in escapes, in floats and in the order of keys.

use std::fmt::{self, Write};
use std::ops::Range;

use serde_json::{Number, Value};

pub(crate) use kubemu_gostd::strconv::Quoted;
use kubemu_gostd::strconv::format_float;

/// A value as Kubernetes' `field.Error` prints the bad value: strings quoted, numbers and
/// booleans plain, everything else as JSON.
pub(crate) struct BadValue<'a>(pub(crate) &'a Value);

impl fmt::Display for BadValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) => Quoted(text).fmt(f),
            Value::Number(number) => number_plain(number, f),
            other => Json(other).fmt(f),
        }
    }
}

fn number_plain(number: &Number, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match number.as_f64() {
        Some(float) if number.is_f64() => f.write_str(&format_float(float)),
        _ => write!(f, "{number}"),
    }
}

fn exponent_outside(float: f64, plain: Range<f64>) -> String {
    let size = float.abs();
    if size != 0.0 && !plain.contains(&size) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        format!("{digits}e{sign}{exponent:0>2}")
    } else {
        format!("{float}")
    }
}

/// A value as Go's `%v` prints it: no quotes, lists and maps in brackets, keys sorted.
pub(crate) struct Plain<'a>(pub(crate) &'a Value);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(value) => value.fmt(f),
            Value::Number(number) => match number.as_f64() {
                Some(float) if !number.is_i64() => f.write_str(&format_float(float)),
                _ => write!(f, "{number}"),
            },
            Value::String(text) => f.write_str(text),
            Value::Array(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    let space = if at > 0 { " " } else { "" };
                    write!(f, "{space}{}", Plain(item))?;
                }
                f.write_char(']')
            }
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_unstable_by_key(|(name, _)| *name);
                f.write_str("map[")?;
                for (at, (name, value)) in sorted.into_iter().enumerate() {
                    let space = if at > 0 { " " } else { "" };
                    write!(f, "{space}{name}:{}", Plain(value))?;
                }
                f.write_char(']')
            }
        }
    }
}

/// A value as Go's `encoding/json` prints it: no spaces, keys sorted, `<`, `>` and `&`
/// escaped.
pub(crate) struct Json<'a>(pub(crate) &'a Value);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => value.fmt(f),
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() => f.write_str(&float_json(float)),
                _ => write!(f, "{number}"),
            },
            Value::String(text) => json_string(text, f),
            Value::Array(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        f.write_char(',')?;
                    }
                    Json(item).fmt(f)?;
                }
                f.write_char(']')
            }
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_unstable_by_key(|(name, _)| *name);
                f.write_char('{')?;
                for (at, (name, value)) in sorted.into_iter().enumerate() {
                    if at > 0 {
                        f.write_char(',')?;
                    }
                    json_string(name, f)?;
                    f.write_char(':')?;
                    Json(value).fmt(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

/// JSON uses the exponent form only below 1e-6 and from 1e21 on, and writes `1e-7`, not
/// `1e-07`.
fn float_json(float: f64) -> String {
    let text = exponent_outside(float, 1e-6..1e21);
    match text.split_once("e-0") {
        Some((digits, exponent)) => format!("{digits}e-{exponent}"),
        None => text,
    }
}

fn json_string(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(f, "\\u{:04x}", c as u32)?;
            }
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strings_are_escaped_as_go_escapes_them() {
        let rows = [
            ("five minutes", r#""five minutes""#),
            ("it's — \"so\"", r#""it's — \"so\"""#),
            ("a\nb\u{7}\u{7f}", r#""a\nb\a\x7f""#),
            ("\u{200b}\u{e000}\u{a0}é", r#""\u200b\ue000\u00a0é""#),
            ("\u{10ffff}", r#""\U0010ffff""#),
        ];
        for (text, printed) in rows {
            assert_eq!(Quoted(text).to_string(), printed);
        }
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        let rows = [
            (1.5, "1.5"),
            (5.0, "5"),
            (123_456.5, "123456.5"),
            (1_234_567.0, "1.234567e+06"),
            (1e20, "1e+20"),
            (0.000_01, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
        ];
        for (float, printed) in rows {
            assert_eq!(format_float(float), printed);
        }
        assert_eq!(Json(&json!(0.000_000_1)).to_string(), "1e-7");
        assert_eq!(Json(&json!(1e20)).to_string(), "100000000000000000000");
        assert_eq!(Json(&json!(0.000_01)).to_string(), "0.00001");
    }

    #[test]
    fn json_has_sorted_keys_and_escaped_markup() {
        let value = json!({"b": [1, null, true], "a": "<&>\n"});
        assert_eq!(
            BadValue(&value).to_string(),
            r#"{"a":"\u003c\u0026\u003e\n","b":[1,null,true]}"#
        );
    }
}
