//! What all parts of the running controller share.

mod target;

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

use crate::definitions::follow_definitions;
use crate::desk::Desk;
use crate::gather::Answer;
use crate::kind::{cache_name, scheduled_machine};
use crate::metrics::{Metrics, counted};
use crate::orphan;
use crate::report::Unpublished;
use crate::served::Served;
use crate::shape::Shape;
use crate::taken::TakenNames;
use crate::watch::Feed;
use crate::watch::{Scope, fill};
use crate::workload::{Workload, pods_of};
use crate::{Coordination, Key, Namespaces, Options};
use fivespot_runtime::cache::{Health, Shared, Task, Version};
use fivespot_runtime::http::Port;
use fivespot_runtime::http::{Outage, noted};
use fivespot_runtime::lease::{Fence, Ownership, Role};
use fivespot_runtime::queue::Backoff;
use fivespot_runtime::queue::StartLimit;
use fivespot_runtime::queue::Work;
use fivespot_runtime::watch::Selector;

/// The options, the queue, the caches and what is remembered of each ScheduledMachine.
pub(crate) struct Shell {
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) backoff: Backoff,
    /// The management cluster.
    pub(crate) port: Port,
    /// Whether it answers.
    pub(crate) outage: Arc<Outage>,
    /// Names that are taken by others.
    pub(crate) taken: TakenNames,
    pub(crate) work: Work,
    pub(crate) fence: Arc<Fence>,
    starts: Mutex<StartLimit>,
    pub(crate) served: Served,
    /// Creates of objects that are large take turns.
    pub(crate) large_creates: Semaphore,
    /// Live reads of what many ScheduledMachines have in common.
    pub(crate) shared: Shared<Answer>,
    pub(crate) scheduled_machines: Arc<Feed>,
    role: Mutex<Role>,
    tables: Mutex<Tables>,
    /// Of which Machines without a ScheduledMachine people have been told.
    pub(crate) told_orphans: orphan::Told,
    tasks: UnboundedSender<BoxFuture<'static, ()>>,
}

#[derive(Default)]
struct Tables {
    /// The caches, by their names.
    feeds: BTreeMap<String, Arc<Feed>>,
    workloads: BTreeMap<Key, Arc<Workload>>,
    /// Boxed, because a map keeps room for twice as many as there are.
    desks: BTreeMap<Key, Box<Desk>>,
    /// Who asked for a kind of this group that was not served.
    unserved: BTreeMap<String, BTreeSet<Key>>,
}

impl Shell {
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
        let port = Port::new(noted(client, &outage), name::FIELD_MANAGER);
        let resource = scheduled_machine();
        let name = cache_name(&resource);
        let feed = Arc::new(Feed::new(name.clone(), resource, Shape::ScheduledMachine));
        let tables = Tables {
            feeds: BTreeMap::from([(name, feed.clone())]),
            ..Tables::default()
        };
        Self {
            clock: options.clock.clone(),
            metrics,
            backoff,
            work: Work::new(options.clock.clone(), backoff),
            fence: Arc::new(Fence::new(options.clock.steady(), ownership)),
            served: Served::new(port.clone()),
            large_creates: Semaphore::new(2),
            shared: Shared::default(),
            port,
            outage,
            taken: TakenNames::default(),
            scheduled_machines: feed,
            starts: Mutex::new(StartLimit::at_most(options.max_starts_per_minute)),
            role: Mutex::new(role),
            tables: Mutex::new(tables),
            told_orphans: orphan::Told::default(),
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
    pub(crate) fn caches(&self) -> Vec<Arc<Feed>> {
        self.tables().feeds.values().cloned().collect()
    }

    /// Whether a cache can be asked about every namespace that is looked after.
    pub(crate) fn cache_health(&self, feed: &Feed) -> Health {
        let Namespaces::Only(some) = &self.options.namespaces else {
            return feed.health("");
        };
        let all = some.iter().map(|namespace| feed.health(namespace));
        let mut lacking = all.filter(|health| *health != Health::Synced);
        lacking.next().unwrap_or(Health::Synced)
    }

    /// The phase of `key`, as the last pass left it.
    pub(crate) fn phase(&self, key: &Key) -> Option<Phase> {
        self.tables().desks.get(key).and_then(|desk| desk.phase)
    }

    /// The phase of each ScheduledMachine, as the last pass left it.
    pub(crate) fn phases(&self) -> Vec<(Key, Phase)> {
        let tables = self.tables();
        let desks = tables.desks.iter();
        desks
            .filter_map(|(key, desk)| Some((key.clone(), desk.phase?)))
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
        let feed = self.scheduled_machines.clone();
        self.watch(&feed, None);
        self.spawn_detached(follow_definitions(self.clone()));
    }

    /// One watch per namespace that was asked for, or one for all.
    fn watch(self: &Arc<Self>, feed: &Arc<Feed>, selector: Option<Selector>) {
        let parts = match &self.options.namespaces {
            Namespaces::All => vec![None],
            Namespaces::Only(some) => some.iter().cloned().map(Some).collect(),
        };
        for part in parts {
            let scope = Scope {
                port: self.port.clone(),
                namespace: part.clone(),
                selector: selector.clone(),
                part,
                link: None,
                budget: None,
            };
            feed.keep(self.spawn(fill(self.clone(), feed.clone(), scope)));
        }
    }

    /// The cache of a kind of the management cluster; its watch begins with the first call.
    pub(crate) fn feed(
        self: &Arc<Self>,
        resource: &ApiResource,
        shape: Shape,
    ) -> Arc<Feed> {
        let selector = match shape {
            Shape::Machine | Shape::Provider => {
                Some(Selector::Labels(name::SCHEDULED_MACHINE_LABEL.to_owned()))
            }
            _ => None,
        };
        let cache = cache_name(resource);
        let (feed, is_new) = self.ensure(cache, resource.clone(), shape);
        if is_new {
            self.watch(&feed, selector);
        }
        feed
    }

    /// The kind that `place` names without a version, if it is watched in one already: two
    /// watches would show the same objects twice.
    pub(crate) fn in_use(&self, place: &Reference) -> Option<ApiResource> {
        if place.version.is_some() {
            return None;
        }
        let tables = self.tables();
        let mut feeds = tables.feeds.values();
        let found = feeds.find(|feed| {
            feed.projection == Shape::Provider
                && (&feed.resource.group, &feed.resource.kind)
                    == (&place.group, &place.kind)
                && !feed.is_failing()
        });
        found.map(|feed| feed.resource.clone())
    }

    /// The cache of that name.
    pub(crate) fn cache(&self, name: &str) -> Option<Arc<Feed>> {
        self.tables().feeds.get(name).cloned()
    }

    /// The cache of that name, and whether it has just been made and is to be filled.
    pub(crate) fn ensure(
        &self,
        name: String,
        resource: ApiResource,
        shape: Shape,
    ) -> (Arc<Feed>, bool) {
        let mut tables = self.tables();
        if let Some(feed) = tables.feeds.get(&name) {
            return (feed.clone(), false);
        }
        let feed = Arc::new(Feed::new(name.clone(), resource, shape));
        tables.feeds.insert(name, feed.clone());
        (feed, true)
    }

    /// Forgets a cache and ends its watches.
    pub(crate) fn drop_cache(&self, name: &str) {
        let dropped = self.tables().feeds.remove(name);
        if let Some(feed) = dropped {
            feed.stop();
        }
    }

    /// A CustomResourceDefinition of `group` has changed: asks discovery anew and wakes
    /// whoever could not be served. Says whether anybody was.
    pub(crate) fn group_changed(&self, group: &str) -> bool {
        self.served.forget(group);
        let (failing, keys) = {
            let mut tables = self.tables();
            let feeds = tables.feeds.values();
            let failing: Vec<String> = feeds
                .filter(|feed| feed.resource.group == group && feed.is_failing())
                .filter(|feed| feed.name != self.scheduled_machines.name)
                .map(|feed| feed.name.clone())
                .collect();
            (failing, tables.unserved.remove(group).unwrap_or_default())
        };
        for name in failing {
            self.drop_cache(&name);
        }
        let is_awaited = !keys.is_empty();
        self.wake_keys(keys);
        is_awaited
    }

    /// The kind of `feed` is not served under that version any more, or for a moment: whoever
    /// looks next asks discovery, and follows what that says.
    pub(crate) fn has_moved(&self, feed: &Feed) {
        self.served.forget(&feed.resource.group);
        if feed.name != self.scheduled_machines.name {
            self.drop_cache(&feed.name);
        }
    }

    /// The kinds of `group` are used in `version` from now on: no other is watched any more.
    pub(crate) fn leave_versions(&self, group: &str, version: &str) {
        let others: Vec<Arc<Feed>> = {
            let mut tables = self.tables();
            let is_other = |feed: &Arc<Feed>| {
                feed.resource.group == group && feed.resource.version != version
            };
            let others: Vec<_> = tables.feeds.values().cloned().collect();
            let others: Vec<_> = others.into_iter().filter(is_other).collect();
            for feed in &others {
                tables.feeds.remove(&feed.name);
            }
            others
        };
        for feed in others {
            feed.stop();
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

    /// The workload cluster of that Cluster, which `key` uses; reached out for if nobody has
    /// used it yet.
    pub(crate) fn workload(self: &Arc<Self>, cluster: &Key, key: &Key) -> Arc<Workload> {
        let (workload, is_new) = {
            let mut tables = self.tables();
            let is_new = !tables.workloads.contains_key(cluster);
            let make = || Arc::new(Workload::new(cluster.clone()));
            let entry = tables.workloads.entry(cluster.clone());
            (entry.or_insert_with(make).clone(), is_new)
        };
        workload.adopt(key);
        if is_new {
            workload.open(self);
        }
        workload
    }

    /// The workload cluster that `key` uses.
    pub(crate) fn used_by(&self, key: &Key) -> Option<Arc<Workload>> {
        let tables = self.tables();
        let mut workloads = tables.workloads.values();
        workloads.find(|workload| workload.is_used_by(key)).cloned()
    }

    /// `key` uses no workload cluster but `except`. Those that nobody uses are let go.
    pub(crate) fn release(&self, key: &Key, except: Option<&Key>) {
        let idle: Vec<Arc<Workload>> = {
            let mut tables = self.tables();
            let idle: Vec<Key> = tables
                .workloads
                .iter()
                .filter(|(cluster, _)| Some(*cluster) != except)
                .filter(|(_, workload)| workload.release(key))
                .map(|(cluster, _)| cluster.clone())
                .collect();
            idle.iter()
                .filter_map(|cluster| tables.workloads.remove(cluster))
                .collect()
        };
        for workload in idle {
            workload.close(self);
        }
    }

    /// Looks at what is remembered of `key`, or changes it.
    pub(crate) fn desk<T>(&self, key: &Key, with: impl FnOnce(&mut Desk) -> T) -> T {
        with(self.tables().desks.entry(key.clone()).or_default())
    }

    /// What was left to report of a machine that `key` has created is reported: the events.
    pub(crate) fn created_events(&self, key: &Key) -> Vec<Unpublished> {
        let mut tables = self.tables();
        let Some(desk) = tables.desks.get_mut(key) else {
            return Vec::new();
        };
        desk.has_created = false;
        std::mem::take(&mut desk.unpublished)
    }

    /// Forgets `key`: there is no such ScheduledMachine any more.
    pub(crate) fn forget(&self, key: &Key) {
        self.release(key, None);
        self.drop_cache(&pods_of(key));
        self.taken.forget(key);
        let mut tables = self.tables();
        tables.desks.remove(key);
        for keys in tables.unserved.values_mut() {
            keys.remove(key);
        }
        tables.unserved.retain(|_, keys| !keys.is_empty());
    }

    /// Whether this process has left `object` in that version or a later one.
    pub(crate) fn has_written(
        &self,
        feed: &Feed,
        object: &Key,
        version: &Version,
    ) -> bool {
        let tables = self.tables();
        let desk = tables.desks.get(object);
        desk.is_some_and(|desk| desk.ledger.has_left(&feed.name, object, version))
    }

    /// Whether this instance may act on `key`.
    pub(crate) fn is_own(&self, key: &Key) -> bool {
        self.fence.covers(&self.uid(key))
    }

    /// The uid of `key`, as a cache shows it, or has shown it last; empty where none has.
    pub(crate) fn uid(&self, key: &Key) -> String {
        let shown = self.scheduled_machines.store.get(key);
        self.desk(key, |desk| {
            if let Some(shown) = shown {
                desk.uid.clone_from(&shown.uid);
            }
            desk.uid.clone()
        })
    }

    /// Wakes every ScheduledMachine that this instance may act on from now on.
    pub(crate) fn wake_own(&self) {
        let keys = self.scheduled_machines.store.keys();
        self.wake_keys(keys.into_iter().filter(|key| self.is_own(key)));
    }
}

#[cfg(test)]
mod tests;
