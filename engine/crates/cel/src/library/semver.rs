//! Semantic versions: from Kubernetes 1.33 on.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Row, Run, global, member, no_such_overload};
use crate::value::{LibraryValue, LibraryValueKind, Semver};
use crate::{RunError, Value};

const PAIR: &str = "kubernetes.Semver, kubernetes.Semver -> bool";

pub(super) const ROWS: &[Row] = &[
    global(
        "semver",
        "string_to_semver",
        "string -> kubernetes.Semver",
        semver,
    ),
    global(
        "semver",
        "string_bool_to_semver",
        "string, bool -> kubernetes.Semver",
        semver,
    ),
    global("isSemver", "is_semver_string", "string -> bool", is_semver),
    global(
        "isSemver",
        "is_semver_string_bool",
        "string, bool -> bool",
        is_semver,
    ),
    member("isGreaterThan", "semver_is_greater_than", PAIR, GREATER),
    member("isLessThan", "semver_is_less_than", PAIR, LESS),
    member(
        "compareTo",
        "semver_compare_to",
        "kubernetes.Semver, kubernetes.Semver -> int",
        COMPARE,
    ),
    member("major", "semver_major", "kubernetes.Semver -> int", MAJOR),
    member("minor", "semver_minor", "kubernetes.Semver -> int", MINOR),
    member("patch", "semver_patch", "kubernetes.Semver -> int", PATCH),
];

const GREATER: Run = |args| order(args).map(|order| Value::Bool(order.is_gt()));
const LESS: Run = |args| order(args).map(|order| Value::Bool(order.is_lt()));
const COMPARE: Run = |args| order(args).map(|order| Value::Int(order as i64));
const MAJOR: Run = |args| number(args, 0);
const MINOR: Run = |args| number(args, 1);
const PATCH: Run = |args| number(args, 2);

fn parsed(args: &[Value<'_>]) -> Result<Result<Semver, String>, RunError> {
    Ok(match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => {
            Semver::parse(text)
        }
        [Value::String(text), Value::Bool(true)] => {
            Semver::normalized(text).and_then(|text| Semver::parse(&text))
        }
        _ => return no_such_overload(),
    })
}

fn semver<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let version = parsed(args)?.map_err(RunError::text)?;
    Ok(Value::Library(LibraryValue(LibraryValueKind::Semver(
        Arc::new(version),
    ))))
}

fn is_semver<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    Ok(Value::Bool(parsed(args)?.is_ok()))
}

fn argument<'a>(args: &'a [Value<'_>], index: usize) -> Result<&'a Semver, RunError> {
    match args.get(index) {
        Some(Value::Library(LibraryValue(LibraryValueKind::Semver(version)))) => {
            Ok(version)
        }
        _ => no_such_overload(),
    }
}

fn order(args: &[Value<'_>]) -> Result<Ordering, RunError> {
    Ok(argument(args, 0)?.order(argument(args, 1)?))
}

fn number<'v>(args: &[Value<'v>], which: usize) -> Result<Value<'v>, RunError> {
    let numbers = argument(args, 0)?.numbers;
    let number = numbers.get(which).copied().unwrap_or(0);
    // Go converts without a range check.
    Ok(Value::Int(number.cast_signed()))
}
