//! `matches`, and Kubernetes' `find` and `findAll`. The pattern syntax is RE2's.
//!
//! A literal pattern is compiled with the expression; these functions compile patterns that are
//! only available at run time.

use super::{Row, global, member, no_such_overload};
use crate::{RunError, Value};
use kubemu_gostd::regexp::Pattern;

pub(super) const ROWS: &[Row] = &[
    global("matches", "matches", "string, string -> bool", dynamic),
    member(
        "matches",
        "matches_string",
        "string, string -> bool",
        dynamic,
    ),
    member(
        "find",
        "string_find_string",
        "string, string -> string",
        dynamic_find,
    ),
    member(
        "findAll",
        "string_find_all_string",
        "string, string -> list(string)",
        all,
    ),
    member(
        "findAll",
        "string_find_all_string_int",
        "string, string, int -> list(string)",
        all,
    ),
];

/// A call with a precompiled pattern.
pub(crate) type RunCompiled =
    for<'v> fn(&Pattern, &[Value<'v>]) -> Result<Value<'v>, RunError>;

/// The function of this name, if its second argument is a pattern.
pub(crate) fn compiled(function: &str) -> Option<RunCompiled> {
    match function {
        "matches" => Some(matches),
        "find" => Some(find),
        "findAll" => Some(find_all),
        _ => None,
    }
}

fn with_pattern<'v>(args: &[Value<'v>], run: RunCompiled) -> Result<Value<'v>, RunError> {
    let [_, Value::String(source), ..] = args else {
        return no_such_overload();
    };
    let pattern = Pattern::alone(source).map_err(RunError::text)?;
    run(&pattern, args)
}

fn dynamic<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    with_pattern(args, matches)
}

fn dynamic_find<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    with_pattern(args, find).map_err(illegal)
}

fn all<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    with_pattern(args, find_all).map_err(illegal)
}

fn illegal(error: RunError) -> RunError {
    match error {
        RunError::Evaluation(text) if text.starts_with("error parsing regexp") => {
            RunError::text(format!("Illegal regex: {text}"))
        }
        other => other,
    }
}

fn matches<'v>(pattern: &Pattern, args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text), _] => Ok(Value::Bool(pattern.is_match(text))),
        _ => no_such_overload(),
    }
}

fn find<'v>(pattern: &Pattern, args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    match args {
        [Value::String(text), _] => Ok(Value::text(
            pattern.matches(text).next().unwrap_or_default(),
        )),
        _ => no_such_overload(),
    }
}

fn find_all<'v>(pattern: &Pattern, args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let (text, most) = match args {
        [Value::String(text), _] => (text, -1),
        [Value::String(text), _, Value::Int(most)] => (text, *most),
        _ => return no_such_overload(),
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let found = pattern.matches(text).take(most);
    Ok(Value::list(found.map(Value::text).collect()))
}
