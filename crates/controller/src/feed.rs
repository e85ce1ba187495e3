//! One cache and the watches that keep it up to date.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fivespot_plan::Unknown;
use futures::future::AbortHandle;
use kube::api::ApiResource;

use crate::shape::{Shape, Target};
use fivespot_runtime::Key;
use fivespot_runtime::cache::Store;

/// A cache, its health, and whoever waits for its first list.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Names the cache among all of them.
    pub(crate) name: String,
    /// The kind of its objects.
    pub(crate) resource: ApiResource,
    /// How they are read.
    pub(crate) shape: Shape,
    /// What they looked like last.
    pub(crate) store: Store<Target>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    trouble: Option<Unknown>,
    waiting: BTreeSet<Key>,
    tasks: Vec<Task>,
}

/// Ends what it stands for when it is dropped.
#[derive(Debug)]
pub(crate) struct Task(pub(crate) AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether a cache can be asked about a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It has been listed.
    Synced,
    /// The first list is under way.
    Loading,
    /// The first list has not succeeded yet, and this is why.
    Failing(Unknown),
}

impl Feed {
    /// An empty cache that nobody fills yet.
    pub(crate) fn new(name: String, resource: ApiResource, shape: Shape) -> Self {
        Self {
            name,
            resource,
            shape,
            store: Store::default(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the cache can be asked about `namespace`.
    pub(crate) fn health(&self, namespace: &str) -> Health {
        if self.store.is_synced(namespace) {
            return Health::Synced;
        }
        match &self.state().trouble {
            Some(trouble) => Health::Failing(trouble.clone()),
            None => Health::Loading,
        }
    }

    /// `key` is to be woken when the first list has ended, in whichever way.
    pub(crate) fn wait(&self, key: &Key) {
        self.state().waiting.insert(key.clone());
    }

    /// The watch goes well. Returns who has waited for that.
    pub(crate) fn recover(&self) -> BTreeSet<Key> {
        let mut state = self.state();
        state.trouble = None;
        std::mem::take(&mut state.waiting)
    }

    /// The watch does not go well. Returns who has waited to know.
    pub(crate) fn fail(&self, trouble: Unknown) -> BTreeSet<Key> {
        let mut state = self.state();
        state.trouble = Some(trouble);
        std::mem::take(&mut state.waiting)
    }

    /// Why the last attempt failed, if it did.
    pub(crate) fn trouble(&self) -> Option<Unknown> {
        self.state().trouble.clone()
    }

    /// Whether the last attempt failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.state().trouble.is_some()
    }

    /// `task` fills the cache, and ends with it.
    pub(crate) fn keep(&self, task: Task) {
        self.state().tasks.push(task);
    }

    /// Ends the watches.
    pub(crate) fn stop(&self) {
        self.state().tasks.clear();
    }
}
