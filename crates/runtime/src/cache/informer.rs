//! A cache, its health, and the sink through which a watch fills it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::AbortHandle;
use kube::api::ApiResource;
use serde_json::Value;

use super::budget::{Budget, MAX_OBJECTS, TooLarge, check_identifiers};
use super::expectations::Version;
use super::projection::CacheProjection;
use super::store::{Object, Part, Store};
use crate::Key;
use crate::http::error;
use crate::watch::Sink;

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
    was_listed: bool,
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

    /// Whether a key of this namespace waits for the first list.
    pub fn is_awaited_in(&self, namespace: &str) -> bool {
        let first = Key::new(namespace, "");
        let state = self.state();
        let next = state.waiting.range(first..).next();
        next.is_some_and(|key| key.namespace == namespace)
    }

    /// Records that the watch works. Returns the keys that have waited for that.
    pub fn record_success(&self) -> BTreeSet<Key> {
        let mut state = self.state();
        state.failure = None;
        state.was_listed = true;
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

    /// Whether a list has ever succeeded: a kind that is not served now may have objects.
    pub fn was_listed(&self) -> bool {
        self.state().was_listed
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

/// Called with the changes of a cache.
pub trait Handler<T>: Send + Sync {
    /// Objects that affect these targets were added, changed or removed.
    fn changed(&self, affected: BTreeSet<T>);

    /// The object, which affects these targets, is new or has changed, and has that version.
    fn updated(&self, _object: &Key, _version: &Version, affected: BTreeSet<T>) {
        self.changed(affected);
    }

    /// The cache has been listed. These keys have waited for that.
    fn synced(&self, waiting: BTreeSet<Key>);

    /// The server has responded.
    fn responded(&self) {}

    /// The watch has failed. These keys have waited for the outcome.
    fn failed(&self, error: &kube::Error, waiting: BTreeSet<Key>);

    /// Whether more than the name and version is kept of an object that affects these targets.
    fn needs_content(&self, _affected: &[T]) -> bool {
        true
    }
}

/// Fills an [`Informer`]'s store.
pub struct InformerSink<P: CacheProjection, H> {
    /// The cache.
    pub informer: Arc<Informer<P>>,
    /// The part of the cache that the watched objects belong to.
    pub part: Part,
    /// The memory budget of a server that is not trusted; `None` for no limit.
    pub budget: Option<Arc<Budget>>,
    /// Called with the changes.
    pub handler: H,
    /// How many objects and pages the current list has had. Pages count so that an endless list
    /// ends too.
    pub listed: usize,
}

impl<P: CacheProjection, H: Handler<P::Target>> InformerSink<P, H> {
    /// Returns the key and the cached form of an object.
    fn kept(&self, object: Value) -> kube::Result<(Key, Object<P::Target>)> {
        if self.budget.is_some() {
            check_identifiers(&object)?;
        }
        let key = key_of(&object);
        let informer = &self.informer;
        let mut object = informer.projection.cache(object, &informer.resource);
        if !self.handler.needs_content(&object.targets) {
            object.keep_name_only();
        }
        if let Some(budget) = &self.budget {
            object.count(&key, budget)?;
        }
        Ok((key, object))
    }

    /// Returns an error if so many objects may not be kept.
    fn count(&self, objects: usize) -> kube::Result<()> {
        if self.budget.is_some() && objects > MAX_OBJECTS {
            return Err(TooLarge::Objects.into());
        }
        Ok(())
    }
}

impl<P: CacheProjection, H: Handler<P::Target>> Sink for InformerSink<P, H> {
    fn list_begins(&mut self) {
        self.listed = 0;
        self.informer.store.begin(&self.part);
    }

    fn page(&mut self) -> kube::Result<()> {
        self.listed += 1;
        self.count(self.listed)
    }

    fn listed(&mut self, object: Value) -> kube::Result<()> {
        self.listed += 1;
        self.count(self.listed)?;
        let (key, object) = self.kept(object)?;
        self.informer.store.list(&self.part, key, object);
        Ok(())
    }

    fn list_ends(&mut self) {
        self.handler.changed(self.informer.store.end(&self.part));
        self.handler.synced(self.informer.record_success());
    }

    fn modified(&mut self, object: Value) -> kube::Result<()> {
        let store = &self.informer.store;
        let key = key_of(&object);
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let version = version_of(&object);
        if store.shows(&self.part, &key, uid, &version) {
            self.handler.updated(&key, &version, BTreeSet::new());
            return Ok(());
        }
        let (key, object) = self.kept(object)?;
        let affected = store.put(&self.part, &key, object);
        self.count(store.len())?;
        self.handler.updated(&key, &version, affected);
        Ok(())
    }

    fn deleted(&mut self, object: Value) {
        let version = version_of(&object);
        let store = &self.informer.store;
        let affected = store.remove(&self.part, &key_of(&object), &version);
        self.handler.changed(affected);
    }

    fn responded(&mut self) {
        self.handler.responded();
    }

    /// The objects that have arrived stay in the store, except for a kind that is not served and
    /// for a cluster that is too large.
    fn failed(&mut self, error: &kube::Error) {
        if error::code(error) == Some(404) || TooLarge::of(error).is_some() {
            self.informer.store.clear();
        }
        let waiting = self.informer.record_failure(error);
        self.handler.failed(error, waiting);
    }
}

fn version_of(object: &Value) -> Version {
    let version = &object["metadata"]["resourceVersion"];
    Version::new(version.as_str().unwrap_or_default())
}

fn key_of(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &object["metadata"];
    Key::new(text(&meta["namespace"]), text(&meta["name"]))
}
