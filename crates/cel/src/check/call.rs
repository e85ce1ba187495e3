//! Which overloads a call may mean.

use super::{Checker, Reference};
use crate::ast::{Expr, Kind, operator};
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
            return self.substitutions.apply(&ty);
        }
        for arg in args {
            self.check(arg);
        }
        let Some(target) = target else {
            return self.resolve(expr, function, None, args);
        };
        if let Some(prefix) = target.qualified_name() {
            let qualified = format!("{prefix}.{function}");
            if self.exists(&qualified) {
                return self.resolve(expr, &qualified, None, args);
            }
        }
        self.check(target);
        self.resolve(expr, function, Some(target), args)
    }

    fn exists(&self, function: &str) -> bool {
        is_built_in(function)
            || library::overloads(function, self.env.dialect())
                .next()
                .is_some()
    }

    fn resolve(
        &mut self,
        expr: &Expr,
        function: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Type {
        if !self.exists(function) {
            self.undeclared(expr.at, function);
            return Type::Error;
        }
        let given: Vec<Type> = target
            .into_iter()
            .chain(args)
            .map(|arg| self.ty(arg))
            .collect();
        match function {
            operator::AND | operator::OR => self.logical(args),
            operator::EQUALS | operator::NOT_EQUALS | operator::CONDITIONAL => {
                self.built_in(expr, function, &given)
            }
            _ => self.overloaded(expr, function, target.is_some(), &given),
        }
    }

    fn logical(&mut self, args: &[Expr]) -> Type {
        for arg in args {
            let ty = self.ty(arg);
            if !self.substitutions.assignable(&ty, &Type::Bool) {
                self.mismatch(arg.at, &Type::Bool, &ty);
            }
        }
        Type::Bool
    }

    /// The functions that take any type and that the evaluator answers itself.
    fn built_in(&mut self, expr: &Expr, function: &str, given: &[Type]) -> Type {
        let of_any = self.substitutions.fresh();
        let (wanted, result) = match function {
            operator::CONDITIONAL => {
                (vec![Type::Bool, of_any.clone(), of_any.clone()], of_any)
            }
            _ => (vec![of_any.clone(), of_any], Type::Bool),
        };
        if self.substitutions.all_assignable(given, &wanted) {
            return self.substitutions.apply(&result);
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
        let mut found: Option<Type> = None;
        let mut overloads = Vec::new();
        for overload in library::overloads(function, self.env.dialect()) {
            if overload.member != receiver || overload.params.len() != given.len() {
                continue;
            }
            let (params, result) = self
                .substitutions
                .instantiate(&overload.params, &overload.result);
            if !self.substitutions.all_assignable(given, &params) {
                continue;
            }
            overloads.push(overload);
            let result = self.substitutions.apply(&result);
            found = Some(match found {
                None => result,
                Some(before) if before == result => before,
                Some(_) => Type::Dyn,
            });
        }
        match found {
            Some(ty) => {
                self.references.insert(
                    expr.id,
                    Reference::Call {
                        overloads,
                        receiver,
                    },
                );
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

/// Whether the evaluator itself answers the function.
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
