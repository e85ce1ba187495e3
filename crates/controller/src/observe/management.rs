//! Reads one object of the management cluster, from its cache or live.

use std::sync::Arc;

use fivespot_capi::{Contract, Reference, version};
use fivespot_plan::{Fact, Freshness, Unknown};
use kube::api::ApiResource;
use serde_json::Value;

use super::Incomplete;
use crate::context::Context;
use crate::failure;
use crate::observe::live_reads::LiveReads;
use crate::observe::projection::{CachedKind, KindInformer};
use crate::observe::read_once::ReadOnce;
use crate::observe::read_result::{ReadError, ReadResult};
use fivespot_runtime::Key;
use fivespot_runtime::cache::{Expectation, Health, Version};
use fivespot_runtime::http::Address;

/// The reconcile that objects are read for, and how they are read.
pub(crate) struct Source<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) key: &'a Key,
    pub(crate) freshness: Freshness,
    pub(crate) reads: &'a LiveReads,
}

impl Source<'_> {
    /// The ScheduledMachine itself.
    pub(super) async fn scheduled_machine(
        &self,
    ) -> Result<Fact<Option<Value>>, Incomplete> {
        let informer = self.context.scheduled_machines.clone();
        self.read(&informer, &self.key.name).await
    }

    /// An object in the ScheduledMachine's namespace. The first call starts the watch of its kind.
    pub(super) async fn object(
        &self,
        resource: &ApiResource,
        projection: CachedKind,
        name: &str,
    ) -> Result<Fact<Option<Value>>, Incomplete> {
        let informer = self.context.informer(resource, projection);
        self.read(&informer, name).await
    }

    /// What `read` makes of an object, which `once` keeps for each version of it; `None` if there is
    /// none.
    pub(super) async fn read_once<K: Ord + Clone, T: Clone>(
        &self,
        informer: &KindInformer,
        at: Key,
        once: &ReadOnce<K, Option<T>>,
        id: &K,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Fact<Option<T>>, Incomplete> {
        if !self.is_live()
            && informer.health(&at.namespace) == Health::Synced
            && let Some(cached) = informer.store.get(&at)
            && let Some(known) = once.get(id, cached.version.as_str())
        {
            return Ok(Fact::Known(known));
        }
        let found = self.read_at(informer, at).await?;
        Ok(found.and_then(|found| {
            let read = found.and_then(|value| {
                let version = value["metadata"]["resourceVersion"].as_str();
                once.get_or_read(id, version.unwrap_or_default(), || read(&value))
            });
            Fact::Known(read)
        }))
    }

    async fn read(
        &self,
        informer: &KindInformer,
        name: &str,
    ) -> Result<Fact<Option<Value>>, Incomplete> {
        let at = Key::new(self.key.namespace.clone(), name);
        self.read_at(informer, at).await
    }

    pub(super) async fn read_at(
        &self,
        informer: &KindInformer,
        at: Key,
    ) -> Result<Fact<Option<Value>>, Incomplete> {
        match self.freshness {
            Freshness::Live => Ok(self.live_at(informer, at).await),
            Freshness::Cached => {
                match self.reads.get(&informer.name, &at) {
                    // The response to a write of this reconcile is newer than the cache.
                    Fact::Known(known) => Ok(Fact::Known(known)),
                    Fact::Unknown(_) => self.cached(informer, &at),
                }
            }
        }
    }

    pub(super) async fn live(
        &self,
        informer: &KindInformer,
        name: &str,
    ) -> Fact<Option<Value>> {
        let at = Key::new(self.key.namespace.clone(), name);
        self.live_at(informer, at).await
    }

    pub(super) async fn live_at(
        &self,
        informer: &KindInformer,
        at: Key,
    ) -> Fact<Option<Value>> {
        if let Fact::Known(known) = self.reads.get(&informer.name, &at) {
            return Fact::Known(known);
        }
        // Many machines in one Cluster, or of one class, start at the same time and share one read.
        let response = if matches!(
            informer.projection,
            CachedKind::Cluster | CachedKind::Class | CachedKind::Namespace
        ) {
            let request = self.request(informer, &at);
            // Boxed, so that waiting for any other object takes a third of the memory.
            Box::pin(self.context.shared.read(&informer.name, &at, request)).await
        } else {
            self.request(informer, &at).await
        };
        match response.found {
            Ok(found) => {
                self.record(informer, &at, found.as_ref(), response.lists_begun);
                Fact::Known(found)
            }
            Err(ReadError { code, unknown }) => {
                if code == Some(404) {
                    self.context.invalidate_discovery(informer);
                }
                Fact::Unknown(unknown)
            }
        }
    }

    async fn request(&self, informer: &KindInformer, at: &Key) -> ReadResult {
        let namespace = at.namespace.as_str();
        let address = Address {
            resource: &informer.resource,
            namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
            name: &at.name,
            projection: Some(&informer.projection),
        };
        let found = self.context.api.get(&address).await;
        let lists_begun = informer.store.lists_begun(namespace);
        ReadResult {
            found: found.map_err(|error| ReadError {
                code: failure::code(&error),
                unknown: failure::unknown(&error),
            }),
            lists_begun,
        }
    }

    /// Records what a live read has returned. What the cache may not show yet is recorded like a
    /// write of our own, so that no later reconcile uses an older state.
    pub(super) fn record(
        &self,
        informer: &KindInformer,
        at: &Key,
        found: Option<&Value>,
        lists_begun: u64,
    ) {
        self.reads.record_read(&informer.name, at, found);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let cached = informer.store.get(at);
        let (uid, version) = match found {
            Some(found) if informer.projection.shows(found) => {
                let meta = &found["metadata"];
                (text(&meta["uid"]), text(&meta["resourceVersion"]))
            }
            Some(_) => return,
            None => (cached.map(|cached| cached.uid.clone()), None),
        };
        let Some(uid) = uid else { return };
        let expectation = Expectation {
            uid,
            version: version.map(Version::new),
            lists_begun,
        };
        if !informer.store.has_seen(at, &expectation) {
            let (cache, at) = (informer.name.clone(), at.clone());
            self.context.state(self.key, |state| {
                state.expectations.expect(cache, at, expectation);
            });
        }
    }

    /// The version of Cluster API's own kinds. `None` if they are not served.
    pub(super) async fn contract(&self) -> kube::Result<Option<Contract>> {
        let discovery = &self.context.discovery;
        match discovery.contract().await? {
            None if self.is_live() => {
                discovery.forget(version::GROUP);
                discovery.contract().await
            }
            contract => Ok(contract),
        }
    }

    /// The kind that `place` names. `None` if it is not served.
    pub(super) async fn resource(
        &self,
        place: &Reference,
    ) -> kube::Result<Option<ApiResource>> {
        if let Some(resource) = self.context.watched_resource(place) {
            return Ok(Some(resource));
        }
        let discovery = &self.context.discovery;
        match discovery.resource(place).await? {
            None if self.is_live() => {
                discovery.forget(&place.group);
                discovery.resource(place).await
            }
            resource => Ok(resource),
        }
    }

    /// Whether earlier reads must not be used. A kind that is not served implies that its objects
    /// are gone, so that discovery is requested again in this case.
    pub(super) fn is_live(&self) -> bool {
        self.freshness == Freshness::Live
    }

    /// The object `at` that key in the cache, once the cache is synced.
    pub(super) fn cached(
        &self,
        informer: &KindInformer,
        at: &Key,
    ) -> Result<Fact<Option<Value>>, Incomplete> {
        Ok(match self.unlisted(informer, &at.namespace)? {
            Some(unknown) => Fact::Unknown(unknown),
            None => Fact::Known(informer.store.get(at).map(|object| object.value())),
        })
    }

    /// Why the objects of a namespace, or those in none, are not in their cache, whose list enqueues
    /// the key then; `None` if they are.
    pub(crate) fn unlisted(
        &self,
        informer: &KindInformer,
        namespace: &str,
    ) -> Result<Option<Unknown>, Incomplete> {
        let health = informer.health(namespace);
        if health != Health::Synced {
            informer.add_waiting(self.key);
        }
        match health {
            Health::Synced => Ok(None),
            Health::Loading => Err(Incomplete::NotYet),
            Health::Failing(failure) => Ok(Some(failure::of_watch(&failure))),
        }
    }
}
