//! The values expressions compute with.

use std::fmt;
use std::sync::Arc;

use crate::RunError;

/// A value. What came from JSON is borrowed from it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value<'v> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A float.
    Double(f64),
    /// Text.
    String(std::borrow::Cow<'v, str>),
    /// An object of the host, such as an authorizer.
    Abstract(Arc<dyn Abstract>),
}

/// An object of the host whose functions a library declares and the host implements.
pub trait Abstract: fmt::Debug + Send + Sync {
    /// The name of its type, such as `kubernetes.authorization.Authorizer`.
    fn type_name(&self) -> &str;

    /// Calls the function `name` on this object.
    ///
    /// # Errors
    /// What the host cannot answer.
    fn call<'v>(
        &self,
        name: &str,
        arguments: &[Value<'v>],
    ) -> Result<Value<'v>, RunError>;
}

impl<'v> Value<'v> {
    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}
