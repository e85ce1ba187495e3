//! Sizes and comparisons.

use std::cmp::Ordering;

use super::boolean::BoolResult;
use super::{Outcome, Run, split_error};
use crate::Value;
use crate::library::standard::length;
use crate::plan::{Call, Node, Strategy};
use crate::value::characters;

impl<'v> Run<'_, 'v> {
    /// `x.size()`
    #[inline(never)]
    pub(super) fn size(&mut self, call: &'v Call, of: &'v Node) -> Outcome<'v> {
        let (of_text, of_many) = match call.strategy {
            Strategy::Size { of_text, of_many } => (of_text, of_many),
            _ => (false, false),
        };
        if of_text && let Some(text) = self.borrowed_text(of)? {
            self.budget.charge(1)?;
            return Ok(length(characters(text)));
        }
        let (value, ready) = split_error(self.attempt(of)?);
        let size = match &value {
            Value::String(text) if of_text => characters(text),
            Value::List(list) if of_many => list.len(),
            Value::Map(map) if of_many => map.len(),
            _ => return self.finish(call, &[value], ready),
        };
        self.budget.charge(1)?;
        Ok(length(size))
    }

    /// `x < y` and the like.
    #[inline(never)]
    pub(super) fn ordered(&mut self, call: &'v Call, sides: &'v [Node; 2]) -> BoolResult {
        let answer = self.compare_order(call, sides);
        self.bool_of(answer)
    }

    fn compare_order(
        &mut self,
        call: &'v Call,
        [left, right]: &'v [Node; 2],
    ) -> Outcome<'v> {
        let left = self.attempt(left)?;
        if call.in_order && left.is_err() {
            return left;
        }
        let right = match right {
            Node::Const(value) => Ok(value.borrowed()),
            right => self.attempt(right)?,
        };
        if let Some(answer) = order_of_simple(&call.strategy, &left, &right) {
            self.budget.charge(1)?;
            return Ok(Value::Bool(answer));
        }
        let ((left, left_ready), (right, right_ready)) =
            (split_error(left), split_error(right));
        self.finish(call, &[left, right], left_ready.and(right_ready))
    }
}

/// The result for two integers or durations.
fn order_of_simple(
    strategy: &Strategy,
    left: &Outcome<'_>,
    right: &Outcome<'_>,
) -> Option<bool> {
    let Strategy::Order {
        wanted,
        of_ints,
        of_spans,
    } = strategy
    else {
        return None;
    };
    let order: Ordering = match (left, right) {
        (Ok(Value::Int(left)), Ok(Value::Int(right))) if *of_ints => left.cmp(right),
        (Ok(Value::Duration(left)), Ok(Value::Duration(right))) if *of_spans => {
            left.cmp(right)
        }
        _ => return None,
    };
    Some(wanted(order))
}
