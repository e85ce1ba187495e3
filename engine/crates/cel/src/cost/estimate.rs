//! Estimates the cost of a call and the size of its result from the bounds of its operands.

use super::{Formula, LIST};
use crate::ast::operator;
use crate::estimate::range::Range;
use crate::{Type, Value};

/// The bounds of an operand; a method's receiver is the first operand.
pub(crate) struct Operand<'t> {
    pub(crate) size: Option<Range>,
    pub(crate) ty: &'t Type,
    /// The bounds of a list's elements.
    pub(crate) elements: Option<Elements>,
    pub(crate) literal: Option<&'t Value<'static>>,
}

/// The bounds of a list's elements.
#[derive(Clone, Copy)]
pub(crate) struct Elements {
    /// Whether the elements are text or bytes.
    pub(crate) are_text: bool,
    pub(crate) size: Range,
}

/// Addresses and CIDRs are 4 to 16 bytes.
const ADDRESS: Range = Range { min: 4, max: 16 };
/// The assumed size of any named format's pattern, divided by four.
const FORMAT_PATTERN: f64 = 32.0;
/// The maximum length of a format, in characters.
const FORMAT: u64 = 64;

fn size(operands: &[Operand<'_>], at: usize) -> Range {
    let known = operands.get(at).and_then(|operand| operand.size);
    known.unwrap_or(Range::UNKNOWN)
}

/// A non-negative integer literal.
fn number(operands: &[Operand<'_>], at: usize) -> Option<u64> {
    match operands.get(at)?.literal? {
        Value::Int(value) => Some(u64::try_from(*value).unwrap_or(0)),
        _ => None,
    }
}

impl Formula {
    /// The estimated cost of a call without its operands.
    pub(crate) fn estimate(self, function: &str, operands: &[Operand<'_>]) -> Range {
        let size = |at: usize| size(operands, at);
        match self {
            Self::Fixed(cost) => Range::exactly(cost),
            Self::Traverse(1) => size(0).tenths(),
            Self::Traverse(_) => size(0).scaled(0.2),
            Self::Affix => size(1).tenths(),
            Self::Join => joined(operands).tenths(),
            Self::ListSearch => size(1).scaled(1.0),
            Self::Compare => compare(function, operands),
            Self::Concatenate => size(0).plus(size(1)).tenths(),
            Self::Pattern => {
                let text = size(0).plus(Range::exactly(1)).tenths();
                text.times(size(1).scaled(0.25))
            }
            Self::TextSearch => size(0).tenths().times(size(1).tenths()),
            Self::Items => items(operands),
            Self::Within { cidr, text } => {
                let mut cost = ADDRESS.plus(ADDRESS).tenths();
                if cidr {
                    cost = cost.plus(ADDRESS.tenths()).plus(Range::exactly(1));
                }
                if text {
                    cost = cost.plus(size(1).tenths());
                }
                cost
            }
            Self::Format => size(1).tenths().scaled(FORMAT_PATTERN),
            Self::NewList | Self::Flatten | Self::SelfCompare { .. } => {
                let factor = self.list_factor(operands);
                let created_size = self.created_size(function, operands).scaled(factor);
                created_size.plus(Range::exactly(1 + LIST))
            }
            Self::Product(times) => {
                let pairs = size(0).times(size(1));
                let cost = if times == 1 {
                    pairs.scaled(1.0)
                } else {
                    pairs.scaled(2.0)
                };
                cost.plus(Range::exactly(1))
            }
            Self::Selector => {
                // A requirement takes at least two characters and makes a list and a struct.
                let requirements = size(1).scaled(0.5).scaled(50.0);
                Range::exactly(LIST)
                    .plus(size(1).tenths())
                    .plus(requirements)
            }
        }
    }

    /// The size of a call's result, if the function determines it.
    pub(crate) fn result_size(
        function: &str,
        overload: &str,
        operands: &[Operand<'_>],
    ) -> Option<Range> {
        let first = size(operands, 0);
        let formula = Self::of(function, Some(overload));
        match formula {
            Self::NewList | Self::Flatten | Self::SelfCompare { .. } => {
                return Some(formula.created_size(function, operands));
            }
            _ => {}
        }
        Some(match (function, overload) {
            (
                "url"
                | "lowerAscii"
                | "upperAscii"
                | "substring"
                | "trim"
                | "jsonpatch.escapeKey",
                _,
            ) => first,
            ("replace", _) => replaced(operands),
            ("split", _) => {
                Range::up_to(match operands.get(2).and_then(|it| it.literal) {
                    // The API server converts a negative limit to a huge unsigned number.
                    Some(Value::Int(most)) => most.cast_unsigned(),
                    _ => first.max,
                })
            }
            ("join", _) => joined(operands),
            ("find" | "findAll", _) => Range::up_to(first.max),
            // These overflow in the API server.
            (_, "string_to_bytes") => Range {
                min: first.min,
                max: first.max.wrapping_mul(4),
            },
            (_, "bytes_to_string") => Range {
                min: first.min / 4,
                max: first.max,
            },
            (_, "strings_quote") => Range {
                min: first.min.wrapping_add(2),
                max: first.max.wrapping_mul(2).wrapping_add(2),
            },
            (_, "add_string" | "add_bytes" | "add_list") => first.plus(size(operands, 1)),
            _ => return None,
        })
    }

    /// The size of the list that a call creates, as its cost estimate computes it.
    fn created_size(self, function: &str, operands: &[Operand<'_>]) -> Range {
        let whole = size(operands, 0);
        match self {
            Self::SelfCompare { list, .. } => {
                let list = size(operands, list);
                list.times(list)
            }
            Self::NewList if function == "lists.range" => {
                Range::exactly(number(operands, 0).unwrap_or(u64::MAX))
            }
            Self::NewList if function == "slice" => {
                let start = number(operands, 1).unwrap_or(0);
                let end = number(operands, 2).unwrap_or(whole.max);
                // This overflows in the API server.
                Range::exactly(end.wrapping_sub(start))
            }
            _ => whole,
        }
    }

    /// The cost of each item of that list.
    #[expect(clippy::cast_precision_loss, reason = "the API server loses it too")]
    fn list_factor(self, operands: &[Operand<'_>]) -> f64 {
        match self {
            Self::Flatten if operands.len() > 1 => {
                number(operands, 1).unwrap_or(u64::MAX) as f64
            }
            Self::SelfCompare { text: true, .. } => 2.1,
            Self::SelfCompare { .. } => 2.0,
            _ => 1.0,
        }
    }
}

/// The cost of functions that read every item of a list, or text.
fn items(operands: &[Operand<'_>]) -> Range {
    let whole = size(operands, 0);
    match operands.first().and_then(|list| list.elements) {
        None => whole.tenths(),
        Some(elements) => {
            let mut each = Range::exactly(1);
            if elements.are_text {
                each = each.plus(elements.size.tenths());
            }
            whole.times(each)
        }
    }
}

/// The size of the text that a list is joined to with a separator.
fn joined(operands: &[Operand<'_>]) -> Range {
    let list = size(operands, 0);
    let elements = operands.first().and_then(|list| list.elements);
    let text = elements.map_or(Range::ZERO, |elements| list.times(elements.size));
    if operands.len() < 2 {
        return text;
    }
    let separators = Range {
        min: list.min.saturating_sub(1),
        max: list.max.saturating_sub(1),
    };
    text.plus(size(operands, 1).times(separators))
}

/// The size of text after replacement of one text by another.
fn replaced(operands: &[Operand<'_>]) -> Range {
    let (text, old, new) = (size(operands, 0), size(operands, 1), size(operands, 2));
    // How often the text is replaced, and how much of the original text remains.
    let (longest, kept_of_longest) = if old.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if new.max <= old.min {
        (0, text.max)
    } else {
        (quotient(text.max, old.min), 0)
    };
    let (shortest, kept_of_shortest) = if old.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if old.max <= new.min {
        (0, text.min)
    } else {
        (quotient(text.min, old.max), 0)
    };
    let times = Range {
        min: shortest,
        max: longest,
    };
    let kept = Range {
        min: kept_of_shortest,
        max: kept_of_longest,
    };
    times.times(new).plus(kept)
}

/// A quotient rounded up, in floats, as the API server computes it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the API server loses the same digits, and the cast saturates"
)]
fn quotient(text: u64, part: u64) -> u64 {
    (text as f64 / part as f64).ceil() as u64
}

/// The cost of comparing two values: traversal up to the end of the smaller one.
fn compare(function: &str, operands: &[Operand<'_>]) -> Range {
    if let (operator::EQUALS, [left, right]) = (function, operands)
        && left.ty == right.ty
        && let Type::Abstract(name) = left.ty
    {
        let most = match &**name {
            "kubernetes.NamedFormat" => FORMAT,
            "kubernetes.URL" => right.size.map_or(1, |size| size.max),
            _ => return Range::exactly(1),
        };
        return Range { min: 1, max: most }.tenths();
    }
    let max = size(operands, 0).max.min(size(operands, 1).max);
    let min = u64::from(max > 0);
    Range { min, max }.tenths()
}
