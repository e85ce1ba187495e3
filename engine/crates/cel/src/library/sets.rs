//! The sets extension: lists treated as sets.

use super::{Row, Run, global, no_such_overload};
use crate::{List, RunError, Value};

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

const CONTAINS: Run = |args| compare(args, |left, right| within(right, left));
const EQUIVALENT: Run = |args| {
    compare(args, |left, right| {
        Ok(within(right, left)? && within(left, right)?)
    })
};
const INTERSECTS: Run = |args| {
    compare(args, |left, right| {
        // An item that cannot be read is in neither list.
        let mut items = left.iter().flatten();
        Ok(items.any(|item| right.contains(&item).unwrap_or(false)))
    })
};

/// Whether all items of a list are in another one. Items after the first missing one are not
/// read.
fn within(part: &List<'_>, whole: &List<'_>) -> Result<bool, RunError> {
    for item in part.iter() {
        let is_in = match item {
            Ok(item) => whole.contains(&item)?,
            // Only a list of a custom resource reports items that cannot be read.
            Err(error) if whole.is_unstructured() => return Err(error),
            Err(_) => false,
        };
        if !is_in {
            return Ok(false);
        }
    }
    Ok(true)
}

fn compare<'v>(
    args: &[Value<'v>],
    test: fn(&List<'_>, &List<'_>) -> Result<bool, RunError>,
) -> Result<Value<'v>, RunError> {
    let [Value::List(left), Value::List(right)] = args else {
        return no_such_overload();
    };
    test(left, right).map(Value::Bool)
}
