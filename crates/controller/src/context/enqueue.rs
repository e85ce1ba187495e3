//! The keys that an event enqueues.

use std::collections::BTreeSet;

use super::Context;
use crate::Key;
use crate::kind::{cache_name, schedule_override};
use crate::observe::projection::{
    CachedKind, Target, calendar_term, cluster_term, overridden_term,
};
use crate::schedule_override::queue_key;

impl Context {
    /// Enqueues the keys of the targets.
    pub(crate) fn enqueue(&self, targets: BTreeSet<Target>) {
        self.enqueue_keys(self.keys_of(targets));
    }

    /// Whether the targets have any key.
    pub(crate) fn has_any(&self, targets: &[Target]) -> bool {
        !self.keys_of(targets.iter().cloned().collect()).is_empty()
    }

    /// Enqueues the keys of the targets; those that have created a machine with low priority.
    pub(crate) fn enqueue_deferred(&self, targets: BTreeSet<Target>) {
        for key in self.keys_of(targets) {
            self.queue.enqueue_deferred(&key);
        }
    }

    fn keys_of(&self, targets: BTreeSet<Target>) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        for target in targets {
            match target {
                Target::One(key) => keys.extend([key]),
                Target::Override(own) => keys.extend([queue_key(&own)]),
                Target::OverridesOf(machine) => {
                    keys.extend(self.overrides_of(&machine).iter().map(queue_key));
                }
                Target::Namespace(namespace) => {
                    let all = self.scheduled_machines.store.keys().into_iter();
                    keys.extend(all.filter(|key| key.namespace == *namespace));
                }
                Target::Calendar(calendar) => {
                    let term = calendar_term(&calendar);
                    keys.extend(self.scheduled_machines.store.found_by(&term));
                }
                Target::Cluster(cluster) => keys.extend(self.of_cluster(&cluster)),
                Target::Machine(terms) => {
                    keys.extend(terms.iter().flat_map(|term| self.machines(term)));
                }
            }
        }
        keys
    }

    /// Enqueues these keys.
    pub(crate) fn enqueue_keys(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.queue.enqueue(&key);
        }
    }

    /// The overrides that name a ScheduledMachine.
    fn overrides_of(&self, machine: &Key) -> Vec<Key> {
        let cache = self.cache(&cache_name(&schedule_override()));
        let term = overridden_term(machine);
        cache.map_or_else(Vec::new, |cache| cache.store.found_by(&term))
    }

    /// The ScheduledMachines that name a Cluster, or that have a Machine in it.
    pub(crate) fn of_cluster(&self, cluster: &Key) -> BTreeSet<Key> {
        let term = cluster_term(cluster);
        let mut keys = BTreeSet::from_iter(self.scheduled_machines.store.found_by(&term));
        keys.extend(self.machines(&term));
        keys
    }

    /// The ScheduledMachines of the Machines that the index term finds: a Machine has the name of
    /// its ScheduledMachine.
    pub(crate) fn machines(&self, term: &str) -> Vec<Key> {
        let tables = self.tables();
        let informers = tables.informers.values();
        informers
            .filter(|informer| informer.projection == CachedKind::Machine)
            .flat_map(|informer| informer.store.found_by(term))
            .collect()
    }
}
