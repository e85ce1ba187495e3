//! What the variables of one run are.

use serde_json::Value as Json;

use crate::{Places, RunError, Value};

/// Gives variables their values. Asked by name at each use, so an answer may be computed on
/// demand; an implementation that computes should keep what it computed.
///
/// Values live for `'v`, longer than the activation itself.
pub trait Activation<'v> {
    /// The value of a declared variable. `None` is an error to whoever uses it.
    fn variable(&self, name: &str) -> Option<Result<Binding<'v>, RunError>>;

    /// The value of a variable that is answered with [`Binding::Json`].
    fn json(&self, name: &str) -> Option<&'v Json> {
        match self.variable(name)? {
            Ok(Binding::Json(json)) => Some(json),
            _ => None,
        }
    }

    /// A field of a variable that was answered with [`Binding::Lazy`].
    ///
    /// An error hits only the expression that uses the field.
    fn field(
        &self,
        variable: &str,
        field: &str,
    ) -> Option<Result<Binding<'v>, RunError>> {
        let _ = (variable, field);
        None
    }

    /// What is kept of where paths lead, for programs that are run with the same variables:
    /// those that the paths begin at may never be answered otherwise than here. Of programs
    /// that were compiled without these paths nothing is kept.
    fn places(&self) -> Option<&Places<'v>> {
        None
    }
}

/// A variable's value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Binding<'v> {
    /// JSON, read by the variable's declared type.
    Json(&'v Json),
    /// JSON that may be absent, for a variable declared as [`crate::Type::Optional`].
    Optional(Option<&'v Json>),
    /// A value of any kind.
    Value(Value<'v>),
    /// An object whose fields are asked for one by one with [`Activation::field`].
    Lazy,
}

/// An activation that holds its variables.
#[derive(Clone, Debug, Default)]
pub struct Variables<'v> {
    bound: Vec<(String, Binding<'v>)>,
}

impl<'v> Variables<'v> {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable to JSON.
    #[must_use]
    pub fn json(self, name: impl Into<String>, json: &'v Json) -> Self {
        self.bind(name, Binding::Json(json))
    }

    /// Binds a variable; the latest binding of a name counts.
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
