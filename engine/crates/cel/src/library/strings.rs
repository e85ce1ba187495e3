//! The strings extension: version 0 to Kubernetes 1.28, version 2 from 1.29 on.

use super::standard::length;
use super::{Row, global, member, no_such_overload};
use crate::{RunError, Value};

pub(super) const ROWS: &[Row] = &[
    member(
        "charAt",
        "string_char_at_int",
        "string, int -> string",
        char_at,
    ),
    member(
        "indexOf",
        "string_index_of_string",
        "string, string -> int",
        index_of,
    ),
    member(
        "indexOf",
        "string_index_of_string_int",
        "string, string, int -> int",
        index_of,
    ),
    member(
        "lastIndexOf",
        "string_last_index_of_string",
        "string, string -> int",
        last_index_of,
    ),
    member(
        "lastIndexOf",
        "string_last_index_of_string_int",
        "string, string, int -> int",
        last_index_of,
    ),
    member(
        "lowerAscii",
        "string_lower_ascii",
        "string -> string",
        lower,
    ),
    member(
        "upperAscii",
        "string_upper_ascii",
        "string -> string",
        upper,
    ),
    member(
        "replace",
        "string_replace_string_string",
        "string, string, string -> string",
        replace,
    ),
    member(
        "replace",
        "string_replace_string_string_int",
        "string, string, string, int -> string",
        replace,
    ),
    member(
        "split",
        "string_split_string",
        "string, string -> list(string)",
        split,
    ),
    member(
        "split",
        "string_split_string_int",
        "string, string, int -> list(string)",
        split,
    ),
    member(
        "substring",
        "string_substring_int",
        "string, int -> string",
        substring,
    ),
    member(
        "substring",
        "string_substring_int_int",
        "string, int, int -> string",
        substring,
    ),
    member("trim", "string_trim", "string -> string", trim),
    member("join", "list_join", "list(string) -> string", join),
    member(
        "join",
        "list_join_string",
        "list(string), string -> string",
        join,
    ),
];

pub(super) const ROWS_OF_1_29: &[Row] = &[
    global("strings.quote", "strings_quote", "string -> string", quote),
    member(
        "format",
        "string_format",
        "string, list(dyn) -> string",
        super::format_text::format,
    ),
];

fn out_of_range<T>(index: i64) -> Result<T, RunError> {
    Err(RunError::text(format!("index out of range: {index}")))
}

/// `index` as a position in text of `length` code points; the end is a valid position.
fn position(index: i64, length: usize) -> Result<usize, RunError> {
    usize::try_from(index)
        .ok()
        .filter(|index| *index <= length)
        .map_or_else(|| out_of_range(index), Ok)
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn char_at<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::String(text), Value::Int(index)] = args else {
        return no_such_overload();
    };
    let chars = chars(text);
    let position = position(*index, chars.len())?;
    Ok(Value::text(
        chars
            .get(position)
            .map_or_else(String::new, char::to_string),
    ))
}

fn index_of<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (chars(text), chars(part), 0),
        [Value::String(text), Value::String(part), Value::Int(from)] => {
            if part.is_empty() {
                return Ok(Value::Int(*from));
            }
            (chars(text), chars(part), *from)
        }
        _ => return no_such_overload(),
    };
    if part.is_empty() {
        return Ok(Value::Int(0));
    }
    let Ok(from) = usize::try_from(from) else {
        return out_of_range(from);
    };
    let found = text
        .windows(part.len())
        .skip(from)
        .position(|window| window == part);
    Ok(found.map_or(Value::Int(-1), |at| length(from + at)))
}

fn last_index_of<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let (text, part, until) = match args {
        [Value::String(text), Value::String(part)] => {
            if part.is_empty() {
                return Ok(length(text.chars().count()));
            }
            (chars(text), chars(part), None)
        }
        [Value::String(text), Value::String(part), Value::Int(until)] => {
            if part.is_empty() {
                return Ok(Value::Int(*until));
            }
            (chars(text), chars(part), Some(*until))
        }
        _ => return no_such_overload(),
    };
    let until = match until {
        None => text.len(),
        Some(until) => match usize::try_from(until) {
            Ok(until) if until < text.len() => until,
            // A search after the end finds nothing.
            Ok(_) => return Ok(Value::Int(-1)),
            Err(_) => return out_of_range(until),
        },
    };
    let windows = text
        .windows(part.len())
        .take(until.saturating_add(1))
        .enumerate();
    let found = windows
        .filter(|(_, window)| *window == part)
        .map(|(at, _)| at)
        .next_back();
    Ok(found.map_or(Value::Int(-1), length))
}

fn lower<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::text(text.to_ascii_lowercase())),
        _ => no_such_overload(),
    }
}

fn upper<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::text(text.to_ascii_uppercase())),
        _ => no_such_overload(),
    }
}

fn replace<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let (text, old, new, count) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => {
            (text, old, new, -1)
        }
        [
            Value::String(text),
            Value::String(old),
            Value::String(new),
            Value::Int(count),
        ] => (text, old, new, *count),
        _ => return no_such_overload(),
    };
    let found = match usize::try_from(count) {
        Ok(count) => text.matches(&**old).take(count).count(),
        Err(_) => text.matches(&**old).count(),
    };
    super::within(found.saturating_mul(new.len()), super::MAX_TEXT_SIZE)?;
    Ok(Value::text(match usize::try_from(count) {
        Ok(count) => text.replacen(&**old, new, count),
        Err(_) => text.replace(&**old, new),
    }))
}

/// Go's `strings.SplitN`: an empty separator splits between all characters.
fn split<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let (text, separator, most) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [
            Value::String(text),
            Value::String(separator),
            Value::Int(most),
        ] => (text, separator, *most),
        _ => return no_such_overload(),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let parts: Vec<Value<'v>> = if most == 0 {
        Vec::new()
    } else if separator.is_empty() {
        let count = text.chars().count().min(most);
        let last = text
            .char_indices()
            .nth(count.saturating_sub(1))
            .map_or(0, |(at, _)| at);
        let (first, rest) = text.split_at(last);
        let rest = (count > 0).then(|| Value::text(rest));
        first.chars().map(Value::text).chain(rest).collect()
    } else {
        text.splitn(most, &**separator).map(Value::text).collect()
    };
    Ok(Value::list(parts))
}

fn substring<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (chars(text), *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => {
            (chars(text), *start, Some(*end))
        }
        _ => return no_such_overload(),
    };
    if let Some(end) = end.filter(|end| start > *end) {
        return Err(RunError::text(format!(
            "invalid substring range. start: {start}, end: {end}"
        )));
    }
    let from = position(start, text.len())?;
    let to = match end {
        Some(end) => position(end, text.len())?,
        None => text.len(),
    };
    let part = text.get(from..to).unwrap_or_default();
    Ok(Value::text(part.iter().collect::<String>()))
}

/// Go's `strings.TrimSpace`.
fn trim<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::text(text.trim())),
        _ => no_such_overload(),
    }
}

fn join<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return no_such_overload(),
    };
    let mut text = String::new();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            text.push_str(separator);
        }
        match item {
            Ok(Value::String(part)) => {
                super::within(
                    text.len().saturating_add(part.len()),
                    super::MAX_TEXT_SIZE,
                )?;
                text.push_str(&part);
            }
            Ok(other) => return not_joinable(&other.to_text()),
            Err(error) => return not_joinable(&error.to_string()),
        }
    }
    Ok(Value::text(text))
}

fn not_joinable<'v>(item: &str) -> Result<Value<'v>, RunError> {
    Err(RunError::text(format!("join: invalid input: {item}")))
}

fn quote<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::String(text)] = args else {
        return no_such_overload();
    };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    Ok(Value::text(quoted))
}
