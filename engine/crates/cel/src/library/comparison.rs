//! `< <= > >=`. Equality is in the evaluator, because it applies to all values.

use std::cmp::Ordering;

use super::{Row, Run, global, no_such_overload};
use crate::ast::operator;
use crate::value::order;
use crate::{RunError, Value};

macro_rules! rows {
    ($(($name:literal, $signature:literal)),* $(,)?) => {
        &[$(
            global(operator::LESS, concat!("less_", $name), $signature, LESS),
            global(
                operator::LESS_EQUALS, concat!("less_equals_", $name), $signature, LESS_EQUALS,
            ),
            global(operator::GREATER, concat!("greater_", $name), $signature, GREATER),
            global(
                operator::GREATER_EQUALS,
                concat!("greater_equals_", $name),
                $signature,
                GREATER_EQUALS,
            ),
        )*]
    };
}

pub(super) const ROWS: &[Row] = rows![
    ("bool", "bool, bool -> bool"),
    ("int64", "int, int -> bool"),
    ("uint64", "uint, uint -> bool"),
    ("double", "double, double -> bool"),
    ("string", "string, string -> bool"),
    ("bytes", "bytes, bytes -> bool"),
    ("timestamp", "timestamp, timestamp -> bool"),
    ("duration", "duration, duration -> bool"),
];

/// Comparison of numbers of different kinds.
pub(super) const CROSS_TYPE_ROWS: &[Row] = rows![
    ("int64_double", "int, double -> bool"),
    ("int64_uint64", "int, uint -> bool"),
    ("uint64_double", "uint, double -> bool"),
    ("uint64_int64", "uint, int -> bool"),
    ("double_int64", "double, int -> bool"),
    ("double_uint64", "double, uint -> bool"),
];

const LESS: Run = |args| compare(args, Ordering::is_lt);
const LESS_EQUALS: Run = |args| compare(args, Ordering::is_le);
const GREATER: Run = |args| compare(args, Ordering::is_gt);
const GREATER_EQUALS: Run = |args| compare(args, Ordering::is_ge);

fn compare<'v>(
    args: &[Value<'v>],
    wanted: fn(Ordering) -> bool,
) -> Result<Value<'v>, RunError> {
    let [left, right] = args else {
        return no_such_overload();
    };
    let nan =
        |value: &Value<'_>| matches!(value, Value::Double(double) if double.is_nan());
    if nan(left) || nan(right) {
        return Err(RunError::text("NaN values cannot be ordered"));
    }
    match order(left, right) {
        Some(order) => Ok(Value::Bool(wanted(order))),
        None => no_such_overload(),
    }
}
