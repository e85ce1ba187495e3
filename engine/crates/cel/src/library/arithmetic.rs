//! `+ - * / %` and negation.

use super::{Row, global, no_such_overload};
use crate::ast::operator;
use crate::{List, RunError, Value};

pub(super) const ROWS: &[Row] = &[
    global(operator::ADD, "add_bytes", "bytes, bytes -> bytes", add),
    global(operator::ADD, "add_double", "double, double -> double", add),
    global(
        operator::ADD,
        "add_duration_duration",
        "duration, duration -> duration",
        add,
    ),
    global(
        operator::ADD,
        "add_duration_timestamp",
        "duration, timestamp -> timestamp",
        add,
    ),
    global(
        operator::ADD,
        "add_timestamp_duration",
        "timestamp, duration -> timestamp",
        add,
    ),
    global(operator::ADD, "add_int64", "int, int -> int", add),
    global(
        operator::ADD,
        "add_list",
        "list(A), list(A) -> list(A)",
        add,
    ),
    global(operator::ADD, "add_string", "string, string -> string", add),
    global(operator::ADD, "add_uint64", "uint, uint -> uint", add),
    global(
        operator::SUBTRACT,
        "subtract_double",
        "double, double -> double",
        subtract,
    ),
    global(
        operator::SUBTRACT,
        "subtract_duration_duration",
        "duration, duration -> duration",
        subtract,
    ),
    global(
        operator::SUBTRACT,
        "subtract_int64",
        "int, int -> int",
        subtract,
    ),
    global(
        operator::SUBTRACT,
        "subtract_timestamp_duration",
        "timestamp, duration -> timestamp",
        subtract,
    ),
    global(
        operator::SUBTRACT,
        "subtract_timestamp_timestamp",
        "timestamp, timestamp -> duration",
        subtract,
    ),
    global(
        operator::SUBTRACT,
        "subtract_uint64",
        "uint, uint -> uint",
        subtract,
    ),
    global(
        operator::MULTIPLY,
        "multiply_double",
        "double, double -> double",
        multiply,
    ),
    global(
        operator::MULTIPLY,
        "multiply_int64",
        "int, int -> int",
        multiply,
    ),
    global(
        operator::MULTIPLY,
        "multiply_uint64",
        "uint, uint -> uint",
        multiply,
    ),
    global(
        operator::DIVIDE,
        "divide_double",
        "double, double -> double",
        divide,
    ),
    global(operator::DIVIDE, "divide_int64", "int, int -> int", divide),
    global(
        operator::DIVIDE,
        "divide_uint64",
        "uint, uint -> uint",
        divide,
    ),
    global(operator::MODULO, "modulo_int64", "int, int -> int", modulo),
    global(
        operator::MODULO,
        "modulo_uint64",
        "uint, uint -> uint",
        modulo,
    ),
    global(
        operator::NEGATE,
        "negate_double",
        "double -> double",
        negate,
    ),
    global(operator::NEGATE, "negate_int64", "int -> int", negate),
];

fn int<'v>(value: Option<i64>) -> Result<Value<'v>, RunError> {
    value
        .map(Value::Int)
        .ok_or_else(|| RunError::text("integer overflow"))
}

fn uint<'v>(value: Option<u64>) -> Result<Value<'v>, RunError> {
    value
        .map(Value::Uint)
        .ok_or_else(|| RunError::text("unsigned integer overflow"))
}

fn duration<'v>(value: Option<crate::time::Duration>) -> Result<Value<'v>, RunError> {
    value
        .map(Value::Duration)
        .ok_or_else(|| RunError::text("integer overflow"))
}

fn timestamp<'v>(value: Option<crate::time::Timestamp>) -> Result<Value<'v>, RunError> {
    value
        .map(Value::Timestamp)
        .ok_or_else(|| RunError::text("timestamp overflow"))
}

pub(super) fn add<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Int(left), Value::Int(right)] => int(left.checked_add(*right)),
        [Value::Uint(left), Value::Uint(right)] => uint(left.checked_add(*right)),
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left + right)),
        [Value::String(left), Value::String(right)] => {
            let mut text = String::with_capacity(left.len() + right.len());
            text.push_str(left);
            text.push_str(right);
            Ok(Value::text(text))
        }
        [Value::Bytes(left), Value::Bytes(right)] => Ok(Value::Bytes(
            left.iter().chain(right.iter()).copied().collect(),
        )),
        [Value::List(left), Value::List(right)] => add_lists(left, right),
        [Value::Duration(left), Value::Duration(right)] => {
            duration(left.checked_add(*right))
        }
        [Value::Timestamp(instant), Value::Duration(span)]
        | [Value::Duration(span), Value::Timestamp(instant)] => {
            timestamp(instant.checked_add(*span))
        }
        _ => no_such_overload(),
    }
}

fn add_lists<'v>(left: &List<'v>, right: &List<'v>) -> Result<Value<'v>, RunError> {
    super::check_list_size(left.len(), right.len())?;
    left.joined(right).map(Value::List)
}

fn subtract<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Int(left), Value::Int(right)] => int(left.checked_sub(*right)),
        [Value::Uint(left), Value::Uint(right)] => uint(left.checked_sub(*right)),
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left - right)),
        [Value::Duration(left), Value::Duration(right)] => {
            duration(left.checked_sub(*right))
        }
        [Value::Timestamp(left), Value::Duration(right)] => match right.checked_neg() {
            Some(span) => timestamp(left.checked_add(span)),
            None => duration(None),
        },
        [Value::Timestamp(left), Value::Timestamp(right)] => duration(left.since(*right)),
        _ => no_such_overload(),
    }
}

fn multiply<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Int(left), Value::Int(right)] => int(left.checked_mul(*right)),
        [Value::Uint(left), Value::Uint(right)] => uint(left.checked_mul(*right)),
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left * right)),
        _ => no_such_overload(),
    }
}

fn divide<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(RunError::text("division by zero"))
        }
        [Value::Int(left), Value::Int(right)] => int(left.checked_div(*right)),
        [Value::Uint(left), Value::Uint(right)] => uint(left.checked_div(*right)),
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left / right)),
        _ => no_such_overload(),
    }
}

fn modulo<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(RunError::text("modulus by zero"))
        }
        [Value::Int(left), Value::Int(right)] => int(left.checked_rem(*right)),
        [Value::Uint(left), Value::Uint(right)] => uint(left.checked_rem(*right)),
        _ => no_such_overload(),
    }
}

fn negate<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Int(value)] => int(value.checked_neg()),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        _ => no_such_overload(),
    }
}
