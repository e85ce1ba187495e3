//! The lists extension, version 3: from Kubernetes 1.34 on.

use std::cmp::Ordering;

use super::standard::length;
use super::{Row, global, member, no_such_overload};
use crate::value::{List, order};
use crate::{Budget, RunError, Value};

/// `x.sortBy(i, key)` expands to a call of this function with the keys.
pub(crate) const SORT_BY_KEYS: &str = "@sortByAssociatedKeys";

macro_rules! rows {
    ($($ty:literal),*) => {
        &[
            member("slice", "list_slice", "list(T), int, int -> list(T)", slice),
            member("flatten", "list_flatten", "list(list(T)) -> list(T)", flatten),
            member("flatten", "list_flatten_int", "list(dyn), int -> list(dyn)", flatten),
            global("lists.range", "lists_range", "int -> list(int)", range),
            member("reverse", "list_reverse", "list(T) -> list(T)", reverse),
            member("distinct", "list_distinct", "list(T) -> list(T)", distinct),
            $(
                member(
                    "sort",
                    concat!("list_", $ty, "_sort"),
                    concat!("list(", $ty, ") -> list(", $ty, ")"),
                    sort,
                ),
                member(
                    SORT_BY_KEYS,
                    concat!("list_", $ty, "_sortByAssociatedKeys"),
                    concat!("list(T), list(", $ty, ") -> list(T)"),
                    sort_by_keys,
                ),
            )*
        ]
    };
}

pub(super) const ROWS: &[Row] = rows![
    "int",
    "uint",
    "double",
    "bool",
    "duration",
    "timestamp",
    "string",
    "bytes"
];

fn slice<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else {
        return no_such_overload();
    };
    let wrong = |why: &str| {
        Err(RunError::text(format!(
            "cannot slice({start}, {end}), {why}"
        )))
    };
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return wrong("negative indexes not supported");
    };
    if from > to {
        return wrong("start index must be less than or equal to end index");
    }
    if to > list.len() {
        return wrong(&format!("list is length {}", list.len()));
    }
    let items = list.readable_items().into_iter().skip(from).take(to - from);
    Ok(Value::list(items.collect()))
}

fn flatten<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let (list, levels) = match args {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(levels)] => (list, *levels),
        _ => return no_such_overload(),
    };
    if levels < 0 {
        return Err(RunError::text("level must be non-negative"));
    }
    let mut items = Vec::new();
    flatten_into(list, levels, &mut items)?;
    Ok(Value::list(items))
}

fn flatten_into<'v>(
    list: &List<'v>,
    levels: i64,
    into: &mut Vec<Value<'v>>,
) -> Result<(), RunError> {
    for item in list.readable_items() {
        match item {
            Value::List(inner) if levels > 0 => flatten_into(&inner, levels - 1, into)?,
            item => {
                super::within(into.len(), super::MAX_LIST_LENGTH)?;
                into.push(item);
            }
        }
    }
    Ok(())
}

fn range<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::Int(count)] = args else {
        return no_such_overload();
    };
    // Every item costs at least 1, so a longer list exceeds the limit before it is created.
    if u64::try_from(*count).is_ok_and(|count| count > Budget::PER_CALL) {
        return Err(RunError::CallLimit);
    }
    Ok(Value::list((0..*count).map(Value::Int).collect()))
}

fn reverse<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::List(list)] = args else {
        return no_such_overload();
    };
    let mut items = list.readable_items();
    items.reverse();
    Ok(Value::list(items))
}

fn distinct<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::List(list)] = args else {
        return no_such_overload();
    };
    let mut items: Vec<Value<'v>> = Vec::with_capacity(list.len());
    for item in list.readable_items() {
        // An item that cannot be read equals no other item.
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(Value::list(items))
}

fn sort<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::List(list)] = args else {
        return no_such_overload();
    };
    let items = list.readable_items();
    sorted(items.clone(), items)
}

fn sort_by_keys<'v>(args: &[Value<'v>]) -> Result<Value<'v>, RunError> {
    let [Value::List(list), Value::List(keys)] = args else {
        return no_such_overload();
    };
    sorted(list.readable_items(), keys.readable_items())
}

/// `items` in the order of their `keys`, which must be of one type.
fn sorted<'v>(
    items: Vec<Value<'v>>,
    keys: Vec<Value<'v>>,
) -> Result<Value<'v>, RunError> {
    if items.len() != keys.len() {
        let (keys, items) = (length(keys.len()).to_text(), length(items.len()).to_text());
        let text = format!("cannot sort {items} items by {keys} keys");
        return Err(RunError::text(text));
    }
    let Some(first) = keys.first() else {
        return Ok(Value::list(items));
    };
    let kind = std::mem::discriminant(first);
    if order(first, first).is_none() {
        return Err(RunError::text("list elements must be comparable"));
    }
    if keys.iter().any(|key| std::mem::discriminant(key) != kind) {
        return Err(RunError::text("list elements must have the same type"));
    }
    let mut pairs: Vec<_> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(left, _), (right, _)| order(left, right).unwrap_or(Ordering::Equal));
    Ok(Value::list(
        pairs.into_iter().map(|(_, item)| item).collect(),
    ))
}
