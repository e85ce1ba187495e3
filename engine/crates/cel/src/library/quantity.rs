//! Resource quantities such as `50Mi`: from Kubernetes 1.28 on.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Row, Run, global, member, no_such_overload};
use crate::value::{LibraryValue, LibraryValueKind, Quantity};
use crate::{RunError, Value};

macro_rules! of_two {
    ($(($function:literal, $id:literal, $result:literal, $run:expr)),* $(,)?) => {
        &[
            global("quantity", "string_to_quantity", "string -> kubernetes.Quantity", quantity),
            global("isQuantity", "is_quantity_string", "string -> bool", is_quantity),
            global("sign", "quantity_sign", "kubernetes.Quantity -> int", sign),
            member(
                "asApproximateFloat",
                "quantity_get_float",
                "kubernetes.Quantity -> double",
                as_float,
            ),
            member("asInteger", "quantity_get_int", "kubernetes.Quantity -> int", as_integer),
            member(
                "isInteger",
                "quantity_is_integer",
                "kubernetes.Quantity -> bool",
                is_integer,
            ),
            $(member(
                $function,
                $id,
                concat!("kubernetes.Quantity, ", $result),
                $run,
            ),)*
        ]
    };
}

pub(super) const ROWS: &[Row] = of_two![
    (
        "isGreaterThan",
        "quantity_is_greater_than",
        "kubernetes.Quantity -> bool",
        GREATER
    ),
    (
        "isLessThan",
        "quantity_is_less_than",
        "kubernetes.Quantity -> bool",
        LESS
    ),
    (
        "compareTo",
        "quantity_compare_to",
        "kubernetes.Quantity -> int",
        compare
    ),
    (
        "add",
        "quantity_add",
        "kubernetes.Quantity -> kubernetes.Quantity",
        ADD
    ),
    ("add", "quantity_add_int", "int -> kubernetes.Quantity", ADD),
    (
        "sub",
        "quantity_sub",
        "kubernetes.Quantity -> kubernetes.Quantity",
        SUB
    ),
    ("sub", "quantity_sub_int", "int -> kubernetes.Quantity", SUB),
];

const GREATER: Run = |args| order(args).map(|order| Value::Bool(order.is_gt()));
const LESS: Run = |args| order(args).map(|order| Value::Bool(order.is_lt()));
const ADD: Run = |args| sum(argument(args, 0)?.as_ref(), argument(args, 1)?.as_ref());
const SUB: Run = |args| sum(argument(args, 0)?.as_ref(), &argument(args, 1)?.negated());

fn value<'v>(quantity: Quantity) -> Value<'v> {
    Value::Library(LibraryValue(LibraryValueKind::Quantity(Arc::new(quantity))))
}

fn argument(args: &[Value<'_>], index: usize) -> Result<Arc<Quantity>, RunError> {
    match args.get(index) {
        Some(Value::Library(LibraryValue(LibraryValueKind::Quantity(quantity)))) => {
            Ok(Arc::clone(quantity))
        }
        Some(Value::Int(value)) => Ok(Arc::new(Quantity::of(*value))),
        _ => no_such_overload(),
    }
}

fn quantity<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Quantity::parse(text).map(value).map_err(RunError::text),
        _ => no_such_overload(),
    }
}

fn is_quantity<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text).is_ok())),
        _ => no_such_overload(),
    }
}

fn sign<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Int(argument(args, 0)?.signum()))
}

fn as_float<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Double(argument(args, 0)?.to_float()))
}

fn as_integer<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    argument(args, 0)?
        .to_integer()
        .map(Value::Int)
        .ok_or_else(|| RunError::text("cannot convert value to integer"))
}

fn is_integer<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Bool(argument(args, 0)?.to_integer().is_some()))
}

fn order(args: &[Value<'_>]) -> Result<Ordering, RunError> {
    Ok(argument(args, 0)?.cmp(&argument(args, 1)?))
}

fn compare<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Int(order(args)? as i64))
}

/// Kubernetes adds all quantities, which takes minutes if the exponents are far apart.
fn sum<'v>(left: &Quantity, right: &Quantity) -> Result<Value<'v>, RunError> {
    let sum = left.sum(right);
    sum.map(value)
        .ok_or_else(|| RunError::text("the sum of the quantities has too many digits"))
}
