//! cel-go's standard functions on text, lists, maps and booleans.

use super::{Row, global, member, no_such_overload};
use crate::ast::operator;
use crate::value::{Entries, List, Map, characters};
use crate::{RunError, Value};

pub(super) const ROWS: &[Row] = &[
    global(operator::NOT, "logical_not", "bool -> bool", not),
    global(
        operator::NOT_STRICTLY_FALSE,
        "not_strictly_false",
        "bool -> bool",
        same,
    ),
    global(operator::IN, "in_list", "A, list(A) -> bool", contained),
    global(operator::IN, "in_map", "A, map(A, B) -> bool", contained),
    global(operator::INDEX, "index_list", "list(A), int -> A", index),
    global(operator::INDEX, "index_map", "map(A, B), A -> B", index),
    global("size", "size_string", "string -> int", size),
    global("size", "size_bytes", "bytes -> int", size),
    global("size", "size_list", "list(A) -> int", size),
    global("size", "size_map", "map(A, B) -> int", size),
    member("size", "string_size", "string -> int", size),
    member("size", "bytes_size", "bytes -> int", size),
    member("size", "list_size", "list(A) -> int", size),
    member("size", "map_size", "map(A, B) -> int", size),
    member(
        "contains",
        "contains_string",
        "string, string -> bool",
        contains,
    ),
    member(
        "startsWith",
        "starts_with_string",
        "string, string -> bool",
        starts_with,
    ),
    member(
        "endsWith",
        "ends_with_string",
        "string, string -> bool",
        ends_with,
    ),
];

pub(super) const MAP_INSERT_ROWS: &[Row] = &[
    global(
        operator::MAP_INSERT,
        "cel.@mapInsert_map_map",
        "map(A, B), map(A, B) -> map(A, B)",
        insert_all,
    ),
    global(
        operator::MAP_INSERT,
        "cel.@mapInsert_map_key_value",
        "map(A, B), A, B -> map(A, B)",
        insert_one,
    ),
];

/// A length as an integer value.
pub(crate) fn length<'v>(length: usize) -> Value<'v> {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

fn not<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => no_such_overload(),
    }
}

fn same<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    args.first().cloned().map_or_else(no_such_overload, Ok)
}

fn contained<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [wanted, Value::List(list)] => list.contains(wanted).map(Value::Bool),
        [key, Value::Map(map)] => {
            let found = map.get(key).transpose()?;
            Ok(Value::Bool(found.is_some()))
        }
        _ => no_such_overload(),
    }
}

/// `a[b]`
pub(crate) fn index<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::List(list), index] => {
            let at = position(list, index)?;
            list.get(at).unwrap_or_else(|| Err(out_of_bounds(index)))
        }
        [Value::Map(map), key] => map.get(key).unwrap_or_else(|| {
            Err(RunError::text(format!("no such key: {}", key.to_text())))
        }),
        _ => no_such_overload(),
    }
}

/// Where an index is in a list.
///
/// # Errors
/// It is no index, or out of bounds.
pub(crate) fn position(list: &List<'_>, index: &Value<'_>) -> Result<usize, RunError> {
    let number = match index {
        Value::Int(number) => Some(*number),
        Value::Uint(number) => i64::try_from(*number).ok(),
        Value::Double(number) => match crate::value::lossless_integer(*number) {
            Some(Value::Int(number)) => Some(number),
            _ => return Err(RunError::text("unsupported index value")),
        },
        _ => {
            let name = index.type_name();
            let text = format!("unsupported index type '{name}' in list");
            return Err(RunError::text(text));
        }
    };
    let found = number.and_then(|number| usize::try_from(number).ok());
    let found = found.filter(|found| *found < list.len());
    found.ok_or_else(|| out_of_bounds(index))
}

fn out_of_bounds(index: &Value<'_>) -> RunError {
    RunError::text(format!("index out of bounds: {}", index.to_text()))
}

fn size<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(length(match args {
        [Value::String(text)] => characters(text),
        [Value::Bytes(bytes)] => bytes.len(),
        [Value::List(list)] => list.len(),
        [Value::Map(map)] => map.len(),
        _ => return no_such_overload(),
    }))
}

fn two_texts<'v>(
    args: &[Value<'v>],
    test: impl Fn(&str, &str) -> bool,
) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(test(text, part))),
        _ => no_such_overload(),
    }
}

fn contains<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    two_texts(args, |text, part| text.contains(part))
}

fn starts_with<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    two_texts(args, |text, part| text.starts_with(part))
}

fn ends_with<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    two_texts(args, |text, part| text.ends_with(part))
}

/// The entries of a map, to be extended.
fn owned<'v>(map: &Map<'v>) -> Result<Entries<'v>, RunError> {
    if let Map::Owned(entries) = map {
        return Ok((**entries).clone());
    }
    let mut owned = Entries::default();
    for (key, value) in map.entries()? {
        owned.insert(key, value)?;
    }
    Ok(owned)
}

fn insert_all<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::Map(map), Value::Map(added)] = args else {
        return no_such_overload();
    };
    let mut entries = owned(map)?;
    for (key, value) in added.entries()? {
        entries.insert(key, value)?;
    }
    Ok(Value::Map(Map::Owned(entries.into())))
}

fn insert_one<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::Map(map), key, value] = args else {
        return no_such_overload();
    };
    let mut entries = owned(map)?;
    entries.insert(key.clone(), value.clone())?;
    Ok(Value::Map(Map::Owned(entries.into())))
}
