//! Where in an object a walk is. Written out for messages alone: most fields are as they should be.

use std::fmt;

/// A path, as Kubernetes prints it: `spec.containers[0].image`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// A field of what is there.
    Field(&'a Path<'a>, &'a str),
    /// An item of the list there.
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// Whether it is that of the object itself.
    pub(crate) fn is_root(&self) -> bool {
        matches!(self, Self::Root)
    }
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
