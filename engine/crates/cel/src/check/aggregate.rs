//! The types of lists, maps and comprehensions.

use std::sync::Arc;

use super::Checker;
use crate::Type;
use crate::ast::{Entry, Expr, Fold, Item};
use crate::unify::more_general;

/// The maximum number of parts of a key's type, nested types counted.
const MAX_KEY_LENGTH: usize = 16;

impl Checker<'_> {
    /// The joined type of both. Whether they agree is checked later, because `format` is
    /// exempt.
    fn join(&mut self, before: Option<Type>, next: Type) -> Type {
        let Some(before) = before else { return next };
        if self.substitutions.assignable(&before, &next) {
            return more_general(&before, &next);
        }
        Type::Dyn
    }

    /// The type inside the optional value that `?` requires.
    pub(super) fn unwrapped(&mut self, value: &Expr, optional: bool) -> Type {
        let ty = self.ty(value);
        match ty {
            Type::Optional(inner) if optional => (*inner).clone(),
            ty if ty.is_dynamic() => ty,
            ty if optional => {
                self.mismatch(value.at, &Type::optional(ty.clone()), &ty);
                ty
            }
            ty => ty,
        }
    }

    pub(super) fn list(&mut self, items: &[Item]) -> Type {
        let mut joined = None;
        for item in items {
            self.check(&item.value);
            let ty = self.unwrapped(&item.value, item.optional);
            joined = Some(self.join(joined, ty));
        }
        Type::list(joined.unwrap_or_else(|| self.substitutions.fresh()))
    }

    pub(super) fn map(&mut self, entries: &[Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(&entry.key);
            let key = self.key(&entry.key);
            keys = Some(self.join(keys, key));
            self.check(&entry.value);
            let value = self.unwrapped(&entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        let key = keys.unwrap_or_else(|| self.substitutions.fresh());
        Type::map_of(key, values.unwrap_or_else(|| self.substitutions.fresh()))
    }

    /// The type of a key. A type with too many parts is rejected, so that types grow linearly
    /// and cannot double in size with each nesting.
    fn key(&mut self, key: &Expr) -> Type {
        let ty = self.substitutions.applied(self.ty(key));
        if !ty.has_at_most(MAX_KEY_LENGTH) {
            self.report(key.at, format!("unsupported key type: {ty}"));
            return Type::Error;
        }
        ty
    }

    pub(super) fn fold(&mut self, fold: &Fold) -> Type {
        self.check(&fold.range);
        self.check(&fold.init);
        let range = self.substitutions.applied(self.ty(&fold.range));
        let accu = self.ty(&fold.init);
        let two = fold.var2.is_some();
        let (first, second) = match &range {
            Type::List(list) if two => (Type::Int, list.item.clone()),
            Type::List(list) => (list.item.clone(), Type::Error),
            Type::Map(map) => (map.key.clone(), map.value.clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.substitutions.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension \
                     (must be list, map, or dynamic)"
                );
                self.report(fold.range.at, text);
                (Type::Error, Type::Error)
            }
        };
        let outer = self.scopes.len();
        self.scopes.push((Arc::clone(&fold.accu), accu.clone()));
        self.scopes.push((Arc::clone(&fold.var), first));
        if let Some(var2) = &fold.var2 {
            self.scopes.push((Arc::clone(var2), second));
        }
        self.check(&fold.condition);
        self.assert(&fold.condition, &Type::Bool);
        self.check(&fold.step);
        self.assert(&fold.step, &accu);
        self.scopes.truncate(outer + 1);
        self.check(&fold.result);
        self.scopes.truncate(outer);
        self.substitutions.applied(self.ty(&fold.result))
    }

    fn assert(&mut self, expr: &Expr, wanted: &Type) {
        let found = self.ty(expr);
        if !self.substitutions.assignable(wanted, &found) {
            self.mismatch(expr.at, wanted, &found);
        }
    }
}
