//! The caches of the kinds that are watched.

use std::sync::Arc;

use fivespot_api::name;
use fivespot_capi::Reference;
use fivespot_runtime::cache::Health;
use fivespot_runtime::watch::Selector;
use kube::api::ApiResource;
use serde_json::Value;

use super::{Context, Tables};
use crate::kind::{self, cache_name};
use crate::observe::projection::{CachedKind, KindInformer, Object, Target};
use crate::observe::provided::MAX_KINDS;
use crate::{Key, Namespaces};

impl Context {
    /// All caches.
    pub(crate) fn caches(&self) -> Vec<Arc<KindInformer>> {
        self.tables().informers.values().cloned().collect()
    }

    /// Whether a cache is synced for every namespace that is watched.
    pub(crate) fn cache_health(&self, informer: &KindInformer) -> Health {
        if informer.projection == CachedKind::HostClaim {
            return informer.health(&self.options.claim_namespace);
        }
        let Namespaces::Only(some) = &self.options.namespaces else {
            return informer.health("");
        };
        let all = some.iter().map(|namespace| informer.health(namespace));
        let mut lacking = all.filter(|health| *health != Health::Synced);
        lacking.next().unwrap_or(Health::Synced)
    }

    /// The cache of a kind of the management cluster. The first call starts its watch.
    pub(crate) fn informer(
        self: &Arc<Self>,
        resource: &ApiResource,
        projection: CachedKind,
    ) -> Arc<KindInformer> {
        let selector = (projection == CachedKind::Provider)
            .then(|| Selector::Labels(name::SCHEDULED_MACHINE_LABEL.to_owned()));
        let cache = cache_name(resource);
        let (informer, is_new) = self.ensure(cache, resource.clone(), projection);
        if is_new && informer.projection == CachedKind::HostClaim {
            let namespace = self.options.claim_namespace.clone();
            let selector = Selector::Labels(name::HOST_CLAIM_LABEL.to_owned());
            self.watch_in(&informer, Some(namespace), Some(selector));
        } else if is_new
            && matches!(
                informer.projection,
                CachedKind::Class | CachedKind::Namespace
            )
        {
            self.watch_in(&informer, None, None);
        } else if is_new {
            self.watch(&informer, selector);
        }
        informer
    }

    /// The kind that `place` names without a version, if it is already watched in one version: two
    /// watches would show the same objects twice.
    pub(crate) fn watched_resource(&self, place: &Reference) -> Option<ApiResource> {
        if place.version.is_some() {
            return None;
        }
        let tables = self.tables();
        let mut informers = tables.informers.values();
        let found = informers.find(|informer| {
            matches!(
                informer.projection,
                CachedKind::Provider | CachedKind::ProvidedSchedule(_)
            ) && (&informer.resource.group, &informer.resource.kind)
                == (&place.group, &place.kind)
                && !informer.is_failing()
        });
        found.map(|informer| informer.resource.clone())
    }

    /// Whether the schedules of another kind of another provider may be watched.
    pub(crate) fn has_room_for_provider(&self, resource: &ApiResource) -> bool {
        let tables = self.tables();
        let mut kinds = tables.informers.iter().filter(|(_, informer)| {
            matches!(informer.projection, CachedKind::ProvidedSchedule(_))
        });
        let own = cache_name(resource);
        kinds.clone().count() < MAX_KINDS || kinds.any(|(name, _)| *name == own)
    }

    /// The cache of that name.
    pub(crate) fn cache(&self, name: &str) -> Option<Arc<KindInformer>> {
        self.tables().informers.get(name).cloned()
    }

    /// A cache whose first list is under way, and which reconciles in a namespace read: all of them,
    /// or one that waits for it already.
    ///
    /// Asked before a ScheduledMachine is parsed: at a start thousands wait for each of these in
    /// turn, and parsing all of them each time would delay those that are due. The list of a kind
    /// that only some of them read delays no other namespace.
    pub(crate) fn loading(&self, namespace: &str) -> Option<Arc<KindInformer>> {
        let Tables {
            informers,
            unfilled,
            ..
        } = &mut *self.tables();
        unfilled.retain(|name| {
            let cache = informers.get(name);
            cache.is_some_and(|cache| self.cache_health(cache) != Health::Synced)
        });
        let caches = unfilled.iter().filter_map(|name| informers.get(name));
        let mut read = caches.filter(|cache| match cache.projection {
            CachedKind::ScheduledMachine
            | CachedKind::Override
            | CachedKind::Machine
            | CachedKind::Cluster => true,
            _ => cache.is_awaited_in(namespace),
        });
        read.find(|cache| {
            let part = match cache.projection {
                CachedKind::HostClaim => self.options.claim_namespace.as_str(),
                _ => namespace,
            };
            cache.health(part) == Health::Loading
        })
        .cloned()
    }

    /// The cache of that name, and whether it is new and must be filled.
    pub(crate) fn ensure(
        &self,
        name: String,
        resource: ApiResource,
        projection: CachedKind,
    ) -> (Arc<KindInformer>, bool) {
        let mut tables = self.tables();
        if let Some(informer) = tables.informers.get(&name) {
            return (informer.clone(), false);
        }
        let informer = Arc::new(KindInformer::new(name.clone(), resource, projection));
        if !informer.projection.is_of_workload() {
            tables.unfilled.insert(name.clone());
        }
        tables.informers.insert(name, informer.clone());
        (informer, true)
    }

    /// Removes a cache and stops its watches.
    pub(crate) fn drop_cache(&self, name: &str) {
        let dropped = self.tables().informers.remove(name);
        if let Some(informer) = dropped {
            informer.stop();
        }
    }

    /// The kind of `informer` is not served under that version any more, or is briefly
    /// unavailable: the next read uses discovery again.
    pub(crate) fn invalidate_discovery(&self, informer: &KindInformer) {
        self.discovery.forget(&informer.resource.group);
        if informer.name != self.scheduled_machines.name {
            self.drop_cache(&informer.name);
        }
    }

    /// Uses the kinds of `group` in `version` and stops the watches of its other versions.
    pub(crate) fn use_version(&self, group: &str, version: &str) {
        let others: Vec<Arc<KindInformer>> = {
            let mut tables = self.tables();
            let is_other = |informer: &Arc<KindInformer>| {
                informer.resource.group == group
                    && informer.resource.version != version
                    && !informer.projection.is_of_targets()
            };
            let others: Vec<_> = tables.informers.values().cloned().collect();
            let others: Vec<_> = others.into_iter().filter(is_other).collect();
            for informer in &others {
                tables.informers.remove(&informer.name);
            }
            others
        };
        for informer in others {
            informer.stop();
        }
    }

    /// The Machines without a ScheduledMachine that are not being deleted.
    pub(crate) fn orphans(&self) -> usize {
        let machines = self.machine_caches().into_iter();
        let machines = machines.flat_map(|informer| informer.store.all());
        let left = machines.filter(|(_, object)| self.is_left(object));
        left.count()
    }

    /// The Machine of the ScheduledMachine of that name, if it is one of these.
    pub(crate) fn orphan_of(&self, key: &Key) -> Option<Value> {
        let caches = self.machine_caches().into_iter();
        let mut machines = caches.filter_map(|informer| informer.store.get(key));
        let left = machines.find(|object| self.is_left(object))?;
        Some(left.value())
    }

    fn machine_caches(&self) -> Vec<Arc<KindInformer>> {
        let mut caches = self.caches();
        caches.retain(|informer| informer.projection == CachedKind::Machine);
        caches
    }

    fn is_left(&self, machine: &Object) -> bool {
        let owners = &self.scheduled_machines.store;
        let is_gone = |owner: &Target| match owner {
            Target::One(owner) => owners.get(owner).is_none(),
            _ => false,
        };
        machine.targets.iter().any(is_gone)
            && machine.value()["metadata"]["deletionTimestamp"].is_null()
    }

    /// The cache of overrides. The first call of each of these starts a watch.
    pub(crate) fn override_cache(self: &Arc<Self>) -> Arc<KindInformer> {
        self.informer(&kind::schedule_override(), CachedKind::Override)
    }

    /// The cache of ScheduledCapacities.
    pub(crate) fn capacity_cache(self: &Arc<Self>) -> Arc<KindInformer> {
        self.informer(&kind::scheduled_capacity(), CachedKind::Capacity)
    }

    /// The cache of ScheduledMachineSets.
    pub(crate) fn set_cache(self: &Arc<Self>) -> Arc<KindInformer> {
        self.informer(&kind::scheduled_machine_set(), CachedKind::Set)
    }

    /// The cache of the schedules of a kind that other objects follow.
    pub(crate) fn spot_schedule_cache(
        self: &Arc<Self>,
        of_kind: &str,
    ) -> Arc<KindInformer> {
        let cached = CachedKind::SpotSchedule(of_kind.to_owned());
        self.informer(&kind::spot_schedule(of_kind), cached)
    }
}
