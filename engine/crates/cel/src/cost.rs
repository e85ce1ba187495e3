//! The cost of calls, by the rules of Kubernetes' cost tracker.
//!
//! The formula is chosen when the expression is compiled, from the function and, if the checker
//! found exactly one, the overload. It computes the cost of a call from its values, and
//! estimates the cost from the bounds of the values.

mod estimate;

use crate::Value;
use crate::ast::operator;

pub(crate) use estimate::{Elements, Operand};

/// Cost of reading a name, field or index.
pub(crate) const SELECT: u64 = 1;
/// Cost of creating a list.
pub(crate) const LIST: u64 = 10;
/// Cost of creating a map.
pub(crate) const MAP: u64 = 30;
/// Cost of creating a value of a type with fields.
pub(crate) const STRUCT: u64 = 40;
/// Cost of one authorization check: two of them fit into one expression.
const CHECK: u64 = 350_000;

/// How the cost of a call is computed from its arguments and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Formula {
    Fixed(u64),
    /// A tenth of the first argument's size, times this factor.
    Traverse(u64),
    /// The same as `Traverse(1)` at run time; the estimate uses the size of the second
    /// argument, the prefix or suffix.
    Affix,
    /// A fifth of the result's size.
    Join,
    /// The second argument's size.
    ListSearch,
    /// A tenth of the smaller argument's size.
    Compare,
    /// A tenth of the sum of both sizes.
    Concatenate,
    /// The second argument, a pattern, run over the first, a text.
    Pattern,
    /// A search for one text in another.
    TextSearch,
    /// The size of the first argument and of everything in it.
    Items,
    /// A CIDR against an address or another CIDR; `text` if the operand must be parsed.
    Within {
        cidr: bool,
        text: bool,
    },
    /// A named format's pattern run over text.
    Format,
    /// The result's size, for a call that creates a list.
    NewList,
    /// The first argument's size times the levels to flatten, for a call that creates a list.
    Flatten,
    /// Every item of a list, the argument at this index, against every other item. Text costs
    /// more: the estimate determines that from the overload, a run from the items.
    SelfCompare {
        list: usize,
        text: bool,
    },
    /// Every item of one list against every item of another, times this factor.
    Product(u64),
    /// A label or field selector that must be parsed.
    Selector,
}

impl Formula {
    /// The API server's error if its formula expects a list or a number and the argument is an
    /// error: it does not check the type before it computes the cost.
    pub(crate) fn panic_message(self, args: &[Value<'_>]) -> Option<&'static str> {
        let is_list = |at: usize| matches!(args.get(at), Some(Value::List(_)));
        match self {
            Self::SelfCompare { list, .. } if !is_list(list) => Some(
                "interface conversion: *types.Err is not traits.Lister: missing method Add",
            ),
            Self::Flatten if args.len() > 1 && !matches!(args, [_, Value::Int(_)]) => {
                Some("interface conversion: ref.Val is *types.Err, not types.Int")
            }
            _ => None,
        }
    }

    /// The formula of a function and, if only one is possible, its overload.
    pub(crate) fn of(function: &str, overload: Option<&str>) -> Self {
        Self::of_function(function, overload)
            .or_else(|| overload.and_then(Self::of_overload))
            .unwrap_or(Self::Fixed(1))
    }

    /// The formulas of Kubernetes' own cost estimator, by function.
    fn of_function(function: &str, overload: Option<&str>) -> Option<Self> {
        Some(match function {
            "check" => Self::Fixed(CHECK),
            "fieldSelector" | "labelSelector" => Self::Selector,
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf"
            | "includes" => Self::Items,
            "ip" if overload == Some("cidr_ip") => Self::Fixed(1),
            "url"
            | "lowerAscii"
            | "upperAscii"
            | "substring"
            | "trim"
            | "cidr"
            | "jsonpatch.escapeKey"
            | "isIP"
            | "isCIDR"
            | "ip"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver" => Self::Traverse(1),
            "replace" | "split" | "ip.isCanonical" => Self::Traverse(2),
            "join" => Self::Join,
            "find" | "findAll" => Self::Pattern,
            "containsIP" => Self::Within {
                cidr: false,
                text: overload == Some("cidr_contains_ip_string"),
            },
            "containsCIDR" => Self::Within {
                cidr: true,
                text: overload == Some("cidr_contains_cidr_string"),
            },
            "validate" => Self::Format,
            operator::EQUALS => Self::Compare,
            _ => return None,
        })
    }

    /// The formulas of cel-go, by overload.
    fn of_overload(overload: &str) -> Option<Self> {
        Some(match overload {
            "starts_with_string" | "ends_with_string" => Self::Affix,
            "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format" => {
                Self::Traverse(1)
            }
            "in_list" => Self::ListSearch,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals" => Self::Compare,
            "add_string" | "add_bytes" => Self::Concatenate,
            "matches_string" => Self::Pattern,
            "contains_string" => Self::TextSearch,
            "list_slice" | "lists_range" | "list_reverse" => Self::NewList,
            "list_flatten" | "list_flatten_int" => Self::Flatten,
            "list_distinct" => Self::self_compare(0, overload),
            "list_sets_contains_list" | "list_sets_intersects_list" => Self::Product(1),
            "list_sets_equivalent_list" => Self::Product(2),
            id if id.ends_with("_sort") => Self::self_compare(0, overload),
            id if id.ends_with("_sortByAssociatedKeys") => {
                Self::self_compare(1, overload)
            }
            _ => return None,
        })
    }

    fn self_compare(list: usize, overload: &str) -> Self {
        let text =
            overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
        Self::SelfCompare { list, text }
    }

    /// The cost of a call if it does not depend on its arguments and result.
    #[inline]
    pub(crate) fn flat(self) -> u64 {
        match self {
            Self::Fixed(cost) => cost,
            other => other.cost(&[], None),
        }
    }

    /// The cost of a call; an argument or result that is an error has size 1.
    pub(crate) fn cost(self, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
        let size = |index: usize| args.get(index).map_or(1, Value::cost_size);
        match self {
            Self::Fixed(cost) => cost,
            Self::Traverse(times) => tenths(size(0).saturating_mul(times)),
            Self::Affix => tenths(size(0)),
            Self::Join => tenths(result.map_or(1, Value::cost_size).saturating_mul(2)),
            Self::ListSearch => size(1),
            Self::Compare => match args {
                [left, right, ..] => comparison([left, right]),
                _ => 1,
            },
            Self::Concatenate => tenths(size(0).saturating_add(size(1))),
            Self::Pattern => pattern(size(0), size(1)),
            Self::TextSearch => tenths(size(0)).saturating_mul(tenths(size(1))),
            Self::Items => args.first().map_or(0, traversal),
            Self::Within { cidr, text } => {
                let range = if cidr { tenths(size(0)) + 1 } else { 0 };
                let text = if text { tenths(size(1)) } else { 0 };
                tenths(size(0).saturating_mul(2)) + range + text
            }
            Self::Format => match args.first() {
                Some(Value::Library(format)) => pattern(size(1), format.pattern_size()),
                _ => 1,
            },
            Self::NewList => result.map_or(1, Value::cost_size).saturating_add(1 + LIST),
            Self::Flatten => flatten(size(0), args.get(1)),
            Self::SelfCompare { list, .. } => self_compare(args.get(list), size(list)),
            Self::Product(times) => size(0)
                .saturating_mul(size(1))
                .saturating_mul(times)
                .saturating_add(1),
            Self::Selector => {
                let length = size(1);
                // A requirement takes at least two characters and makes a list and a struct.
                LIST + tenths(length) + length.div_ceil(2).saturating_mul(LIST + 40)
            }
        }
    }
}

/// The cost of comparing two values. Values of the libraries have size 1.
pub(crate) fn comparison([left, right]: [&Value<'_>; 2]) -> u64 {
    match left {
        Value::Library(_) | Value::Abstract(_) => 1,
        _ => tenths(left.cost_size().min(right.cost_size())),
    }
}

/// The factor on the cost of traversing the text when searching it for a constant part.
pub(crate) fn search_times(formula: Formula, part: &str) -> u64 {
    match formula {
        Formula::TextSearch => tenths(part.chars().count() as u64),
        _ => 1,
    }
}

/// The cost of flattening a list of this size by this number of levels, 1 by default.
fn flatten(size: u64, levels: Option<&Value<'_>>) -> u64 {
    let levels = match levels {
        // A negative number of levels is an error that the API server charges nevertheless.
        Some(Value::Int(levels)) => *levels,
        _ => 1,
    };
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    (1 + LIST).saturating_add_signed(size.saturating_mul(levels))
}

/// The cost of comparing the items of a list with each other; text costs slightly more.
fn self_compare(list: Option<&Value<'_>>, size: u64) -> u64 {
    let first = match list {
        Some(Value::List(list)) => list.get(0),
        _ => None,
    };
    let pairs = size.saturating_mul(size);
    let cost = match first {
        Some(Ok(Value::String(_) | Value::Bytes(_))) => scaled(pairs, 2.1),
        _ => pairs.saturating_mul(2),
    };
    cost.saturating_add(1 + LIST)
}

/// A tenth, rounded up: the cost of traversing text of this size.
pub(crate) fn tenths(size: u64) -> u64 {
    if u32::try_from(size).is_ok() {
        size.div_ceil(10)
    } else {
        computed_tenths(size)
    }
}

/// [`tenths`] as the API server computes it, with floats. The result is the same for all sizes
/// of real values; it differs for some sizes that only bounds have.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
fn computed_tenths(size: u64) -> u64 {
    let tenth = size as f64 * 0.1;
    let whole = tenth as u64;
    whole + u64::from((whole as f64) < tenth)
}

/// A size times a factor, rounded down.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "sizes are far below 2^52"
)]
fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor) as u64
}

/// The text's size plus one, so that an expensive pattern has a cost on empty text too.
pub(crate) fn pattern(text: u64, pattern: u64) -> u64 {
    tenths(text.saturating_add(1)).saturating_mul(pattern.div_ceil(4))
}

/// The cost of traversing a value: for text and bytes a tenth of their length, for lists and
/// maps the sum over their contents, for other values 1.
fn traversal(value: &Value<'_>) -> u64 {
    let sum = |costs: &mut dyn Iterator<Item = u64>| costs.fold(0, u64::saturating_add);
    match value {
        Value::String(text) => text.len() as u64 / 10,
        Value::Bytes(bytes) => bytes.len() as u64 / 10,
        Value::List(list) => sum(&mut list
            .iter()
            .map(|item| item.map_or(1, |item| traversal(&item)))),
        Value::Map(map) => {
            let entries = map.entries().unwrap_or_default();
            sum(&mut entries
                .iter()
                .map(|(key, value)| traversal(key) + traversal(value)))
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_computed_with_integers_equal_those_computed_with_floats() {
        let most = u64::from(u32::MAX);
        for size in (0..10_000).chain(most - 10_000..=most) {
            assert_eq!(tenths(size), computed_tenths(size), "{size}");
        }
        for power in 0..32 {
            for size in [1 << power, 10 << power, 70 << power, (10 << power) + 1] {
                assert_eq!(tenths(size), computed_tenths(size), "{size}");
            }
        }
    }
}
