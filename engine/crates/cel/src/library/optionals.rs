//! Optional values.

use super::{Row, Run, global, member, no_such_overload};
use crate::ast::operator;
use crate::{RunError, Value};

pub(super) const ROWS: &[Row] = &[
    global("optional.of", "optional_of", "V -> optional(V)", of),
    global(
        "optional.ofNonZeroValue",
        "optional_ofNonZeroValue",
        "V -> optional(V)",
        of_non_zero,
    ),
    global("optional.none", "optional_none", "-> optional(V)", NONE),
    member("value", "optional_value", "optional(V) -> V", value),
    member(
        "hasValue",
        "optional_hasValue",
        "optional(V) -> bool",
        has_value,
    ),
    // The evaluator implements the next five: they evaluate their argument only if needed, or
    // read the optional's value.
    member(
        "or",
        "optional_or_optional",
        "optional(V), optional(V) -> optional(V)",
        unreached,
    ),
    member(
        "orValue",
        "optional_orValue_value",
        "optional(V), V -> V",
        unreached,
    ),
    global(
        operator::OPTIONAL_INDEX,
        "list_optindex_optional_int",
        "list(V), int -> optional(V)",
        unreached,
    ),
    global(
        operator::OPTIONAL_INDEX,
        "optional_list_optindex_optional_int",
        "optional(list(V)), int -> optional(V)",
        unreached,
    ),
    global(
        operator::OPTIONAL_INDEX,
        "map_optindex_optional_value",
        "map(K, V), K -> optional(V)",
        unreached,
    ),
    global(
        operator::OPTIONAL_INDEX,
        "optional_map_optindex_optional_value",
        "optional(map(K, V)), K -> optional(V)",
        unreached,
    ),
    global(
        operator::INDEX,
        "optional_list_index_int",
        "optional(list(V)), int -> optional(V)",
        unreached,
    ),
    global(
        operator::INDEX,
        "optional_map_index_value",
        "optional(map(K, V)), K -> optional(V)",
        unreached,
    ),
];

/// From the second version of cel-go's optionals on, which Kubernetes 1.34 added for new and
/// existing expressions.
pub(super) const ROWS_OF_1_33: &[Row] = &[
    member("first", "list_first", "list(V) -> optional(V)", first),
    member("last", "list_last", "list(V) -> optional(V)", last),
    global(
        "optional.unwrap",
        "optional_unwrap",
        "list(optional(V)) -> list(V)",
        unwrap,
    ),
    member(
        "unwrapOpt",
        "optional_unwrapOpt",
        "list(optional(V)) -> list(V)",
        unwrap,
    ),
];

const NONE: Run = |_| Ok(Value::Optional(None));

fn unreached<'v>(_: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    no_such_overload()
}

fn of<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    args.first()
        .cloned()
        .map_or_else(no_such_overload, |value| Ok(Value::some(value)))
}

fn of_non_zero<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [value] = args else {
        return no_such_overload();
    };
    let is_zero = match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Duration(duration) => duration.nanos() == 0,
        Value::Timestamp(instant) => instant.is_zero(),
        // The API server does not check whether lists and maps of a custom resource are empty.
        Value::List(list) => list.is_empty() && !list.is_unstructured(),
        Value::Map(map) => map.is_empty() && !map.is_unstructured(),
        Value::Struct(it) => it.is_empty(),
        _ => false,
    };
    Ok(if is_zero {
        Value::Optional(None)
    } else {
        Value::some(value.clone())
    })
}

fn value<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Optional(Some(value))] => (**value).clone().or_conversion_error(),
        [Value::Optional(None)] => Err(RunError::text("optional.none() dereference")),
        _ => no_such_overload(),
    }
}

fn has_value<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => no_such_overload(),
    }
}

fn first<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::List(list)] => Ok(optional(list.readable_item(0))),
        _ => no_such_overload(),
    }
}

fn last<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::List(list)] => {
            let last = list.len().checked_sub(1);
            Ok(optional(last.and_then(|at| list.readable_item(at))))
        }
        _ => no_such_overload(),
    }
}

fn optional(found: Option<Value<'_>>) -> Value<'_> {
    found.map_or(Value::Optional(None), Value::some)
}

/// The values of the optionals that have one.
fn unwrap<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::List(list)] = args else {
        return no_such_overload();
    };
    let mut items = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(value) => items.extend(value.map(|it| (*it).clone())),
            _ => return no_such_overload(),
        }
    }
    Ok(Value::list(items))
}
