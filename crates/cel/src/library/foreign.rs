//! Values of Kubernetes' own types.

use std::fmt;

/// A value of a type that one of Kubernetes' libraries brings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LibraryValue {}

impl LibraryValue {
    /// The name of its type.
    pub fn type_name(&self) -> &'static str {
        match *self {}
    }

    /// The length of a format's pattern, as costs count it.
    pub(crate) fn pattern_size(&self) -> u64 {
        match *self {}
    }

    /// The size that costs are computed from.
    pub(crate) fn cost_size(&self) -> usize {
        match *self {}
    }
}

impl fmt::Display for LibraryValue {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
