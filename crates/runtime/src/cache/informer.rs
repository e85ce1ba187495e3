//! One cache and the watches that keep it up to date.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::AbortHandle;
use kube::api::ApiResource;

use super::projection::Cached;
use super::store::Store;
use crate::Key;
use crate::http::error;

/// A cache, its health, and whoever waits for its first list.
#[derive(Debug)]
pub struct Informer<P: Cached> {
    /// Names the cache among all of them.
    pub name: String,
    /// The kind of its objects.
    pub resource: ApiResource,
    /// How they are read.
    pub projection: P,
    /// What they looked like last.
    pub store: Store<P::Target>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    trouble: Option<Trouble>,
    waiting: BTreeSet<Key>,
    tasks: Vec<Task>,
}

/// Ends what it stands for when it is dropped.
#[derive(Debug)]
pub struct Task(pub AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a watch does not go well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The HTTP status of the server's refusal; none where no answer came.
    pub code: Option<u16>,
    /// The server's message, or the client's.
    pub message: String,
}

impl Trouble {
    /// What `error` says.
    pub fn of(error: &kube::Error) -> Self {
        Self {
            code: error::code(error),
            message: error::message(error),
        }
    }
}

/// Whether a cache can be asked about a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It has been listed.
    Synced,
    /// The first list is under way.
    Loading,
    /// The first list has not succeeded yet, and this is why.
    Failing(Trouble),
}

impl<P: Cached> Informer<P> {
    /// An empty cache that nobody fills yet.
    pub fn new(name: String, resource: ApiResource, projection: P) -> Self {
        Self {
            name,
            resource,
            projection,
            store: Store::default(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the cache can be asked about `namespace`.
    pub fn health(&self, namespace: &str) -> Health {
        if self.store.is_synced(namespace) {
            return Health::Synced;
        }
        match &self.state().trouble {
            Some(trouble) => Health::Failing(trouble.clone()),
            None => Health::Loading,
        }
    }

    /// `key` is to be woken when the first list has ended, in whichever way.
    pub fn wait(&self, key: &Key) {
        self.state().waiting.insert(key.clone());
    }

    /// The watch goes well. Returns who has waited for that.
    pub fn recover(&self) -> BTreeSet<Key> {
        let mut state = self.state();
        state.trouble = None;
        std::mem::take(&mut state.waiting)
    }

    /// The watch does not go well. Returns who has waited to know; nobody where it goes as badly
    /// as before.
    pub fn fail(&self, error: &kube::Error) -> BTreeSet<Key> {
        let mut state = self.state();
        let trouble = Some(Trouble::of(error));
        if state.trouble == trouble {
            return BTreeSet::new();
        }
        state.trouble = trouble;
        std::mem::take(&mut state.waiting)
    }

    /// Why the last attempt failed, if it did.
    pub fn trouble(&self) -> Option<Trouble> {
        self.state().trouble.clone()
    }

    /// Whether the last attempt failed.
    pub fn is_failing(&self) -> bool {
        self.state().trouble.is_some()
    }

    /// `task` fills the cache, and ends with it.
    pub fn keep(&self, task: Task) {
        self.state().tasks.push(task);
    }

    /// Ends the watches.
    pub fn stop(&self) {
        self.state().tasks.clear();
    }
}
