//! Names that are taken by provider objects without our label, and their watches.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fivespot_runtime::Key;
use fivespot_runtime::cache::Task;
use kube::api::ApiResource;

/// A provider object without our label under a name that we need, in the ScheduledMachine's
/// namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameConflict {
    /// Its kind.
    pub(crate) resource: ApiResource,
    /// The name.
    pub(crate) name: String,
}

/// The watches of taken names, by the ScheduledMachine that needs the name. They exist only while
/// the name is taken, because no other watch shows provider objects without our label. No object is
/// kept.
#[derive(Debug, Default)]
pub(crate) struct NameConflicts(Mutex<BTreeMap<Key, WatchedNames>>);

#[derive(Debug)]
pub(super) struct WatchedNames {
    pub(super) names: Vec<NameConflict>,
    /// Held until dropped.
    pub(super) _watches: Vec<Task>,
}

impl NameConflicts {
    pub(super) fn all(&self) -> MutexGuard<'_, BTreeMap<Key, WatchedNames>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `key` needs no taken name any more.
    pub(crate) fn forget(&self, key: &Key) {
        self.all().remove(key);
    }
}
