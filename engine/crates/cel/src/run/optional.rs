//! Optional values that are not wrapped until they are stored.

use std::sync::Arc;

use super::{Outcome, Run, recoverable};
use crate::library;
use crate::plan::{Call, Node, Strategy};
use crate::value::plain;
use crate::{RunError, Value};

/// A value that may be optional.
pub(super) enum MaybeOptional<'v> {
    /// Not an optional value.
    Plain(Value<'v>),
    /// `optional.none()`
    Absent,
    /// The value of a present optional.
    Present(Value<'v>),
}

impl<'v> MaybeOptional<'v> {
    pub(super) fn of(value: Value<'v>) -> Self {
        match value {
            Value::Optional(None) => Self::Absent,
            Value::Optional(Some(inner)) => Self::Present(Arc::unwrap_or_clone(inner)),
            plain => Self::Plain(plain),
        }
    }

    /// The value after the API server unwraps the optional at the start of an attribute: the
    /// schema's name escaping is lost, and library values cannot be converted back if no field
    /// is read (`bare`).
    pub(super) fn without_schema(self, bare: bool) -> Self {
        match self {
            Self::Present(value) if bare => Self::Present(value.read_back()),
            Self::Present(value) => Self::Present(plain(value)),
            other => other,
        }
    }

    /// The value as an expression sees it.
    pub(super) fn wrapped(self) -> Value<'v> {
        match self {
            Self::Plain(value) => value,
            Self::Absent => Value::Optional(None),
            Self::Present(value) => Value::some(value),
        }
    }
}

impl<'v> Run<'_, 'v> {
    /// [`Run::eval`], with an optional value unwrapped.
    pub(super) fn eval_optional(
        &mut self,
        node: &'v Node,
    ) -> Result<MaybeOptional<'v>, RunError> {
        match node {
            Node::Attribute(attribute) => self.attribute_or_none(attribute),
            Node::Call(call) => match (&call.strategy, &*call.args) {
                (Strategy::None, _) => {
                    self.budget.charge(call.formula.flat())?;
                    Ok(MaybeOptional::Absent)
                }
                (Strategy::Some, [value]) => {
                    self.some(call, value).map(MaybeOptional::Present)
                }
                _ => self.call(call).map(MaybeOptional::of),
            },
            other => self.eval(other).map(MaybeOptional::of),
        }
    }

    /// The value inside `optional.of(x)`.
    pub(super) fn some(&mut self, call: &'v Call, value: &'v Node) -> Outcome<'v> {
        let value = recoverable(self.eval(value))?;
        self.budget.charge(call.formula.flat())?;
        value
    }

    /// `x.hasValue()`
    pub(super) fn has_value(
        &mut self,
        call: &'v Call,
        optional: &'v Node,
    ) -> Outcome<'v> {
        match self.optional_argument(call, optional)? {
            MaybeOptional::Absent => Ok(Value::Bool(false)),
            MaybeOptional::Present(_) => Ok(Value::Bool(true)),
            MaybeOptional::Plain(other) => library::call(&call.overloads, &[other]),
        }
    }

    /// `x.value()`
    pub(super) fn value(&mut self, call: &'v Call, optional: &'v Node) -> Outcome<'v> {
        match self.optional_argument(call, optional)? {
            MaybeOptional::Absent => Err(RunError::text("optional.none() dereference")),
            MaybeOptional::Present(value) => value.or_conversion_error(),
            MaybeOptional::Plain(other) => library::call(&call.overloads, &[other]),
        }
    }

    /// The argument of a call; the call is charged whatever the argument is.
    pub(super) fn optional_argument(
        &mut self,
        call: &'v Call,
        optional: &'v Node,
    ) -> Result<MaybeOptional<'v>, RunError> {
        let found = recoverable(self.eval_optional(optional))?;
        self.budget.charge(call.formula.flat())?;
        found
    }
}
