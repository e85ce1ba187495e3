//! `'%s is %d'.format([name, number])`.

use super::no_such_overload;
use crate::value::{List, Map};
use crate::{RunError, Value};
use kubemu_gostd::strconv::{Quoted, format_float};

/// The default precision, in digits after the point.
const PRECISION: usize = 6;
/// The maximum precision, so that a short clause cannot create a long text.
const MAX_PRECISION: usize = 1_000;

pub(super) fn format<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::String(template), Value::List(list)] = args else {
        return no_such_overload();
    };
    let mut text = String::with_capacity(template.len());
    let mut next = 0;
    for part in parts(template) {
        match part {
            Ok(Part::Text(part)) => text.push_str(part),
            // An argument is looked up before its clause is read.
            Ok(Part::End) | Err(_) if next >= list.len() => {
                return Err(out_of_range(next));
            }
            Ok(Part::End) => return Err(unexpected_end()),
            Err(error) => return Err(error),
            Ok(Part::Clause(verb, precision)) => {
                let Some(argument) = list.get(next) else {
                    return Err(out_of_range(next));
                };
                next += 1;
                text.push_str(&formatted(verb, precision, &argument?)?);
            }
        }
        super::within(text.len(), super::MAX_TEXT_SIZE)?;
    }
    Ok(Value::text(text))
}

/// A piece of a template.
pub(crate) enum Part<'t> {
    Text(&'t str),
    /// A verb and its precision.
    Clause(char, usize),
    /// A `%` at the end.
    End,
}

/// The parts of a template, up to the first invalid one.
pub(crate) fn parts(template: &str) -> impl Iterator<Item = Result<Part<'_>, RunError>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        let Some(clause) = rest.strip_prefix('%') else {
            let (text, after) = rest.split_at(rest.find('%').unwrap_or(rest.len()));
            rest = after;
            return (!text.is_empty()).then_some(Ok(Part::Text(text)));
        };
        if let Some(after) = clause.strip_prefix('%') {
            rest = after;
            return Some(Ok(Part::Text("%")));
        }
        let (precision, clause) = match precision(clause) {
            Ok(read) => read,
            Err(error) => {
                rest = "";
                return Some(Err(error));
            }
        };
        let Some(verb) = clause.chars().next() else {
            rest = "";
            return Some(Ok(Part::End));
        };
        rest = clause.strip_prefix(verb).unwrap_or_default();
        Some(Ok(Part::Clause(verb, precision)))
    })
}

/// The error of a `%` at the end.
pub(crate) fn unexpected_end() -> RunError {
    RunError::text("unexpected end of string")
}

/// The error of a clause without an argument.
pub(crate) fn out_of_range(index: usize) -> RunError {
    RunError::text(format!("index {index} out of range"))
}

/// Whether a clause may have this verb.
pub(crate) fn is_verb(verb: char) -> bool {
    "sdfebxXo".contains(verb)
}

/// The error of a clause that does not accept its argument's type.
pub(crate) fn refused(verb: char, type_name: &str) -> RunError {
    let what = match verb {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
             lists, types, durations, and timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        other => {
            // Go reads one byte and prints it as the character with that number.
            let mut bytes = [0; 4];
            other.encode_utf8(&mut bytes);
            return RunError::text(format!(
                "could not parse formatting clause: unrecognized formatting clause \"{}\"",
                char::from(bytes[0])
            ));
        }
    };
    RunError::text(format!(
        "error during formatting: {what}, was given {type_name}"
    ))
}

/// The `.3` of `%.3f`, and the rest.
fn precision(clause: &str) -> Result<(usize, &str), RunError> {
    let Some(digits) = clause.strip_prefix('.') else {
        return Ok((PRECISION, clause));
    };
    let parse = "could not parse formatting clause: error while parsing precision";
    let Some(end) = digits.find(|char: char| !char.is_ascii_digit()) else {
        return Err(RunError::text(format!(
            "{parse}: could not find end of precision specifier"
        )));
    };
    let (number, rest) = digits.split_at(end);
    match number.parse() {
        Ok(precision) if precision <= MAX_PRECISION => Ok((precision, rest)),
        Ok(precision) => Err(RunError::text(format!(
            "{parse}: precision {precision} exceeds maximum allowed precision {MAX_PRECISION}"
        ))),
        Err(_) => {
            let why = if number.is_empty() {
                "invalid syntax"
            } else {
                "value out of range"
            };
            Err(RunError::text(format!(
                "{parse}: error while converting precision to integer: strconv.Atoi: \
                 parsing {}: {why}",
                Quoted(number)
            )))
        }
    }
}

fn formatted(
    verb: char,
    precision: usize,
    argument: &Value<'_>,
) -> Result<String, RunError> {
    let text = match (verb, argument) {
        ('s', value) if !is_text(value) => {
            return Err(RunError::text(
                "error during formatting: could not convert argument \"invalid UTF-8 in \
                 bytes, cannot convert to string\" to string",
            ));
        }
        ('s', value) => to_format_text(value),
        ('d' | 'o' | 'x' | 'X' | 'b', Value::Int(value)) => {
            let magnitude = integer(verb, value.unsigned_abs());
            Some(if *value < 0 {
                format!("-{magnitude}")
            } else {
                magnitude
            })
        }
        ('d' | 'o' | 'x' | 'X' | 'b', Value::Uint(value)) => Some(integer(verb, *value)),
        ('b', Value::Bool(value)) => Some(u8::from(*value).to_string()),
        ('x' | 'X', Value::String(text)) => Some(hex(verb, text.as_bytes())),
        ('x' | 'X', Value::Bytes(bytes)) => Some(hex(verb, bytes)),
        ('f', value) => double(value).map(|double| fixed(double, precision)),
        ('e', value) => double(value).map(|double| scientific(double, precision)),
        _ => None,
    };
    text.ok_or_else(|| refused(verb, argument.type_name()))
}

fn integer(verb: char, value: u64) -> String {
    match verb {
        'o' => format!("{value:o}"),
        'x' => format!("{value:x}"),
        'X' => format!("{value:X}"),
        'b' => format!("{value:b}"),
        _ => value.to_string(),
    }
}

fn hex(verb: char, bytes: &[u8]) -> String {
    let digits = if verb == 'X' {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    let digit = |value: u8| char::from(digits[usize::from(value & 0xf)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    value
        .is_infinite()
        .then(|| if value > 0.0 { "∞" } else { "-∞" }.to_owned())
}

/// With thousands separators, as in the API server's locale.
fn fixed(value: f64, precision: usize) -> String {
    if let Some(text) = special(value) {
        return text;
    }
    let plain = format!("{:.precision$}", value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut text = String::new();
    if value.is_sign_negative() && value != 0.0 {
        text.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// `3.14×10⁰⁰`, in the format of the API server's locale. NaN and infinities are padded with
/// blanks to the width of the decimals.
fn scientific(value: f64, precision: usize) -> String {
    if let Some(text) = special(value) {
        return format!("{text:>precision$}");
    }
    // Zero is printed without a sign.
    let value = if value == 0.0 { 0.0 } else { value };
    let plain = format!("{value:.precision$e}");
    let (mantissa, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { "⁻" } else { "" };
    let digits = format!("{:02}", exponent.abs());
    let raised = digits.chars().filter_map(|digit| {
        "⁰¹²³⁴⁵⁶⁷⁸⁹"
            .chars()
            .nth(usize::try_from(digit.to_digit(10)?).ok()?)
    });
    format!("{mantissa}×10{sign}{}", raised.collect::<String>())
}

/// Whether all bytes in a value are valid text.
fn is_text(value: &Value<'_>) -> bool {
    match value {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).is_ok(),
        Value::List(list) => list.iter().flatten().all(|item| is_text(&item)),
        Value::Map(map) => map
            .entries()
            .into_iter()
            .flatten()
            .all(|(key, value)| is_text(&key) && is_text(&value)),
        _ => true,
    }
}

/// The text of a value for `%s`.
fn to_format_text(value: &Value<'_>) -> Option<String> {
    match value {
        Value::List(list) => format_list(list),
        Value::Map(map) => format_map(map),
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Optional(_)
        | Value::Library(_)
        | Value::Abstract(_)
        | Value::Struct(_) => None,
        other => Some(other.to_text()),
    }
}

fn format_list(list: &List<'_>) -> Option<String> {
    let items: Option<Vec<String>> = list.iter().map(|item| inner(&item.ok()?)).collect();
    Some(format!("[{}]", items?.join(", ")))
}

fn format_map(map: &Map<'_>) -> Option<String> {
    let entries = map.entries().ok()?;
    let mut pairs = Vec::with_capacity(entries.len());
    for (key, value) in &entries {
        pairs.push((inner(key)?, inner(value)?));
    }
    pairs.sort();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    Some(format!("{{{}}}", pairs.join(", ")))
}

/// A value inside a list or map, printed as a literal of the language.
fn inner(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::String(text) => Quoted(text).to_string(),
        Value::Bytes(bytes) => format!("b{}", Quoted(&String::from_utf8_lossy(bytes))),
        Value::Double(value) if value.is_finite() => format!("{value:.PRECISION$}"),
        Value::Double(value) => Quoted(&format_float(*value)).to_string(),
        Value::Duration(duration) => format!("duration(\"{}s\")", duration.seconds()),
        Value::Timestamp(instant) => format!("timestamp(\"{instant}\")"),
        Value::Type(name) => format!("type({name})"),
        other => to_format_text(other)?,
    })
}
