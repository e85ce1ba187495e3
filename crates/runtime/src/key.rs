//! The keys of the work queue.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Namespace and name of an object; the namespace of a cluster-scoped object is empty. Printed as
/// `namespace/name`.
///
/// A clone copies a pointer: caches, indexes and the queue keep some twenty clones of each key.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<NamespacedName>);

/// The fields of a [`Key`].
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self(Arc::new(NamespacedName {
            namespace: namespace.into(),
            name: name.into(),
        }))
    }
}

impl Deref for Key {
    type Target = NamespacedName;

    fn deref(&self) -> &NamespacedName {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}
