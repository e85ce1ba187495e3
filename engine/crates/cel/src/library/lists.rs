//! Kubernetes' functions on lists.

use std::cmp::Ordering;

use super::standard::length;
use super::{Row, Run, member, no_such_overload};
use crate::time::Duration;
use crate::value::order;
use crate::{RunError, Value};

macro_rules! for_types {
    ($($ty:literal),*) => {
        &[
            $(
                member(
                    "isSorted",
                    concat!("list_", $ty, "_is_sorted_bool"),
                    concat!("list(", $ty, ") -> bool"),
                    is_sorted,
                ),
                member(
                    "max",
                    concat!("list_", $ty, "_max_", $ty),
                    concat!("list(", $ty, ") -> ", $ty),
                    MAX,
                ),
                member(
                    "min",
                    concat!("list_", $ty, "_min_", $ty),
                    concat!("list(", $ty, ") -> ", $ty),
                    MIN,
                ),
            )*
            member("sum", "list_int_sum_int", "list(int) -> int", SUM_INT),
            member("sum", "list_uint_sum_uint", "list(uint) -> uint", SUM_UINT),
            member("sum", "list_double_sum_double", "list(double) -> double", SUM_DOUBLE),
            member(
                "sum",
                "list_duration_sum_duration",
                "list(duration) -> duration",
                SUM_DURATION,
            ),
            member("indexOf", "list_a_index_of_int", "list(A), A -> int", index_of),
            member(
                "lastIndexOf",
                "list_a_last_index_of_int",
                "list(A), A -> int",
                last_index_of,
            ),
        ]
    };
}

pub(super) const ROWS: &[Row] = for_types![
    "int",
    "uint",
    "double",
    "bool",
    "duration",
    "timestamp",
    "string",
    "bytes"
];

/// From Kubernetes 1.37 on.
pub(super) const ROWS_OF_1_37: &[Row] = &[member(
    "includes",
    "list_includes_dyn_dyn",
    "dyn, dyn -> bool",
    includes,
)];

const MAX: Run = |args| extreme(args, Ordering::Less, "max");
const MIN: Run = |args| extreme(args, Ordering::Greater, "min");
const SUM_INT: Run = |args| sum(args, Value::Int(0));
const SUM_UINT: Run = |args| sum(args, Value::Uint(0));
const SUM_DOUBLE: Run = |args| sum(args, Value::Double(0.0));
const SUM_DURATION: Run = |args| sum(args, Value::Duration(Duration::from_nanos(0)));

fn is_sorted<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::List(list)] = args else {
        return no_such_overload();
    };
    let mut before: Option<Value<'v>> = None;
    for item in list.iter() {
        let item = item?;
        if let Some(before) = &before {
            match order(before, &item) {
                Some(Ordering::Greater) => return Ok(Value::Bool(false)),
                Some(_) => {}
                None => return no_such_overload(),
            }
        }
        before = Some(item);
    }
    Ok(Value::Bool(true))
}

/// The minimum or maximum; `worse` is the ordering of an item relative to a better one.
fn extreme<'v>(
    args: &[Value<'v>],
    worse: Ordering,
    name: &str,
) -> Result<Value<'v>, RunError> {
    let [Value::List(list)] = args else {
        return no_such_overload();
    };
    let mut best: Option<Value<'v>> = None;
    for item in list.iter() {
        let item = item?;
        let replaces = match &best {
            None => true,
            Some(best) => order(best, &item) == Some(worse),
        };
        if replaces {
            best = Some(item);
        }
    }
    best.ok_or_else(|| RunError::text(format!("{name} called on empty list")))
}

fn sum<'v>(args: &[Value<'v>], zero: Value<'v>) -> Result<Value<'v>, RunError> {
    let [Value::List(list)] = args else {
        return no_such_overload();
    };
    let mut total = zero;
    for item in list.iter() {
        total = super::arithmetic::add(&[total, item?])?;
    }
    Ok(total)
}

fn index_of<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::List(list), wanted] = args else {
        return no_such_overload();
    };
    let found = list
        .iter()
        .position(|item| item.is_ok_and(|item| item == *wanted));
    Ok(found.map_or(Value::Int(-1), length))
}

fn last_index_of<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::List(list), wanted] = args else {
        return no_such_overload();
    };
    let places = list.iter().enumerate();
    let found = places.filter(|(_, item)| item.as_ref().is_ok_and(|item| item == wanted));
    Ok(found
        .map(|(at, _)| at)
        .last()
        .map_or(Value::Int(-1), length))
}

/// Whether a list contains an item, or a single value equals it.
fn includes<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [value, wanted] = args else {
        return no_such_overload();
    };
    let Value::List(list) = value else {
        return Ok(Value::Bool(value == wanted));
    };
    Ok(Value::Bool(
        list.iter()
            .any(|item| item.is_ok_and(|item| item == *wanted)),
    ))
}
