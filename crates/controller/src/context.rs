//! The state that all parts of the running controller share.

mod caches;
mod dependents;
pub(crate) mod enqueue;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt as _, abortable};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::ApiResource;
use kubemu_clock::Clock;
use tokio::sync::mpsc::UnboundedSender;

use fivespot_api::{Phase, Resolved, name};

use crate::class_rates::ClassRates;
use crate::class_turns::ClassTurns;
use crate::host_pool::HostPools;
use crate::kind::{self, cache_name, scheduled_machine};
use crate::large_creates::LargeCreates;
use crate::object_state::{ObjectState, ReportedState};
use crate::observe::discovery::Discovery;
use crate::observe::name_conflict::NameConflicts;
use crate::observe::own_crd::OwnCrd;
use crate::observe::projection::{CachedKind, KindInformer};
use crate::observe::provided::ProvidedSchedules;
use crate::observe::read_class::ReadClass;
use crate::observe::read_once::ReadOnce;
use crate::observe::read_result::ReadResult;
use crate::observe::watch::{WatchScope, fill};
use crate::observe::workload::{Workload, pods_of};
use crate::orphan::reported::ReportedOrphans;
use crate::own_kind::OwnKind;
use crate::report::unpublished::Unpublished;
use crate::schedule_override::overrides::Overrides;
use crate::scheduled_machine_set::sets::Sets;
use crate::spot_schedule::spot_schedules::{self, SpotSchedules};
use crate::telemetry::metrics::Metrics;
use crate::{Controllers, Coordination, Key, Namespaces, Options};
use fivespot_runtime::cache::{SharedReads, Task};
use fivespot_runtime::http::{ApiClient, Exchange, Outage};
use fivespot_runtime::lease::{Fence, Ownership, Role};
use fivespot_runtime::queue::{Backoff, StartLimit, WorkQueue};
use fivespot_runtime::watch::Selector;
use fivespot_schedule::Dates;

/// The options, the work queue, the caches and the state kept per ScheduledMachine.
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) backoff: Backoff,
    /// The client of the management cluster.
    pub(crate) api: ApiClient,
    /// Whether the management cluster responds.
    pub(crate) outage: Arc<Outage>,
    /// Watches of names that are taken by objects without our label.
    pub(crate) name_conflicts: NameConflicts,
    pub(crate) queue: WorkQueue,
    /// The overrides, which have a controller of their own.
    pub(crate) overrides: Overrides,
    /// The ScheduledCapacities, which have a controller of their own.
    pub(crate) capacities: OwnKind,
    /// The ScheduledMachineSets, which have a controller of their own.
    pub(crate) sets: Sets,
    /// The dates of calendars; `None` for one that cannot be parsed.
    pub(crate) calendars: ReadOnce<Key, Option<Dates>>,
    /// The schedules that machines follow, by their index term; `None` for one that cannot be
    /// parsed.
    pub(crate) followed: ReadOnce<String, Option<Resolved>>,
    /// The same schedules, by kind, which have a controller of their own.
    pub(crate) spot_schedules: [SpotSchedules; 2],
    /// The classes of machines, by their index term; `None` for one that cannot be parsed.
    pub(crate) classes: ReadOnce<String, Option<Arc<ReadClass>>>,
    /// The schedules of other providers.
    pub(crate) provided: ProvidedSchedules,
    /// Whose turn it is to claim a host of a class.
    pub(crate) host_pools: HostPools,
    /// Whose turn it is where a class limits its machines.
    pub(crate) class_turns: ClassTurns,
    /// When machines may begin and leave where their class has rates.
    pub(crate) class_rates: ClassRates,
    pub(crate) fence: Arc<Fence>,
    starts: Mutex<StartLimit>,
    pub(crate) discovery: Discovery,
    pub(crate) own_crd: OwnCrd,
    pub(crate) large_creates: LargeCreates,
    /// Live reads of objects that many ScheduledMachines have in common.
    pub(crate) shared: SharedReads<ReadResult>,
    pub(crate) scheduled_machines: Arc<KindInformer>,
    role: Mutex<Role>,
    tables: Mutex<Tables>,
    /// The Machines without a ScheduledMachine for which an Event was written.
    pub(crate) reported_orphans: ReportedOrphans,
    tasks: UnboundedSender<BoxFuture<'static, ()>>,
}

#[derive(Default)]
struct Tables {
    /// The caches, by name.
    informers: BTreeMap<String, Arc<KindInformer>>,
    /// The names of those of the management cluster that have not been filled yet.
    unfilled: BTreeSet<String>,
    workloads: BTreeMap<Key, Arc<Workload>>,
    /// Boxed, because a map reserves up to twice the space of its entries.
    states: BTreeMap<Key, Box<ObjectState>>,
    /// By API group: the keys of machines and capacities that requested a kind that was not served.
    unserved: BTreeMap<String, BTreeSet<Key>>,
}

impl Tables {
    /// Empty ones, but for a cache that is watched from the beginning.
    fn of(watched: Option<(String, Arc<KindInformer>)>) -> Self {
        Self {
            unfilled: watched.iter().map(|(name, _)| name.clone()).collect(),
            informers: watched.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// The client of the management cluster, whose requests are counted, and show whether it responds.
pub(crate) fn management_client(
    client: Client,
    metrics: &Arc<Metrics>,
    outage: &Arc<Outage>,
) -> ApiClient {
    let (metrics, outage) = (metrics.clone(), outage.clone());
    let observer = move |exchange: &Exchange<'_>| {
        outage.record(exchange.answer);
        metrics.count_request("management", exchange);
    };
    ApiClient::new(client, name::FIELD_MANAGER).observed_by(Arc::new(observer))
}

/// How many objects of the kinds beside ScheduledMachines are reconciled concurrently.
const OTHERS: NonZeroUsize = NonZeroUsize::new(16).unwrap();
/// Those of one edge get their share of a server.
const CAPACITIES: NonZeroUsize = NonZeroUsize::new(64).unwrap();
const SETS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

impl Context {
    /// Creates the context and starts nothing. Tasks that are started later are sent to `tasks` to
    /// be polled.
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
        let outage = Arc::new(Outage::new("the management cluster"));
        let api = management_client(options.client.clone(), &metrics, &outage);
        let resource = scheduled_machine();
        let name = cache_name(&resource);
        let informer = Arc::new(KindInformer::new(
            name.clone(),
            resource,
            CachedKind::ScheduledMachine,
        ));
        let Controllers { machines, capacity } = options.controllers;
        let tables = Tables::of(machines.then_some((name, informer.clone())));
        let clock = options.clock.clone();
        let fence = Fence::new(clock.steady(), ownership);
        let of_kind = |name, limit, is_enabled| {
            OwnKind::new(name, &clock, backoff, &fence, limit, is_enabled)
        };
        Self {
            queue: of_kind("", options.max_concurrent, machines).queue,
            metrics,
            backoff,
            calendars: ReadOnce::default(),
            followed: ReadOnce::default(),
            classes: ReadOnce::default(),
            host_pools: HostPools::default(),
            class_turns: ClassTurns::default(),
            class_rates: ClassRates::default(),
            provided: ProvidedSchedules::default(),
            spot_schedules: spot_schedules::all(|kind| of_kind(kind, OTHERS, machines)),
            overrides: Overrides::new(of_kind(name::OVERRIDE_KIND, OTHERS, machines)),
            capacities: of_kind(name::CAPACITY_KIND, CAPACITIES, capacity),
            sets: Sets::new(of_kind(name::SET_KIND, SETS, machines)),
            clock,
            fence: Arc::new(fence),
            discovery: Discovery::new(api.clone()),
            own_crd: OwnCrd::default(),
            large_creates: LargeCreates::default(),
            shared: SharedReads::default(),
            api,
            outage,
            name_conflicts: NameConflicts::default(),
            scheduled_machines: informer,
            starts: Mutex::new(StartLimit::at_most(options.max_starts_per_minute)),
            role: Mutex::new(role),
            tables: Mutex::new(tables),
            reported_orphans: ReportedOrphans::default(),
            tasks,
            options,
        }
    }

    /// The kinds beside ScheduledMachines that have a controller, in the order in which they are
    /// polled.
    pub(crate) fn other_kinds(&self) -> [&OwnKind; 5] {
        let [one, other] = &self.spot_schedules;
        let (overrides, sets) = (&self.overrides.kind, &self.sets.kind);
        [overrides, &one.kind, &other.kind, sets, &self.capacities]
    }

    /// Whether `key` may start a machine now; if not, after how long to try again. Enqueues whose
    /// turn comes because of that.
    pub(crate) fn try_start(&self, key: &Key, rank: u8) -> Result<(), SignedDuration> {
        self.with_starts(|starts, now| {
            let tried = starts.try_start(key, rank, now);
            tried.map_err(|turn| turn.duration_since(now))
        })
    }

    /// Records that `key` has no machine to start, and enqueues whose turn comes because of that.
    pub(crate) fn leave_starts(&self, key: &Key) {
        self.with_starts(|starts, _| starts.leave(key));
    }

    fn with_starts<T>(&self, of: impl FnOnce(&mut StartLimit, Timestamp) -> T) -> T {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        // The limit uses the steady clock, which does not change when the clock is set.
        let now = self.fence.clock().now();
        let result = of(&mut starts, now);
        let next = starts.next(now);
        drop(starts);
        self.enqueue_keys(next);
        result
    }

    /// Records that `key`, which was allowed to start a machine, has not started one.
    pub(crate) fn cancel_start(&self, key: &Key) {
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        starts.cancel_start(key);
    }

    /// The role of this replica.
    pub(crate) fn role(&self) -> Role {
        let role = self.role.lock();
        role.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The phase of `key` according to the last reconcile.
    pub(crate) fn phase(&self, key: &Key) -> Option<Phase> {
        let tables = self.tables();
        let reported = tables.states.get(key)?.reported.as_ref()?;
        Some(reported.phase)
    }

    /// What the last reconcile reported of each ScheduledMachine.
    pub(crate) fn reported(&self) -> Vec<(Key, ReportedState)> {
        let tables = self.tables();
        let states = tables.states.iter();
        states
            .filter_map(|(key, state)| Some((key.clone(), state.reported.clone()?)))
            .collect()
    }

    /// Records and logs the role of this replica.
    pub(crate) fn set_role(&self, role: Role) {
        let mut before = self.role.lock().unwrap_or_else(PoisonError::into_inner);
        if *before == role {
            return;
        }
        match &role {
            Role::Barred(holder) => tracing::error!(
                holder,
                "another replica holds the Lease, and this one runs without leader election: it \
                 writes nothing; stop one of them, or start both with --enable-leader-election"
            ),
            Role::OtherShards { own, other } => tracing::error!(
                own,
                other,
                "other replicas use another number of shards: this one writes nothing until they \
                 have ended; start all of them with the same --instance-count"
            ),
            _ => tracing::info!(?role, "role of this replica changed"),
        }
        *before = role;
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `future` concurrently until the task or the controller is dropped.
    pub(crate) fn spawn(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Task {
        let (future, handle) = abortable(future);
        // Refused only when the controller is being dropped.
        let _ = self.tasks.send(future.map(|_| ()).boxed());
        Task(handle)
    }

    /// Runs `future` concurrently until it ends or the controller is dropped.
    pub(crate) fn spawn_detached(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        // Refused only when the controller is being dropped.
        let _ = self.tasks.send(future.boxed());
    }

    /// Starts the watches of the kinds beside ScheduledMachines that this replica reconciles, or needs,
    /// unless they run.
    pub(crate) fn watch_own_kinds(self: &Arc<Self>) {
        let Controllers { machines, capacity } = self.options.controllers;
        if machines {
            self.set_cache();
        }
        self.override_cache();
        if capacity {
            self.capacity_cache();
        }
    }

    /// The cache of ScheduledMachines. The first call starts their watch where only capacities are
    /// reconciled, of which few name a Node.
    pub(crate) fn machines_of_nodes(self: &Arc<Self>) -> Arc<KindInformer> {
        let informer = self.scheduled_machines.clone();
        let is_new = {
            let mut tables = self.tables();
            let name = informer.name.clone();
            let known = tables.informers.insert(name, informer.clone());
            known.is_none()
        };
        if is_new {
            self.watch(&informer, None);
        }
        informer
    }

    /// Starts one watch per configured namespace, or one for all.
    pub(crate) fn watch(
        self: &Arc<Self>,
        informer: &Arc<KindInformer>,
        selector: Option<Selector>,
    ) {
        let namespaces = match &self.options.namespaces {
            Namespaces::All => vec![None],
            Namespaces::Only(some) => some.iter().cloned().map(Some).collect(),
        };
        for namespace in namespaces {
            self.watch_in(informer, namespace, selector.clone());
        }
    }

    /// Starts one watch, in a namespace or of everything.
    pub(crate) fn watch_in(
        self: &Arc<Self>,
        informer: &Arc<KindInformer>,
        namespace: Option<String>,
        selector: Option<Selector>,
    ) {
        let scope = WatchScope {
            namespace,
            selector,
            ..WatchScope::of(self.api.clone())
        };
        self.follow(informer, scope);
    }

    /// Starts one watch that fills a cache.
    pub(crate) fn follow(
        self: &Arc<Self>,
        informer: &Arc<KindInformer>,
        scope: WatchScope,
    ) {
        informer.add_task(self.spawn(fill(self.clone(), informer.clone(), scope)));
    }

    /// A CustomResourceDefinition of `group` has changed: forgets the discovery of the group and
    /// enqueues the keys that requested a kind that was not served. Returns whether there were
    /// any.
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
            let waiting = self.cache(&name).map(|informer| informer.record_success());
            self.drop_cache(&name);
            self.enqueue_waiting(waiting.into_iter().flatten());
        }
        let is_awaited = !keys.is_empty();
        self.enqueue_waiting(keys);
        self.group_of_targets_changed(group);
        is_awaited
    }

    /// Records that `key` requested a kind of `group` that is not served.
    pub(crate) fn record_unserved(&self, group: &str, key: &Key) {
        let mut tables = self.tables();
        let keys = tables.unserved.entry(group.to_owned()).or_default();
        keys.insert(key.clone());
    }

    /// The groups of which a kind was requested that is not served.
    pub(crate) fn unserved_groups(&self) -> Vec<String> {
        self.tables().unserved.keys().cloned().collect()
    }

    /// Reads or changes the state kept for `key`.
    pub(crate) fn state<T>(
        &self,
        key: &Key,
        with: impl FnOnce(&mut ObjectState) -> T,
    ) -> T {
        with(self.tables().states.entry(key.clone()).or_default())
    }

    /// Takes the unpublished events of `key` after it has created a machine.
    pub(crate) fn created_events(&self, key: &Key) -> Vec<Unpublished> {
        let mut tables = self.tables();
        let Some(state) = tables.states.get_mut(key) else {
            return Vec::new();
        };
        state.has_created = false;
        std::mem::take(&mut state.unpublished)
    }

    /// Removes all state of `key`: the ScheduledMachine is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.leave_hosts(key);
        self.leave_class(key);
        self.leave_starts(key);
        self.release(key, None);
        self.drop_cache(&pods_of(key));
        self.name_conflicts.forget(key);
        self.tables().states.remove(key);
        if !self.has_capacity(key) {
            self.forget_unserved(key);
        }
    }

    /// Forgets that `key` requested a kind that is not served.
    pub(crate) fn forget_unserved(&self, key: &Key) {
        self.tables().unserved.retain(|_, keys| {
            keys.remove(key);
            !keys.is_empty()
        });
    }

    /// Records that `key` waits for no host of a class, and enqueues whose turn it is.
    pub(crate) fn leave_hosts(&self, key: &Key) {
        self.enqueue_keys(self.host_pools.leave(key));
    }

    /// Records that `key` claims nothing of any class, and enqueues whose turn it is.
    pub(crate) fn leave_class(&self, key: &Key) {
        self.leave_limits(key);
        self.leave_rates(key, self.queue.now());
    }

    /// Records that `key` claims nothing of the limits of a class, and enqueues whose turn it is.
    pub(crate) fn leave_limits(&self, key: &Key) {
        self.enqueue_keys(self.class_turns.leave(key));
    }

    /// Records that `key` claims nothing of the rates of a class, and enqueues who may begin or leave
    /// because of that.
    pub(crate) fn leave_rates(&self, key: &Key, now: Timestamp) {
        self.enqueue_keys(self.class_rates.leave(key, now));
    }

    /// Whether this replica may act on `key`.
    pub(crate) fn is_own(&self, key: &Key) -> bool {
        self.fence.covers(&self.uid(key))
    }

    /// The uid of `key` according to the cache, or the last one it has shown; empty if there was
    /// none.
    pub(crate) fn uid(&self, key: &Key) -> String {
        let shown = self.scheduled_machines.store.get(key);
        self.state(key, |state| {
            if let Some(shown) = shown {
                state.uid.clone_from(&shown.uid);
            }
            state.uid.clone()
        })
    }

    /// The cached objects of a kind that this replica may act on.
    fn own_of(&self, kind: &ApiResource) -> Vec<Key> {
        let cache = self.cache(&cache_name(kind));
        let mut all = cache.map_or_else(Vec::new, |cache| cache.store.all());
        all.retain(|(_, object)| self.fence.covers(&object.uid));
        all.into_iter().map(|(key, _)| key).collect()
    }

    /// Enqueues every cached set that this replica may act on.
    pub(crate) fn enqueue_sets(&self) {
        let sets = self.own_of(&kind::scheduled_machine_set());
        self.sets.kind.enqueue(sets);
    }

    /// Enqueues everything that this replica may act on.
    pub(crate) fn enqueue_owned(&self) {
        self.overrides
            .kind
            .enqueue(self.own_of(&kind::schedule_override()));
        self.capacities
            .enqueue(self.own_of(&kind::scheduled_capacity()));
        self.enqueue_sets();
        for informer in self.caches() {
            if let CachedKind::SpotSchedule(kind) = &informer.projection {
                self.enqueue_spot_schedules(kind, &informer.store.keys());
            }
        }
        let keys = self.scheduled_machines.store.keys();
        self.enqueue_keys(keys.into_iter().filter(|key| self.is_own(key)));
    }
}

#[cfg(test)]
mod tests;
