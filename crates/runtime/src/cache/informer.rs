//! A cache and the watches that fill it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::AbortHandle;
use kube::api::ApiResource;

use super::projection::CacheProjection;
use super::store::Store;
use crate::Key;
use crate::http::error;

/// A cache, its health, and the keys that wait for its first list.
#[derive(Debug)]
pub struct Informer<P: CacheProjection> {
    /// The name of the cache, unique among all.
    pub name: String,
    /// The kind of its objects.
    pub resource: ApiResource,
    /// How its objects are read.
    pub projection: P,
    /// The last state of its objects.
    pub store: Store<P::Target>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failure: Option<WatchFailure>,
    waiting: BTreeSet<Key>,
    tasks: Vec<Task>,
}

/// Aborts the task on drop.
#[derive(Debug)]
pub struct Task(pub AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a watch fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchFailure {
    /// The HTTP status of the server's refusal; `None` if no response arrived.
    pub code: Option<u16>,
    /// The server's message, or the client's.
    pub message: String,
}

impl WatchFailure {
    /// The code and the message of `error`.
    pub fn of(error: &kube::Error) -> Self {
        Self {
            code: error::code(error),
            message: error::message(error),
        }
    }
}

/// Whether a cache can be read for a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It has been listed.
    Synced,
    /// The first list is under way.
    Loading,
    /// The first list has not succeeded yet, for this reason.
    Failing(WatchFailure),
}

impl<P: CacheProjection> Informer<P> {
    /// An empty cache without a watch.
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

    /// Whether the cache can be read for `namespace`.
    pub fn health(&self, namespace: &str) -> Health {
        if self.store.is_synced(namespace) {
            return Health::Synced;
        }
        match &self.state().failure {
            Some(failure) => Health::Failing(failure.clone()),
            None => Health::Loading,
        }
    }

    /// Records that `key` must be enqueued when the first list has succeeded or failed.
    pub fn add_waiting(&self, key: &Key) {
        self.state().waiting.insert(key.clone());
    }

    /// Records that the watch works. Returns the keys that have waited for that.
    pub fn record_success(&self) -> BTreeSet<Key> {
        let mut state = self.state();
        state.failure = None;
        std::mem::take(&mut state.waiting)
    }

    /// Records that the watch fails. Returns the keys that have waited for the outcome; none if
    /// it fails for the same reason as before.
    pub fn record_failure(&self, error: &kube::Error) -> BTreeSet<Key> {
        let mut state = self.state();
        let failure = Some(WatchFailure::of(error));
        if state.failure == failure {
            return BTreeSet::new();
        }
        state.failure = failure;
        std::mem::take(&mut state.waiting)
    }

    /// Why the last attempt failed, if it did.
    pub fn failure(&self) -> Option<WatchFailure> {
        self.state().failure.clone()
    }

    /// Whether the last attempt failed.
    pub fn is_failing(&self) -> bool {
        self.state().failure.is_some()
    }

    /// Adds `task`, which fills the cache and ends with it.
    pub fn add_task(&self, task: Task) {
        self.state().tasks.push(task);
    }

    /// Ends the watches.
    pub fn stop(&self) {
        self.state().tasks.clear();
    }
}
