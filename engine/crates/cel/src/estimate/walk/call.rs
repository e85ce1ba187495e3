//! The cost of calls and the sizes of their results.

use std::mem;

use super::Walk;
use crate::ast::{Expr, Kind, operator};
use crate::check::Reference;
use crate::cost::{Elements, Formula, Operand};
use crate::estimate::Range;
use crate::estimate::path::Step;
use crate::library::Overload;
use crate::{Type, Value};

impl<'t> Walk<'t> {
    pub(super) fn call(
        &mut self,
        expr: &'t Expr,
        target: Option<&'t Expr>,
        function: &'t str,
        args: &'t [Expr],
    ) -> Range {
        if let ("dyn", None, [arg]) = (function, target, args) {
            let cost = self.cost(arg).plus(Range::exactly(1));
            self.copy_sizes(expr, arg);
            return cost;
        }
        match function {
            operator::AND | operator::OR => return self.logical(expr, args),
            operator::CONDITIONAL => return self.conditional(expr, args),
            _ => {}
        }
        let outer = self.operands.len();
        let mut cost = Range::ZERO;
        for arg in args {
            cost = cost.plus(self.cost(arg));
            let operand = self.operand(arg);
            self.operands.push(operand);
        }
        let reference = self.tree.references.get(expr.id);
        let (overloads, receiver) = match reference {
            Some(Reference::Call {
                overloads,
                receiver,
            }) => (&**overloads, *receiver),
            _ => (&[][..], false),
        };
        if let Some(target) = target.filter(|_| receiver) {
            cost = cost.plus(self.cost(target));
            let operand = self.operand(target);
            self.operands.insert(outer, operand);
        }
        let mut all = mem::take(&mut self.operands);
        let operands = all.get(outer..).unwrap_or_default();
        let own = self.own_cost(expr, (function, overloads), (args, operands));
        all.truncate(outer);
        self.operands = all;
        own.map_or(cost, |own| cost.plus(own))
    }

    /// The cost of a call without its operands; `None` if the function cannot be resolved.
    fn own_cost(
        &mut self,
        expr: &Expr,
        (function, overloads): (&str, &[&'static Overload]),
        (args, operands): (&[Expr], &[Operand<'_>]),
    ) -> Option<Range> {
        let built_in = match function {
            operator::EQUALS => Some("equals"),
            operator::NOT_EQUALS => Some("not_equals"),
            operator::OPTIONAL_SELECT => Some("select_optional_field"),
            _ => None,
        };
        let (name, overloads) = match (built_in, overloads.first()) {
            (None, Some(first)) => (first.function, overloads),
            _ => (function, &[][..]),
        };
        let ids = built_in.into_iter();
        let ids = ids.chain(overloads.iter().map(|overload| overload.id));
        let estimates = ids
            .clone()
            .map(|id| Formula::of(name, Some(id)).estimate(name, operands));
        let own = estimates.reduce(Range::or);
        self.result_size(expr, (name, ids), (args, operands));
        own
    }

    /// The cost of an operand; records its size too.
    fn cost_and_size(&mut self, arg: &'t Expr) -> Range {
        let cost = self.cost(arg);
        self.size(arg);
        cost
    }

    /// The minimum cost of `&&` and `||` is that of their first operand.
    fn logical(&mut self, expr: &Expr, args: &'t [Expr]) -> Range {
        let (mut first, mut all) = (None, Range::ZERO);
        for arg in args {
            let cost = self.cost_and_size(arg);
            first = first.or(Some(cost));
            all = all.plus(cost);
        }
        self.remember(expr, Some(Range::exactly(1)));
        Range {
            min: first.map_or(0, |first| first.min),
            max: all.max,
        }
    }

    fn conditional(&mut self, expr: &Expr, args: &'t [Expr]) -> Range {
        let [condition, yes, no] = args else {
            return Range::ZERO;
        };
        let [condition, yes_cost, no_cost] =
            [condition, yes, no].map(|arg| self.cost_and_size(arg));
        let size = self.size_or_unknown(yes).or(self.size_or_unknown(no));
        if let (Some(yes), Some(no)) = (self.entry(yes), self.entry(no)) {
            self.set_entry(expr, yes.or(no));
        }
        self.remember(expr, Some(size));
        condition.plus(yes_cost.or(no_cost))
    }

    /// Determines the size of the result of a call of one of the overloads.
    fn result_size(
        &mut self,
        expr: &Expr,
        (function, overloads): (&str, impl Iterator<Item = &'static str>),
        (args, operands): (&[Expr], &[Operand<'_>]),
    ) {
        let mut size: Option<Range> = None;
        for overload in overloads {
            let created = Formula::result_size(function, overload, operands);
            size = match (size, created) {
                (Some(size), Some(created)) => Some(size.or(created)),
                (size, created) => size.or(created),
            };
            let step = match overload {
                "index_list" => Some(Step::Items),
                "index_map" => Some(Step::Values),
                _ => None,
            };
            if let (Some(step), [from, ..]) = (step, args) {
                size = self.entry(from).map(|entry| entry.value);
                let path = self.path(from).then(step);
                self.set_path(expr, path);
            }
            if let ("add_string" | "add_bytes" | "add_list", [left, right]) =
                (overload, args)
                && let (Some(left), Some(right)) = (self.entry(left), self.entry(right))
            {
                self.set_entry(expr, left.or(right));
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        self.remember(expr, size);
    }

    fn operand(&mut self, expr: &'t Expr) -> Operand<'t> {
        let path = self.path(expr);
        let size = self.size(expr);
        let ty = self.ty(expr);
        // In the API server any type with a type parameter has elements.
        let item = match ty {
            Type::List(list) => Some(&list.item),
            Type::Map(map) => Some(&map.key),
            Type::Optional(inner) | Type::Type(inner) => Some(&**inner),
            _ => None,
        };
        let elements = item.map(|item| {
            let size = path.with_steps(|steps| self.size_at(steps, Some(&Step::Items)));
            Elements {
                are_text: matches!(item, Type::String | Type::Bytes),
                size: size.unwrap_or(Range::UNKNOWN),
            }
        });
        Operand {
            size,
            ty,
            elements,
            literal: literal(expr),
        }
    }
}

fn literal(expr: &Expr) -> Option<&Value<'static>> {
    match &expr.kind {
        Kind::Literal(value) => Some(value),
        _ => None,
    }
}
