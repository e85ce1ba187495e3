//! The path of a value during a traversal. It is only formatted for error messages, because
//! most fields are valid.

use std::fmt;

/// A path in Kubernetes' format: `spec.containers[0].image`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// A field of the value at the parent path.
    Field(&'a Path<'a>, &'a str),
    /// An item of the list at the parent path.
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
