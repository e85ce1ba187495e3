//! The keys that an event of a watch enqueues.

use std::collections::BTreeSet;
use std::sync::Arc;

use fivespot_api::Provided;
use fivespot_runtime::cache::{Handler, Version};
use fivespot_runtime::http::ApiClient;

use super::Context;
use crate::Key;
use crate::failure;
use crate::observe::projection::{
    CachedKind, KindInformer, Target, calendar_term, class_term, spot_schedule_term,
};
use crate::observe::workload::Workload;

/// Enqueues the ScheduledMachines that a change of a cache affects.
pub(crate) struct Enqueue {
    pub(crate) context: Arc<Context>,
    pub(crate) informer: Arc<KindInformer>,
    pub(crate) link: Option<WatchedCluster>,
}

/// The workload cluster that a watch reports as up or down.
pub(crate) struct WatchedCluster {
    pub(crate) workload: Arc<Workload>,
    pub(crate) api: ApiClient,
}

impl Enqueue {
    /// Records what a change shows, and enqueues what it affects beside the ScheduledMachines that its
    /// targets name.
    fn index(&self, affected: &BTreeSet<Target>) {
        let Context {
            capacities,
            overrides,
            ..
        } = &*self.context;
        let own = affected.iter().filter_map(|target| match target {
            Target::Own(key) => Some(key),
            _ => None,
        });
        match &self.informer.projection {
            CachedKind::ScheduledMachine => self.machines_changed(affected),
            CachedKind::Override => {
                let machines = overrides.changed(&self.informer, own);
                self.context.enqueue_keys(machines);
            }
            kind => own.for_each(|key| self.own_changed(kind, key)),
        }
        for target in affected {
            match target {
                Target::Capacity(key) => capacities.enqueue([key.clone()]),
                Target::Capacities(term) => {
                    capacities.enqueue(self.context.capacities_by(term));
                }
                _ => {}
            }
        }
    }

    fn machines_changed(&self, affected: &BTreeSet<Target>) {
        let Self {
            context, informer, ..
        } = self;
        let keys = affected.iter().filter_map(|target| match target {
            Target::One(key) => Some(key),
            _ => None,
        });
        context.overrides.machines_changed(informer, keys.clone());
        context.enqueue_sets_of(keys.clone());
        let namespaces: BTreeSet<&str> = keys.map(|key| &*key.namespace).collect();
        for namespace in namespaces {
            context.machines_of_changed(namespace);
        }
        for target in affected {
            if let Target::Host(lease) = target {
                context.host_record_changed(lease);
            }
        }
    }

    /// Forgets what was read of an object of that kind, and enqueues it and what depends on it.
    fn own_changed(&self, kind: &CachedKind, key: &Key) {
        let Self {
            context, informer, ..
        } = self;
        match kind {
            CachedKind::Set => context.sets.kind.queue.enqueue(key),
            CachedKind::Capacity => context.overrides.capacity_changed(key),
            CachedKind::Calendar => {
                context.calendars.forget(key);
                context.calendar_changed(key);
            }
            CachedKind::Class => {
                context.classes.forget(&class_term(&key.name));
                context.overrides.class_changed(&key.name);
            }
            CachedKind::HostClaim => context.host_changed(&key.name),
            CachedKind::SpotSchedule(kind) => {
                context.spot_schedule_changed(informer, kind, key);
            }
            CachedKind::ProvidedSchedule(kind) => {
                context.provided_changed(informer, kind, key);
            }
            _ => {}
        }
    }
}

impl Handler<Target> for Enqueue {
    fn changed(&self, affected: BTreeSet<Target>) {
        self.index(&affected);
        self.context.enqueue(affected);
    }

    /// Status updates by Cluster API and providers, and our own writes, enqueue with low priority,
    /// so that machines are created first.
    fn updated(&self, object: &Key, version: &Version, affected: BTreeSet<Target>) {
        self.index(&affected);
        let is_report = match self.informer.projection {
            CachedKind::Machine | CachedKind::Provider => true,
            CachedKind::ScheduledMachine => {
                self.context.has_written(&self.informer, object, version)
            }
            _ => false,
        };
        if is_report {
            self.context.enqueue_deferred(affected);
        } else {
            self.context.enqueue(affected);
        }
    }

    fn synced(&self, waiting: BTreeSet<Key>) {
        let overrides = &self.context.overrides;
        match self.informer.projection {
            CachedKind::ScheduledMachine => {
                overrides.machines_synced(&self.informer);
                self.context.enqueue_sets();
            }
            CachedKind::Override => {
                self.context.enqueue_keys(overrides.synced(&self.informer));
            }
            _ => {}
        }
        self.context.enqueue_waiting(waiting);
    }

    fn responded(&self) {
        if let Some(WatchedCluster { workload, api }) = &self.link {
            workload.mark_up(&self.context, api);
        }
    }

    fn failed(&self, error: &kube::Error, waiting: BTreeSet<Key>) {
        let message = failure::message(error);
        self.context.outage.warn(
            format_args!("watch of {} failed", self.informer.name),
            &message,
        );
        self.context.enqueue_waiting(waiting);
        if let Some(WatchedCluster { workload, .. }) = &self.link {
            workload.handle_error(&self.context, error);
        }
    }

    /// A Node without a Machine is not kept, and of a kind of targets only those that are followed.
    fn needs_content(&self, affected: &[Target]) -> bool {
        match self.informer.projection {
            CachedKind::Node(_) => self.context.has_any(affected),
            CachedKind::CapacityTarget => affected.iter().any(|target| match target {
                Target::Capacities(term) => !self.context.capacities_by(term).is_empty(),
                _ => false,
            }),
            _ => true,
        }
    }
}

impl Context {
    /// Enqueues the keys of the targets.
    pub(crate) fn enqueue(&self, targets: BTreeSet<Target>) {
        self.enqueue_keys(self.keys_of(targets));
    }

    /// Whether the targets have any key.
    fn has_any(&self, targets: &[Target]) -> bool {
        !self.keys_of(targets.iter().cloned().collect()).is_empty()
    }

    /// Enqueues the keys of the targets; those that have created a machine with low priority.
    fn enqueue_deferred(&self, targets: BTreeSet<Target>) {
        for key in self.keys_of(targets) {
            self.queue.enqueue_deferred(&key);
        }
    }

    fn keys_of(&self, targets: BTreeSet<Target>) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        for target in targets {
            match target {
                Target::One(key) => keys.extend([key]),
                Target::Named(key) => {
                    let is_there = self.scheduled_machines.store.get(&key).is_some();
                    keys.extend(is_there.then_some(key));
                }
                Target::Holder(key) => {
                    // Another operator has the machines of other namespaces.
                    let is_ours = self.options.namespaces.contains(&key.namespace);
                    keys.extend(is_ours.then_some(key));
                }
                Target::Machines(term) => {
                    keys.extend(self.scheduled_machines.store.found_by(&term));
                }
                Target::Machine(terms) => {
                    keys.extend(terms.iter().flat_map(|term| self.machines(term)));
                }
                // `index` finds what they affect.
                Target::Host(_)
                | Target::Capacity(_)
                | Target::Capacities(_)
                | Target::Own(_) => {}
            }
        }
        keys
    }

    /// Whether this process has written `object` with that version or a later one as the result.
    fn has_written(
        &self,
        informer: &KindInformer,
        object: &Key,
        version: &Version,
    ) -> bool {
        let tables = self.tables();
        let state = tables.states.get(object);
        state.is_some_and(|state| {
            state
                .expectations
                .has_written_version(&informer.name, object, version)
        })
    }

    /// Enqueues the keys that have waited for a list: ScheduledMachines, ScheduledCapacities or
    /// shared schedules of that name.
    pub(crate) fn enqueue_waiting(&self, waiting: impl IntoIterator<Item = Key>) {
        for key in waiting {
            self.enqueue_spot_schedules_named(&key);
            let is_capacity = self.has_capacity(&key);
            if is_capacity {
                self.capacities.enqueue([key.clone()]);
            }
            if !is_capacity || self.scheduled_machines.store.get(&key).is_some() {
                self.queue.enqueue(&key);
            }
        }
    }

    /// Enqueues these keys.
    pub(crate) fn enqueue_keys(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.queue.enqueue(&key);
        }
    }

    /// The cache shows a change of a schedule of another provider. Enqueues the machines that follow
    /// it; if it changes too often, once a minute.
    fn provided_changed(
        self: &Arc<Self>,
        informer: &Arc<KindInformer>,
        kind: &str,
        key: &Key,
    ) {
        let term = spot_schedule_term(kind, key);
        let Some(cached) = informer.store.get(key) else {
            self.provided.forget(&term);
            self.enqueue_followers(kind, key);
            return;
        };
        let published = Provided::of_object(&cached.value());
        let following = self.provided.follow(&term, &published, self.queue.now());
        let Some(next) = following.next else {
            self.enqueue_followers(kind, key);
            return;
        };
        if self.provided.await_turn(&term) {
            let (own, informer) = (self.clone(), informer.clone());
            let (kind, key) = (kind.to_owned(), key.clone());
            self.spawn_detached(async move {
                own.clock.sleep_until_or_set_back(next).await;
                own.provided.turn(&term);
                own.enqueue_followers(&kind, &key);
                // Until it is quiet, which is followed and reported, too.
                own.provided_changed(&informer, &kind, &key);
            });
        }
    }

    /// A calendar has changed: enqueues the schedules that refer to it, and what follows them.
    fn calendar_changed(&self, calendar: &Key) {
        let term = calendar_term(calendar);
        for informer in self.caches() {
            if let CachedKind::SpotSchedule(kind) = &informer.projection {
                for key in informer.store.found_by(&term) {
                    self.enqueue_spot_schedules(kind, [&key]);
                    self.enqueue_followers(kind, &key);
                }
            }
        }
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
