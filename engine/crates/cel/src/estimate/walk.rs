//! Adds up an expression's cost, and the sizes of its intermediate values.

mod call;
mod fold;

use std::sync::Arc;

use super::path::{Path, Step};
use super::{Bounds, Range};
use crate::ast::{Expr, Kind};
use crate::check::{Reference, Tree};
use crate::cost::Operand;
use crate::{Type, cost};

use fold::is_binding;

/// The cost of one run of `tree`.
pub(super) fn cost(tree: &Tree, bounds: &Bounds) -> Range {
    let mut walk = Walk {
        tree,
        bounds,
        known: Vec::new(),
        locals: Vec::new(),
        operands: Vec::new(),
    };
    walk.known.resize_with(tree.types.len(), ExprFacts::default);
    walk.cost(&tree.root)
}

struct Walk<'t> {
    tree: &'t Tree,
    bounds: &'t Bounds,
    /// The path and sizes of expressions, by id.
    known: Vec<ExprFacts>,
    /// Iteration and accumulator variables, innermost scope last.
    locals: Vec<Local>,
    /// The operands of the calls being estimated, the innermost call's last.
    operands: Vec<Operand<'t>>,
}

/// The path and sizes of an expression.
#[derive(Default)]
struct ExprFacts {
    path: Path,
    size: Option<Range>,
    entry: Option<Entry>,
}

struct Local {
    name: Arc<str>,
    path: Path,
    size: Option<Range>,
    entry: Option<Entry>,
}

/// The sizes of the keys and values of a list or map that the expression itself creates.
#[derive(Clone, Copy)]
struct Entry {
    is_list: bool,
    key: Range,
    value: Range,
}

impl Entry {
    fn or(self, other: Self) -> Self {
        Self {
            is_list: self.is_list,
            key: self.key.or(other.key),
            value: self.value.or(other.value),
        }
    }
}

impl<'t> Walk<'t> {
    fn cost(&mut self, expr: &'t Expr) -> Range {
        match &expr.kind {
            Kind::Literal(_) => Range::ZERO,
            Kind::Struct { fields, .. } => {
                let (cost, _) = self.all(fields.iter().map(|field| &field.value));
                cost.plus(Range::exactly(cost::STRUCT))
            }
            Kind::Ident(name) => self.name(expr, name),
            Kind::Select {
                operand,
                field,
                test,
            } => self.select(expr, (operand, field), *test),
            Kind::Call {
                target,
                function,
                args,
            } => self.call(expr, target.as_deref(), function, args),
            Kind::List(items) => {
                let values = items.iter().map(|item| &item.value);
                let (cost, value) = self.all(values);
                let (is_list, key) = (true, Range::exactly(1));
                let entry = Entry {
                    is_list,
                    key,
                    value,
                };
                self.set_entry(expr, entry);
                cost.plus(Range::exactly(cost::LIST))
            }
            Kind::Map(entries) => {
                let (key_cost, key) = self.all(entries.iter().map(|entry| &entry.key));
                let (cost, value) = self.all(entries.iter().map(|entry| &entry.value));
                let is_list = false;
                let entry = Entry {
                    is_list,
                    key,
                    value,
                };
                self.set_entry(expr, entry);
                key_cost.plus(cost).plus(Range::exactly(cost::MAP))
            }
            Kind::Fold(fold) if is_binding(fold) => self.binding(expr, fold),
            Kind::Fold(fold) => self.fold(expr, fold),
        }
    }

    /// The cost of all parts of a literal, and the range of their sizes.
    fn all(&mut self, parts: impl Iterator<Item = &'t Expr>) -> (Range, Range) {
        let (mut cost, mut size) = (Range::ZERO, None);
        for part in parts {
            cost = cost.plus(self.cost(part));
            let one = self.size_or_unknown(part);
            size = Some(size.map_or(one, |size: Range| size.or(one)));
        }
        (cost, size.unwrap_or(Range::ZERO))
    }

    // --- names

    fn name(&mut self, expr: &Expr, name: &Arc<str>) -> Range {
        let path = match self.local(name) {
            Some(local) => local.path.clone(),
            None => Path::of(name),
        };
        self.set_path(expr, path);
        Range::exactly(cost::SELECT)
    }

    fn select(
        &mut self,
        expr: &'t Expr,
        (operand, field): (&'t Expr, &Arc<str>),
        test: bool,
    ) -> Range {
        if let Some(Reference::Variable(_) | Reference::Type(_)) =
            self.tree.references.get(expr.id)
        {
            let name = expr.qualified_name().unwrap_or_default();
            self.set_path(expr, Path::of(&Arc::from(name)));
            return Range::exactly(cost::SELECT);
        }
        let cost = self.cost(operand);
        // The test of `has()` has no cost.
        if test {
            return cost;
        }
        let path = self.path(operand).then(Step::Name(Arc::clone(field)));
        self.set_path(expr, path);
        match self.ty(operand) {
            Type::Map(_) | Type::Object(_) => cost.plus(Range::exactly(cost::SELECT)),
            _ => cost,
        }
    }

    // --- paths and sizes

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| *local.name == *name)
    }

    fn local_of(&self, expr: &Expr) -> Option<&Local> {
        match &expr.kind {
            Kind::Ident(name) => self.local(name),
            _ => None,
        }
    }

    fn ty(&self, expr: &Expr) -> &'t Type {
        self.tree.types.get(expr.id).unwrap_or(&Type::Dyn)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Some(local) = self.local_of(expr) {
            return local.path.clone();
        }
        self.known
            .get(expr.id)
            .map_or_else(Path::default, |known| known.path.clone())
    }

    fn entry(&self, expr: &Expr) -> Option<Entry> {
        let known = self.known.get(expr.id).and_then(|known| known.entry);
        known.or_else(|| self.local_of(expr)?.entry)
    }

    /// The size of the value at `path`, followed by `below`.
    fn size_at(&self, path: &[Step], below: Option<&Step>) -> Option<Range> {
        // The path's variable does not matter: all variables have one schema.
        let (_, path) = path.split_first()?;
        let path = path.iter().chain(below);
        self.bounds.size_at(path).map(Range::up_to)
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(size) = self.known.get(expr.id).and_then(|known| known.size) {
            return Some(size);
        }
        if let Some(size) = written_size(expr) {
            return Some(Range::exactly(size));
        }
        if let Some(size) = self
            .path(expr)
            .with_steps(|steps| self.size_at(steps, None))
        {
            self.remember(expr, Some(size));
            return Some(size);
        }
        if is_scalar(self.ty(expr)) {
            return Some(Range::exactly(1));
        }
        self.local_of(expr)?.size
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn remember(&mut self, expr: &Expr, size: Option<Range>) {
        if let Some(known) = self.known.get_mut(expr.id) {
            known.size = size.or(known.size);
        }
    }

    fn set_path(&mut self, expr: &Expr, path: Path) {
        if let Some(known) = self.known.get_mut(expr.id) {
            known.path = path;
        }
    }

    fn set_entry(&mut self, expr: &Expr, entry: Entry) {
        if let Some(known) = self.known.get_mut(expr.id) {
            known.entry = Some(entry);
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let size = self.size(from);
        self.remember(to, size);
        if let Some(entry) = self.entry(from) {
            self.set_entry(to, entry);
        }
    }
}

/// The size of a literal in the source.
fn written_size(expr: &Expr) -> Option<u64> {
    match &expr.kind {
        Kind::Literal(value) => Some(value.cost_size()),
        Kind::List(items) => Some(items.len() as u64),
        Kind::Map(entries) => Some(entries.len() as u64),
        _ => None,
    }
}

/// Whether all values of the type have the same size.
fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Timestamp
        | Type::Date
        | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
