//! Which ScheduledMachines an event concerns.

use std::collections::BTreeSet;

use super::Context;
use crate::Key;
use crate::observe::projection::{CachedKind, Target, cluster_term};

impl Context {
    /// Wakes whoever is concerned.
    pub(crate) fn wake(&self, targets: BTreeSet<Target>) {
        self.wake_keys(self.keys_of(targets));
    }

    /// Whether anybody is concerned.
    pub(crate) fn has_any(&self, targets: &[Target]) -> bool {
        !self.keys_of(targets.iter().cloned().collect()).is_empty()
    }

    /// Wakes whoever is concerned; those that have created a machine after others that are due.
    pub(crate) fn wake_deferred(&self, targets: BTreeSet<Target>) {
        for key in self.keys_of(targets) {
            self.queue.wake_deferred(&key);
        }
    }

    fn keys_of(&self, targets: BTreeSet<Target>) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        for target in targets {
            match target {
                Target::One(key) => keys.extend([key]),
                Target::Cluster(cluster) => keys.extend(self.of_cluster(&cluster)),
                Target::Machine(terms) => {
                    keys.extend(terms.iter().flat_map(|term| self.machines(term)));
                }
            }
        }
        keys
    }

    /// Wakes these.
    pub(crate) fn wake_keys(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.queue.wake(&key);
        }
    }

    /// The ScheduledMachines that ask for a Cluster, or whose Machine is in it.
    pub(crate) fn of_cluster(&self, cluster: &Key) -> BTreeSet<Key> {
        let term = cluster_term(cluster);
        let mut keys = BTreeSet::from_iter(self.scheduled_machines.store.found_by(&term));
        keys.extend(self.machines(&term));
        keys
    }

    /// The ScheduledMachines of the Machines that can be found by `term`: a Machine is named
    /// like its ScheduledMachine.
    pub(crate) fn machines(&self, term: &str) -> Vec<Key> {
        let tables = self.tables();
        let informers = tables.informers.values();
        informers
            .filter(|informer| informer.projection == CachedKind::Machine)
            .flat_map(|informer| informer.store.found_by(term))
            .collect()
    }
}
