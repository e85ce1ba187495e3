//! Resolves the overloads of a call.

use std::mem;

use super::{Checker, Reference};
use crate::ast::{Expr, Kind, operator};
use crate::library::Overloads;
use crate::{Type, Value, library};

impl Checker<'_> {
    pub(super) fn call(
        &mut self,
        expr: &Expr,
        target: Option<&Expr>,
        function: &str,
        args: &[Expr],
    ) -> Type {
        if let (operator::OPTIONAL_SELECT, [operand, field]) = (function, args) {
            let Kind::Literal(Value::String(field)) = &field.kind else {
                return Type::Error;
            };
            let ty = self.field(expr.at, operand, field, true);
            return self.substitutions.applied(ty);
        }
        for arg in args {
            self.check(arg);
        }
        let Some(target) = target else {
            return self.resolve(expr, function, None, args);
        };
        if target.first_name().is_some_and(library::is_namespace)
            && let Some(prefix) = target.qualified_name()
        {
            let qualified = format!("{prefix}.{function}");
            if self.exists(&qualified) {
                return self.resolve(expr, &qualified, None, args);
            }
        }
        self.check(target);
        self.resolve(expr, function, Some(target), args)
    }

    fn exists(&self, function: &str) -> bool {
        is_built_in(function) || library::overloads(function, self.env).next().is_some()
    }

    fn resolve(
        &mut self,
        expr: &Expr,
        function: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Type {
        match function {
            operator::AND | operator::OR => self.logical(args),
            _ => {
                let mut given = mem::take(&mut self.given);
                let operands = target.into_iter().chain(args);
                given.extend(operands.map(|operand| self.ty(operand)));
                let ty = match function {
                    operator::EQUALS | operator::NOT_EQUALS => {
                        self.equality(expr, function, &given)
                    }
                    operator::CONDITIONAL => self.conditional(expr, function, &given),
                    _ => self.overloaded(expr, function, target.is_some(), &given),
                };
                given.clear();
                self.given = given;
                ty
            }
        }
    }

    fn equality(&mut self, expr: &Expr, function: &str, given: &[Type]) -> Type {
        if let [left, right] = given
            && self.substitutions.common(left, right).is_some()
        {
            return Type::Bool;
        }
        self.no_overload(expr, function, given, false)
    }

    fn logical(&mut self, args: &[Expr]) -> Type {
        for arg in args {
            let ty = self.ty(arg);
            if ty != Type::Bool && !self.substitutions.assignable(&ty, &Type::Bool) {
                self.mismatch(arg.at, &Type::Bool, &ty);
            }
        }
        Type::Bool
    }

    fn conditional(&mut self, expr: &Expr, function: &str, given: &[Type]) -> Type {
        if let [Type::Bool, yes, no] = given {
            let common = self.substitutions.common(yes, no);
            return common
                .unwrap_or_else(|| self.no_overload(expr, function, given, false));
        }
        let of_any = self.substitutions.fresh();
        let wanted = [Type::Bool, of_any.clone(), of_any.clone()];
        if self.substitutions.all_assignable(given, &wanted) {
            return self.substitutions.apply(&of_any);
        }
        self.no_overload(expr, function, given, false)
    }

    fn overloaded(
        &mut self,
        expr: &Expr,
        function: &str,
        receiver: bool,
        given: &[Type],
    ) -> Type {
        let mut known = library::overloads(function, self.env).peekable();
        if known.peek().is_none() {
            self.undeclared(expr, function);
            return Type::Error;
        }
        let mut found: Option<Type> = None;
        let mut overloads = Overloads::default();
        for overload in known {
            if overload.member != receiver || overload.params.len() != given.len() {
                continue;
            }
            let Some(result) = self.substitutions.called(overload, given) else {
                continue;
            };
            overloads.push(overload);
            found = Some(match found {
                None => result,
                Some(before) if before == result => before,
                Some(_) => Type::Dyn,
            });
        }
        match found {
            Some(ty) => {
                let reference = Reference::Call {
                    overloads,
                    receiver,
                };
                self.references.insert(expr.id, reference);
                ty
            }
            None => self.no_overload(expr, function, given, receiver),
        }
    }

    fn no_overload(
        &mut self,
        expr: &Expr,
        function: &str,
        given: &[Type],
        receiver: bool,
    ) -> Type {
        let mut given: Vec<String> = given
            .iter()
            .map(|ty| self.substitutions.finish(ty).to_string())
            .collect();
        let target = if receiver && !given.is_empty() {
            format!("{}.", given.remove(0))
        } else {
            String::new()
        };
        let signature = format!("{target}({})", given.join(", "));
        self.report(
            expr.at,
            format!(
                "found no matching overload for '{function}' applied to '{signature}'"
            ),
        );
        Type::Error
    }
}

/// Whether the evaluator implements the function itself.
fn is_built_in(function: &str) -> bool {
    matches!(
        function,
        operator::AND
            | operator::OR
            | operator::EQUALS
            | operator::NOT_EQUALS
            | operator::CONDITIONAL
    )
}
