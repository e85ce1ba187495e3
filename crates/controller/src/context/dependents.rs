//! Which objects of the kinds that have a controller of their own are enqueued by a change of others.

use std::sync::Arc;

use fivespot_api::name::SPOT_KINDS;

use super::Context;
use crate::Key;
use crate::kind::{self, cache_name};
use crate::observe::projection::{
    KindInformer, hosted_term, spot_schedule_term, target_group_term,
};
use crate::spot_schedule::spot_schedules::SpotSchedules;

impl Context {
    /// The cached ScheduledCapacities that an index term finds; none before they are watched.
    pub(crate) fn capacities_by(&self, term: &str) -> Vec<Key> {
        let cache = self.cache(&cache_name(&kind::scheduled_capacity()));
        cache.map_or_else(Vec::new, |cache| cache.store.found_by(term))
    }

    /// ScheduledMachines of a namespace have changed, and with them perhaps their Nodes.
    pub(crate) fn machines_of_changed(&self, namespace: &str) {
        self.capacities
            .enqueue(self.capacities_by(&hosted_term(namespace)));
    }

    /// A CustomResourceDefinition of `group` has changed, and with it perhaps what targets are.
    pub(crate) fn group_of_targets_changed(&self, group: &str) {
        self.capacities
            .enqueue(self.capacities_by(&target_group_term(group)));
    }

    /// Whether the cache shows a ScheduledCapacity of that name.
    pub(crate) fn has_capacity(&self, key: &Key) -> bool {
        let cache = self.cache(&cache_name(&kind::scheduled_capacity()));
        cache.is_some_and(|cache| cache.store.get(key).is_some())
    }

    /// ScheduledMachines have changed: enqueues the sets whose machines have such names.
    pub(crate) fn enqueue_sets_of<'k>(
        &self,
        machines: impl IntoIterator<Item = &'k Key>,
    ) {
        let Some(sets) = self.cache(&cache_name(&kind::scheduled_machine_set())) else {
            return;
        };
        for machine in machines {
            if let Some((set, _)) = machine.name.rsplit_once('-') {
                let set = Key::new(machine.namespace.clone(), set);
                if sets.store.get(&set).is_some() {
                    self.sets.kind.queue.enqueue(&set);
                }
            }
        }
    }

    /// Starts the watches of the schedules that other objects follow.
    pub(crate) fn watch_spot_schedules(self: &Arc<Self>) {
        for kind in SPOT_KINDS {
            self.spot_schedule_cache(kind);
        }
    }

    /// The schedules of a kind.
    pub(crate) fn spot_schedules_of(&self, kind: &str) -> Option<&SpotSchedules> {
        self.spot_schedules.iter().find(|of| of.kind.name == kind)
    }

    /// Enqueues schedules of a kind.
    pub(crate) fn enqueue_spot_schedules<'k>(
        &self,
        kind: &str,
        keys: impl IntoIterator<Item = &'k Key>,
    ) {
        if let Some(of_kind) = self.spot_schedules_of(kind) {
            for key in keys {
                of_kind.kind.queue.enqueue(key);
            }
        }
    }

    /// Enqueues the cached schedules of that name.
    pub(crate) fn enqueue_spot_schedules_named(&self, key: &Key) {
        for of_kind in &self.spot_schedules {
            let cache = self.cache(&cache_name(&kind::spot_schedule(of_kind.kind.name)));
            if cache.is_some_and(|cache| cache.store.get(key).is_some()) {
                of_kind.kind.queue.enqueue(key);
            }
        }
    }

    /// Enqueues the machines and the capacities that follow a schedule.
    pub(crate) fn enqueue_followers(&self, kind: &str, key: &Key) {
        let term = spot_schedule_term(kind, key);
        self.enqueue_keys(self.scheduled_machines.store.found_by(&term));
        self.capacities.enqueue(self.capacities_by(&term));
    }

    /// The cache shows a change of a schedule. Enqueues it and, if its spec has changed, the
    /// machines that follow it: what it publishes changes nothing for them.
    pub(crate) fn spot_schedule_changed(
        &self,
        informer: &KindInformer,
        kind: &str,
        key: &Key,
    ) {
        self.followed.forget(&spot_schedule_term(kind, key));
        self.enqueue_spot_schedules(kind, [key]);
        let shows_other_spec = self
            .spot_schedules_of(kind)
            .is_none_or(|of| of.show(informer, key));
        if shows_other_spec {
            self.enqueue_followers(kind, key);
        }
    }
}
