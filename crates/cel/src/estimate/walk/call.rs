//! Calls, and the sizes of what they make.

use super::Walk;
use crate::ast::{Expr, Kind, operator};
use crate::check::Reference;
use crate::cost::{Elements, Formula, Operand};
use crate::estimate::Range;
use crate::estimate::path::Step;
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
        let mut costs = Vec::with_capacity(args.len());
        let mut operands = Vec::with_capacity(args.len() + 1);
        for arg in args {
            costs.push(self.cost(arg));
            operands.push(self.operand(arg));
        }
        match function {
            operator::AND | operator::OR => return self.logical(expr, &costs),
            operator::CONDITIONAL => return self.conditional(expr, args, &costs),
            _ => {}
        }
        let mut cost = costs.into_iter().fold(Range::ZERO, Range::plus);
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
            operands.insert(0, self.operand(target));
        }
        let (name, ids) = match function {
            operator::EQUALS => (function, vec!["equals"]),
            operator::NOT_EQUALS => (function, vec!["not_equals"]),
            operator::OPTIONAL_SELECT => (function, vec!["select_optional_field"]),
            _ => {
                let name = overloads.first().map_or(function, |first| first.function);
                (name, overloads.iter().map(|overload| overload.id).collect())
            }
        };
        let mut own = Range::NOTHING;
        for id in &ids {
            own = own.or(Formula::of(name, Some(id)).estimate(name, &operands));
        }
        self.result_size(expr, (name, &ids), (args, &operands));
        if ids.is_empty() { cost } else { cost.plus(own) }
    }

    /// `&&` and `||` cost at least their first side.
    fn logical(&mut self, expr: &Expr, costs: &[Range]) -> Range {
        self.remember(expr, Some(Range::exactly(1)));
        let all = costs.iter().copied().fold(Range::ZERO, Range::plus);
        Range {
            min: costs.first().map_or(0, |first| first.min),
            max: all.max,
        }
    }

    fn conditional(&mut self, expr: &Expr, args: &[Expr], costs: &[Range]) -> Range {
        let ([_, yes, no], [condition, yes_cost, no_cost]) = (args, costs) else {
            return Range::ZERO;
        };
        let size = self.size_or_unknown(yes).or(self.size_or_unknown(no));
        if let (Some(yes), Some(no)) = (self.entry(yes), self.entry(no)) {
            self.set_entry(expr, yes.or(no));
        }
        self.remember(expr, Some(size));
        condition.plus(yes_cost.or(*no_cost))
    }

    /// Finds the size of what a call of one of the overloads makes.
    fn result_size(
        &mut self,
        expr: &Expr,
        (function, overloads): (&str, &[&str]),
        (args, operands): (&[Expr], &[Operand<'_>]),
    ) {
        let mut size: Option<Range> = None;
        for overload in overloads {
            let made = Formula::result_size(function, overload, operands);
            size = match (size, made) {
                (Some(size), Some(made)) => Some(size.or(made)),
                (size, made) => size.or(made),
            };
            let step = match *overload {
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
                (*overload, args)
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
        // In the API server any type with a parameter has items.
        let item = match ty {
            Type::List(list) => Some(&list.item),
            Type::Map(map) => Some(&map.key),
            Type::Optional(inner) | Type::Type(inner) => Some(&**inner),
            _ => None,
        };
        let elements = item.map(|item| {
            let size = path.look(|steps| {
                if steps.is_empty() {
                    return None;
                }
                let mut steps = steps.to_vec();
                steps.push(Step::Items);
                self.size_at(&steps)
            });
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
