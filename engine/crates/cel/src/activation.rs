//! The values of the variables of one run.

use serde_json::Value as Json;

use crate::{ResolvedPaths, RunError, Value};

/// Resolves variables. Called by name at each use, so a value may be computed on demand; an
/// implementation that computes values should cache them.
///
/// Values live for `'v`, longer than the activation itself.
pub trait Activation<'v> {
    /// The value of a declared variable. `None` makes the expression that uses it fail.
    fn variable(&self, name: &str) -> Option<Result<Binding<'v>, RunError>>;

    /// The JSON of a variable that resolves to [`Binding::Json`].
    fn json(&self, name: &str) -> Option<&'v Json> {
        match self.variable(name)? {
            Ok(Binding::Json(json)) => Some(json),
            _ => None,
        }
    }

    /// A field of a variable that resolves to [`Binding::Lazy`].
    ///
    /// An error fails only the expression that uses the field.
    fn field(
        &self,
        variable: &str,
        field: &str,
    ) -> Option<Result<Binding<'v>, RunError>> {
        let _ = (variable, field);
        None
    }

    /// The cache of the targets of paths, for programs that are run with the same variables.
    /// The variables at the start of these paths must always resolve to the values of this
    /// activation. Nothing is cached for programs that were compiled without these paths.
    fn resolved_paths(&self) -> Option<&ResolvedPaths<'v>> {
        None
    }
}

/// A variable's value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Binding<'v> {
    /// JSON, read with the variable's declared type.
    Json(&'v Json),
    /// JSON that may be absent, for a variable declared as [`crate::Type::Optional`].
    Optional(Option<&'v Json>),
    /// A value of any kind.
    Value(Value<'v>),
    /// An object whose fields are resolved one at a time with [`Activation::field`].
    Lazy,
}

/// An activation that holds the values of its variables.
#[derive(Clone, Debug, Default)]
pub struct Variables<'v> {
    bound: Vec<(String, Binding<'v>)>,
}

impl<'v> Variables<'v> {
    /// An activation without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable to JSON.
    #[must_use]
    pub fn json(self, name: impl Into<String>, json: &'v Json) -> Self {
        self.bind(name, Binding::Json(json))
    }

    /// Binds a variable; a later binding of the same name replaces the earlier one.
    #[must_use]
    pub fn bind(mut self, name: impl Into<String>, binding: Binding<'v>) -> Self {
        self.bound.push((name.into(), binding));
        self
    }
}

impl<'v> Activation<'v> for Variables<'v> {
    fn variable(&self, name: &str) -> Option<Result<Binding<'v>, RunError>> {
        let found = self.bound.iter().rev().find(|(bound, _)| bound == name);
        found.map(|(_, binding)| Ok(binding.clone()))
    }
}
