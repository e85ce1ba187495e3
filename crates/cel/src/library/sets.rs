//! The sets extension: lists taken as sets.

use super::{Row, Run, global, no_such_overload};
use crate::{RunError, Value};

pub(super) const ROWS: &[Row] = &[
    global(
        "sets.contains",
        "list_sets_contains_list",
        "list(T), list(T) -> bool",
        CONTAINS,
    ),
    global(
        "sets.equivalent",
        "list_sets_equivalent_list",
        "list(T), list(T) -> bool",
        EQUIVALENT,
    ),
    global(
        "sets.intersects",
        "list_sets_intersects_list",
        "list(T), list(T) -> bool",
        INTERSECTS,
    ),
];

type Items<'a, 'v> = &'a [Value<'v>];

const CONTAINS: Run = |args| compare(args, |left, right| within(right, left));
const EQUIVALENT: Run = |args| {
    compare(args, |left, right| {
        within(left, right) && within(right, left)
    })
};
const INTERSECTS: Run = |args| {
    compare(args, |left, right| {
        left.iter().any(|item| is_in(item, right))
    })
};

/// The item stands on the left, which matters for what compares on one side only.
fn is_in(item: &Value<'_>, whole: Items<'_, '_>) -> bool {
    whole.iter().any(|other| item == other)
}

fn within(part: Items<'_, '_>, whole: Items<'_, '_>) -> bool {
    part.iter().all(|item| is_in(item, whole))
}

fn compare<'v>(
    args: &[Value<'v>],
    test: fn(Items<'_, '_>, Items<'_, '_>) -> bool,
) -> Result<Value<'v>, RunError> {
    let [Value::List(left), Value::List(right)] = args else {
        return no_such_overload();
    };
    Ok(Value::Bool(test(&left.to_vec()?, &right.to_vec()?)))
}
