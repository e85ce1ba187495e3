//! What all parts of the running controller share.

mod enqueue;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_capi::Reference;
use fivespot_clock::Clock;
use futures::future::{BoxFuture, FutureExt as _, abortable};
use jiff::SignedDuration;
use kube::api::ApiResource;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

use fivespot_api::{Phase, name};

use crate::kind::{self, cache_name, scheduled_machine};
use crate::object_state::{ObjectState, Reported};
use crate::observe::Answer;
use crate::observe::definitions::follow_definitions;
use crate::observe::discovery::Discovery;
use crate::observe::name_conflict::NameConflicts;
use crate::observe::own_definition::OwnDefinition;
use crate::observe::projection::CachedKind;
use crate::observe::watch::KindInformer;
use crate::observe::watch::{WatchScope, fill};
use crate::observe::workload::{Workload, pods_of};
use crate::orphan;
use crate::report::Unpublished;
use crate::schedule_override;
use crate::schedule_override::ended::EndedOverrides;
use crate::telemetry::metrics::{Metrics, counted};
use crate::{Coordination, Key, Namespaces, Options};
use fivespot_runtime::cache::{Health, Shared, Task, Version};
use fivespot_runtime::http::ApiClient;
use fivespot_runtime::http::{Outage, noted};
use fivespot_runtime::lease::{Fence, Ownership, Role};
use fivespot_runtime::queue::Backoff;
use fivespot_runtime::queue::StartLimit;
use fivespot_runtime::queue::WorkQueue;
use fivespot_runtime::watch::Selector;

/// The options, the queue, the caches and what is remembered of each ScheduledMachine.
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) backoff: Backoff,
    /// The management cluster.
    pub(crate) api: ApiClient,
    /// Whether it answers.
    pub(crate) outage: Arc<Outage>,
    /// Names that are taken by others.
    pub(crate) name_conflicts: NameConflicts,
    pub(crate) queue: WorkQueue,
    pub(crate) fence: Arc<Fence>,
    starts: Mutex<StartLimit>,
    pub(crate) discovery: Discovery,
    pub(crate) own_definition: OwnDefinition,
    /// Creates of objects that are large take turns.
    pub(crate) large_creates: Semaphore,
    /// Live reads of what many ScheduledMachines have in common.
    pub(crate) shared: Shared<Answer>,
    pub(crate) scheduled_machines: Arc<KindInformer>,
    role: Mutex<Role>,
    tables: Mutex<Tables>,
    /// Which overrides have ended.
    pub(crate) ended_overrides: EndedOverrides,
    /// Of which Machines without a ScheduledMachine an Event was written.
    pub(crate) reported_orphans: orphan::Reported,
    tasks: UnboundedSender<BoxFuture<'static, ()>>,
}

#[derive(Default)]
struct Tables {
    /// The caches, by their names.
    informers: BTreeMap<String, Arc<KindInformer>>,
    workloads: BTreeMap<Key, Arc<Workload>>,
    /// Boxed, because a map keeps room for twice as many as there are.
    states: BTreeMap<Key, Box<ObjectState>>,
    /// Who asked for a kind of this group that was not served.
    unserved: BTreeMap<String, BTreeSet<Key>>,
}

impl Context {
    /// Starts nothing. What is started later is sent to `tasks` to be polled.
    pub(crate) fn new(
        options: Options,
        tasks: UnboundedSender<BoxFuture<'static, ()>>,
    ) -> Self {
        let backoff = Backoff::seeded(options.seed);
        let (ownership, role) = match options.coordination {
            Coordination::Alone => (Ownership::Everything, Role::Alone),
            Coordination::Unelected(_)
            | Coordination::Leader(_)
            | Coordination::Shards { .. } => (Ownership::Nothing, Role::Undecided),
        };
        let metrics = options.instruments.counters().clone();
        let client = counted(options.client.clone(), &metrics, "management");
        let outage = Arc::new(Outage::of("the management cluster"));
        let api = ApiClient::new(noted(client, &outage), name::FIELD_MANAGER);
        let resource = scheduled_machine();
        let name = cache_name(&resource);
        let informer = Arc::new(KindInformer::new(
            name.clone(),
            resource,
            CachedKind::ScheduledMachine,
        ));
        let tables = Tables {
            informers: BTreeMap::from([(name, informer.clone())]),
            ..Tables::default()
        };
        Self {
            clock: options.clock.clone(),
            metrics,
            backoff,
            queue: WorkQueue::new(options.clock.clone(), backoff),
            fence: Arc::new(Fence::new(options.clock.steady(), ownership)),
            discovery: Discovery::new(api.clone()),
            own_definition: OwnDefinition::default(),
            ended_overrides: EndedOverrides::default(),
            large_creates: Semaphore::new(2),
            shared: Shared::default(),
            api,
            outage,
            name_conflicts: NameConflicts::default(),
            scheduled_machines: informer,
            starts: Mutex::new(StartLimit::at_most(options.max_starts_per_minute)),
            role: Mutex::new(role),
            tables: Mutex::new(tables),
            reported_orphans: orphan::Reported::default(),
            tasks,
            options,
        }
    }

    /// Whether `key` may start a machine now; if not, after how long it is to ask again.
    pub(crate) fn may_start(&self, key: &Key, rank: u8) -> Result<(), SignedDuration> {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        // A minute is a minute, however the clock is set.
        let now = self.fence.clock().now();
        starts
            .try_start(key, rank, now)
            .map_err(|turn| turn.duration_since(now))
    }

    /// `key` was allowed to start a machine, and has not.
    pub(crate) fn has_not_started(&self, key: &Key) {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        starts.give_back(key);
    }

    /// What this instance does beside the others.
    pub(crate) fn role(&self) -> Role {
        let role = self.role.lock();
        role.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The caches there are.
    pub(crate) fn caches(&self) -> Vec<Arc<KindInformer>> {
        self.tables().informers.values().cloned().collect()
    }

    /// Whether a cache can be asked about every namespace that is looked after.
    pub(crate) fn cache_health(&self, informer: &KindInformer) -> Health {
        let Namespaces::Only(some) = &self.options.namespaces else {
            return informer.health("");
        };
        let all = some.iter().map(|namespace| informer.health(namespace));
        let mut lacking = all.filter(|health| *health != Health::Synced);
        lacking.next().unwrap_or(Health::Synced)
    }

    /// The phase of `key`, as the last reconcile left it.
    pub(crate) fn phase(&self, key: &Key) -> Option<Phase> {
        let tables = self.tables();
        let reported = tables.states.get(key)?.reported.as_ref()?;
        Some(reported.phase)
    }

    /// What the last reconcile reported of each ScheduledMachine.
    pub(crate) fn reported(&self) -> Vec<(Key, Reported)> {
        let tables = self.tables();
        let states = tables.states.iter();
        states
            .filter_map(|(key, state)| Some((key.clone(), state.reported.clone()?)))
            .collect()
    }

    /// Notes what this instance does beside the others.
    pub(crate) fn note_role(&self, role: Role) {
        let mut before = self.role.lock().unwrap_or_else(PoisonError::into_inner);
        if *before == role {
            return;
        }
        match &role {
            Role::Barred(holder) => tracing::error!(
                holder,
                "another instance holds the Lease, and this one takes no part in the election: it \
                 writes nothing; stop one of them, or start both with --enable-leader-election"
            ),
            Role::OtherShards { own, other } => tracing::error!(
                own,
                other,
                "other instances divide the objects among another number of shards: this one \
                 writes nothing until they have ended; give all the same --instance-count"
            ),
            _ => tracing::info!(?role, "role among instances changed"),
        }
        *before = role;
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `future` beside everything else until the task or the controller is dropped.
    pub(crate) fn spawn(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Task {
        let (future, handle) = abortable(future);
        // Refused only when the controller is being dropped.
        let _ = self.tasks.send(future.map(|_| ()).boxed());
        Task(handle)
    }

    /// Runs `future` beside everything else until it ends or the controller is dropped.
    pub(crate) fn spawn_detached(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        // Refused only when the controller is being dropped.
        let _ = self.tasks.send(future.boxed());
    }

    /// Begins to watch the ScheduledMachines and the kinds that are served.
    pub(crate) fn start(self: &Arc<Self>) {
        let informer = self.scheduled_machines.clone();
        self.watch(&informer, None);
        schedule_override::informer(self);
        self.spawn_detached(follow_definitions(self.clone()));
    }

    /// One watch per namespace that was asked for, or one for all.
    fn watch(self: &Arc<Self>, informer: &Arc<KindInformer>, selector: Option<Selector>) {
        let parts = match &self.options.namespaces {
            Namespaces::All => vec![None],
            Namespaces::Only(some) => some.iter().cloned().map(Some).collect(),
        };
        for part in parts {
            let scope = WatchScope {
                api: self.api.clone(),
                namespace: part.clone(),
                selector: selector.clone(),
                part,
                link: None,
                budget: None,
            };
            informer.keep(self.spawn(fill(self.clone(), informer.clone(), scope)));
        }
    }

    /// The cache of a kind of the management cluster; its watch begins with the first call.
    pub(crate) fn informer(
        self: &Arc<Self>,
        resource: &ApiResource,
        projection: CachedKind,
    ) -> Arc<KindInformer> {
        let selector = match projection {
            CachedKind::Machine | CachedKind::Provider => {
                Some(Selector::Labels(name::SCHEDULED_MACHINE_LABEL.to_owned()))
            }
            _ => None,
        };
        let cache = cache_name(resource);
        let (informer, is_new) = self.ensure(cache, resource.clone(), projection);
        if is_new {
            self.watch(&informer, selector);
        }
        informer
    }

    /// The kind that `place` names without a version, if it is watched in one already: two
    /// watches would show the same objects twice.
    pub(crate) fn in_use(&self, place: &Reference) -> Option<ApiResource> {
        if place.version.is_some() {
            return None;
        }
        let tables = self.tables();
        let mut informers = tables.informers.values();
        let found = informers.find(|informer| {
            informer.projection == CachedKind::Provider
                && (&informer.resource.group, &informer.resource.kind)
                    == (&place.group, &place.kind)
                && !informer.is_failing()
        });
        found.map(|informer| informer.resource.clone())
    }

    /// The cache of that name.
    pub(crate) fn cache(&self, name: &str) -> Option<Arc<KindInformer>> {
        self.tables().informers.get(name).cloned()
    }

    /// The cache of that name, and whether it has just been made and is to be filled.
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
        tables.informers.insert(name, informer.clone());
        (informer, true)
    }

    /// Forgets a cache and ends its watches.
    pub(crate) fn drop_cache(&self, name: &str) {
        let dropped = self.tables().informers.remove(name);
        if let Some(informer) = dropped {
            informer.stop();
        }
    }

    /// A CustomResourceDefinition of `group` has changed: asks discovery anew and wakes
    /// whoever could not be served. Says whether anybody was.
    pub(crate) fn group_changed(&self, group: &str) -> bool {
        self.discovery.forget(group);
        let (failing, keys) = {
            let mut tables = self.tables();
            let informers = tables.informers.values();
            let failing: Vec<String> = informers
                .filter(|informer| {
                    informer.resource.group == group && informer.is_failing()
                })
                .filter(|informer| informer.name != self.scheduled_machines.name)
                .map(|informer| informer.name.clone())
                .collect();
            (failing, tables.unserved.remove(group).unwrap_or_default())
        };
        for name in failing {
            let waiting = self.cache(&name).map(|informer| informer.recover());
            self.drop_cache(&name);
            self.wake_keys(waiting.into_iter().flatten());
        }
        let is_awaited = !keys.is_empty();
        self.wake_keys(keys);
        is_awaited
    }

    /// A definition of 5-Spot's own has changed: tries again at once to watch what was not served,
    /// and looks at every ScheduledMachine again if the one of that kind has other fields now.
    pub(crate) async fn own_group_changed(self: &Arc<Self>) {
        let informer = self.scheduled_machines.clone();
        if informer.is_failing() {
            informer.stop();
            self.watch(&informer, None);
        }
        schedule_override::informer(self);
        if self.own_definition.read(&self.api).await {
            self.wake_own();
        }
    }

    /// The kind of `informer` is not served under that version any more, or for a moment: whoever
    /// looks next asks discovery, and follows what that says.
    pub(crate) fn has_moved(&self, informer: &KindInformer) {
        self.discovery.forget(&informer.resource.group);
        if informer.name != self.scheduled_machines.name {
            self.drop_cache(&informer.name);
        }
    }

    /// The kinds of `group` are used in `version` from now on: no other is watched any more.
    pub(crate) fn leave_versions(&self, group: &str, version: &str) {
        let others: Vec<Arc<KindInformer>> = {
            let mut tables = self.tables();
            let is_other = |informer: &Arc<KindInformer>| {
                informer.resource.group == group && informer.resource.version != version
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

    /// `key` asked for a kind of `group` that is not served.
    pub(crate) fn not_served(&self, group: &str, key: &Key) {
        let mut tables = self.tables();
        let keys = tables.unserved.entry(group.to_owned()).or_default();
        keys.insert(key.clone());
    }

    /// The groups of which somebody asked for a kind that is not served.
    pub(crate) fn unserved_groups(&self) -> Vec<String> {
        self.tables().unserved.keys().cloned().collect()
    }

    /// Looks at what is remembered of `key`, or changes it.
    pub(crate) fn state<T>(
        &self,
        key: &Key,
        with: impl FnOnce(&mut ObjectState) -> T,
    ) -> T {
        with(self.tables().states.entry(key.clone()).or_default())
    }

    /// What was left to report of a machine that `key` has created is reported: the events.
    pub(crate) fn created_events(&self, key: &Key) -> Vec<Unpublished> {
        let mut tables = self.tables();
        let Some(state) = tables.states.get_mut(key) else {
            return Vec::new();
        };
        state.has_created = false;
        std::mem::take(&mut state.unpublished)
    }

    /// Forgets `key`: there is no such ScheduledMachine any more.
    pub(crate) fn forget(&self, key: &Key) {
        self.release(key, None);
        self.drop_cache(&pods_of(key));
        self.name_conflicts.forget(key);
        let mut tables = self.tables();
        tables.states.remove(key);
        for keys in tables.unserved.values_mut() {
            keys.remove(key);
        }
        tables.unserved.retain(|_, keys| !keys.is_empty());
    }

    /// Whether this process has left `object` in that version or a later one.
    pub(crate) fn has_written(
        &self,
        informer: &KindInformer,
        object: &Key,
        version: &Version,
    ) -> bool {
        let tables = self.tables();
        let state = tables.states.get(object);
        state.is_some_and(|state| {
            state.expectations.has_left(&informer.name, object, version)
        })
    }

    /// Whether this instance may act on `key`.
    pub(crate) fn is_own(&self, key: &Key) -> bool {
        self.fence.covers(&self.uid(key))
    }

    /// The uid of `key`, as a cache shows it, or has shown it last; empty where none has.
    pub(crate) fn uid(&self, key: &Key) -> String {
        let shown = self.scheduled_machines.store.get(key);
        self.state(key, |state| {
            if let Some(shown) = shown {
                state.uid.clone_from(&shown.uid);
            }
            state.uid.clone()
        })
    }

    /// Wakes every ScheduledMachine that this instance may act on from now on.
    pub(crate) fn wake_own(&self) {
        if let Some(overrides) = self.cache(&cache_name(&kind::schedule_override())) {
            let keys = overrides.store.keys();
            self.wake_keys(keys.iter().map(schedule_override::queue_key));
        }
        let keys = self.scheduled_machines.store.keys();
        self.wake_keys(keys.into_iter().filter(|key| self.is_own(key)));
    }
}

#[cfg(test)]
mod tests;
