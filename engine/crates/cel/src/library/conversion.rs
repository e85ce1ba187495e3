//! `int(x)`, `string(x)` and the like.

use std::sync::Arc;

use super::{Row, Run, global, no_such_overload};
use crate::{RunError, Value};

pub(super) const ROWS: &[Row] = &[
    global("dyn", "to_dyn", "A -> dyn", same),
    global("type", "type", "A -> type(A)", type_of),
    global("bool", "bool_to_bool", "bool -> bool", BOOL),
    global("bool", "string_to_bool", "string -> bool", BOOL),
    global("bytes", "bytes_to_bytes", "bytes -> bytes", BYTES),
    global("bytes", "string_to_bytes", "string -> bytes", BYTES),
    global("double", "double_to_double", "double -> double", DOUBLE),
    global("double", "int64_to_double", "int -> double", DOUBLE),
    global("double", "string_to_double", "string -> double", DOUBLE),
    global("double", "uint64_to_double", "uint -> double", DOUBLE),
    global(
        "duration",
        "duration_to_duration",
        "duration -> duration",
        DURATION,
    ),
    global("duration", "int64_to_duration", "int -> duration", DURATION),
    global(
        "duration",
        "string_to_duration",
        "string -> duration",
        DURATION,
    ),
    global("int", "int64_to_int64", "int -> int", INT),
    global("int", "double_to_int64", "double -> int", INT),
    global("int", "duration_to_int64", "duration -> int", INT),
    global("int", "string_to_int64", "string -> int", INT),
    global("int", "timestamp_to_int64", "timestamp -> int", INT),
    global("int", "uint64_to_int64", "uint -> int", INT),
    global("string", "string_to_string", "string -> string", STRING),
    global("string", "bool_to_string", "bool -> string", STRING),
    global("string", "bytes_to_string", "bytes -> string", STRING),
    global("string", "double_to_string", "double -> string", STRING),
    global("string", "duration_to_string", "duration -> string", STRING),
    global("string", "int64_to_string", "int -> string", STRING),
    global(
        "string",
        "timestamp_to_string",
        "timestamp -> string",
        STRING,
    ),
    global("string", "uint64_to_string", "uint -> string", STRING),
    global(
        "timestamp",
        "timestamp_to_timestamp",
        "timestamp -> timestamp",
        TIMESTAMP,
    ),
    global(
        "timestamp",
        "int64_to_timestamp",
        "int -> timestamp",
        TIMESTAMP,
    ),
    global(
        "timestamp",
        "string_to_timestamp",
        "string -> timestamp",
        TIMESTAMP,
    ),
    global("uint", "uint64_to_uint64", "uint -> uint", UINT),
    global("uint", "double_to_uint64", "double -> uint", UINT),
    global("uint", "int64_to_uint64", "int -> uint", UINT),
    global("uint", "string_to_uint64", "string -> uint", UINT),
];

const BOOL: Run = |args| one(args)?.to_bool();
const BYTES: Run = |args| one(args)?.to_bytes();
const DOUBLE: Run = |args| one(args)?.to_double();
const DURATION: Run = |args| one(args)?.to_duration();
const INT: Run = |args| one(args)?.to_int();
const STRING: Run = |args| one(args)?.to_string_value();
const TIMESTAMP: Run = |args| one(args)?.to_timestamp();
const UINT: Run = |args| one(args)?.to_uint();

fn one<'a, 'v>(args: &'a [Value<'v>]) -> Result<&'a Value<'v>, RunError> {
    args.first().map_or_else(no_such_overload, Ok)
}

fn same<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    one(args).cloned()
}

fn type_of<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Type(Arc::from(one(args)?.type_name())))
}
