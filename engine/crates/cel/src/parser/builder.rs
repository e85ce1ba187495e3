//! Creates the nodes of a tree, within limits.

use std::sync::Arc;

use crate::ast::{Expr, Fold, Function, Item, Kind};
use crate::error::CompileError;
use crate::{Dialect, Value};

/// The maximum nesting of expressions, as in the API server: in brackets, as arguments, or as
/// right operands of comparisons or of arithmetic.
pub(super) const MAX_NESTING: usize = 250;
/// The maximum height of a tree, so that code that walks it does not overflow the stack: 1 MiB
/// is enough if the crate is optimised, which the workspace ensures in every profile. The API
/// server has the same limit, but does not count the expansions of macros.
const MAX_HEIGHT: usize = 251;
/// The maximum number of nodes. A source of legal size reaches it only with nested macros that
/// copy.
const MAX_NODES: usize = 200_000;

/// Converts an offset to line and column.
pub(crate) fn located(source: &str, at: usize, message: String) -> CompileError {
    let (mut line, mut column) = (1, 1);
    for char in source.chars().take(at) {
        if char == '\n' {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    CompileError {
        line,
        column,
        message,
    }
}

/// A syntax error at an offset.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

pub(crate) type Parse<T> = Result<T, SyntaxError>;

/// Creates nodes; shared with the macros.
pub(crate) struct Builder {
    pub(crate) dialect: Dialect,
    /// Whether `cel.bind` is a macro.
    pub(crate) has_bindings: bool,
    ids: usize,
    rooted: Vec<usize>,
}

impl Builder {
    pub(super) fn new(dialect: Dialect, has_bindings: bool) -> Self {
        Self {
            dialect,
            has_bindings,
            ids: 0,
            rooted: Vec::new(),
        }
    }

    /// Records that the name follows a leading dot.
    pub(super) fn root(&mut self, named: &Expr) {
        self.rooted.push(named.id);
    }

    /// Whether the name follows a leading dot.
    pub(crate) fn is_rooted(&self, named: &Expr) -> bool {
        self.rooted.contains(&named.id)
    }

    /// The nodes whose names follow a leading dot.
    pub(super) fn rooted(self) -> Vec<usize> {
        self.rooted
    }

    /// The number of nodes created.
    pub(super) fn ids(&self) -> usize {
        self.ids
    }

    /// A node at an offset.
    pub(crate) fn node(&mut self, at: usize, kind: Kind) -> Parse<Expr> {
        let (depth, size) = kind.extent_below();
        let (depth, size) = (depth + 1, size + 1);
        check_height(at, depth)?;
        if size > MAX_NODES {
            let message = format!("expression node limit exceeded: {MAX_NODES}");
            return Err(SyntaxError { at, message });
        }
        let id = self.ids;
        self.ids += 1;
        Ok(Expr {
            id,
            at,
            depth,
            size,
            kind,
        })
    }

    pub(crate) fn ident(&mut self, at: usize, name: &Arc<str>) -> Parse<Expr> {
        self.node(at, Kind::Ident(Arc::clone(name)))
    }

    pub(crate) fn literal(&mut self, at: usize, value: Value<'static>) -> Parse<Expr> {
        self.node(at, Kind::Literal(value))
    }

    pub(crate) fn call(
        &mut self,
        at: usize,
        function: impl Into<Function>,
        args: Vec<Expr>,
    ) -> Parse<Expr> {
        self.node(
            at,
            Kind::Call {
                target: None,
                function: function.into(),
                args,
            },
        )
    }

    pub(crate) fn list(&mut self, at: usize, items: Vec<Expr>) -> Parse<Expr> {
        let items = items.into_iter().map(|value| Item {
            value,
            optional: false,
        });
        self.node(at, Kind::List(items.collect()))
    }

    pub(crate) fn fold(&mut self, at: usize, fold: Fold) -> Parse<Expr> {
        self.node(at, Kind::Fold(Box::new(fold)))
    }
}

/// The error of expressions that are nested too deeply.
pub(super) fn too_deep(at: usize) -> SyntaxError {
    let message = format!("expression recursion limit exceeded: {MAX_NESTING}");
    SyntaxError { at, message }
}

/// Rejects a tree that is too high.
pub(super) fn check_height(at: usize, height: usize) -> Parse<()> {
    if height <= MAX_HEIGHT {
        return Ok(());
    }
    let message = "max recursion depth exceeded".to_owned();
    Err(SyntaxError { at, message })
}
