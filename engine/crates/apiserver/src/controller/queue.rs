//! The work queue of the controllers.
//!
//! Each write enqueues the work items that it requires. The items are processed one at a time
//! between requests, and stop a virtual clock until they are done.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use indexmap::IndexSet;
use kubemu_clock::{Busy, Clock};

use super::{
    cluster_role_aggregation, disruption, event_expiry, garbage_collector, namespace,
    namespace_bootstrap, node_taint, policy_type_check, resource_quota, token,
    volume_protection,
};
use crate::definition;
use crate::index::Location;
use crate::namespace::ensure;
use crate::state::State;
use crate::store::{Change, Key};

/// The key of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkItem {
    /// An object that has lost its owners, or waits for its dependents.
    Collect(Location),
    /// All objects with this uid in their owner references.
    Dependents(String),
    /// A namespace that is being deleted.
    Namespace(String),
    /// A disruption budget, whose pods are counted.
    Budget(Key),
    /// The quotas of a namespace, whose usage is counted.
    Quotas(String),
    /// A claim or a volume that is being deleted.
    Volume(Location),
    /// A node, whose taints follow its conditions.
    Node(Key),
    /// A policy, whose expressions are type-checked.
    Policy(Key),
    /// A namespace that lacks objects that every namespace has.
    NamespaceBootstrap(String),
    /// A secret for the token of a service account.
    Token(Key),
    /// A system namespace that is gone.
    SystemNamespace(String),
    /// The aggregated roles.
    Aggregate,
    /// The events that have expired.
    Expire,
    /// A definition that is being deleted.
    Definition(Key),
}

/// The queued work items, in the order in which they were added and without duplicates.
#[derive(Debug)]
pub(crate) struct WorkQueue {
    clock: Clock,
    queue: VecDeque<WorkItem>,
    queued: HashSet<WorkItem>,
    /// The items whose requests admission has rejected.
    rejected: IndexSet<WorkItem>,
    busy: Option<Busy>,
    /// Whether a worker processes the items.
    pub(crate) has_worker: bool,
}

impl WorkQueue {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            queue: VecDeque::new(),
            queued: HashSet::new(),
            rejected: IndexSet::new(),
            busy: None,
            has_worker: false,
        }
    }

    /// A queue with the same items, which no worker processes yet. They hold `clock`.
    pub(crate) fn fork(&self, clock: Clock) -> Self {
        Self {
            queue: self.queue.clone(),
            queued: self.queued.clone(),
            rejected: self.rejected.clone(),
            busy: (!self.is_empty()).then(|| clock.busy()),
            clock,
            has_worker: false,
        }
    }

    /// Adds an item unless it is queued already.
    pub(crate) fn add(&mut self, item: WorkItem) {
        if self.queued.insert(item.clone()) {
            self.queue.push_back(item);
            if self.busy.is_none() {
                self.busy = Some(self.clock.busy());
            }
        }
    }

    /// The item that is processed next.
    pub(crate) fn peek(&self) -> Option<&WorkItem> {
        self.queue.front()
    }

    /// Adds an item at the front of the queue, to process it once more.
    pub(crate) fn add_first(&mut self, item: WorkItem) {
        self.rejected.shift_remove(&item);
        if self.queued.insert(item.clone()) {
            self.queue.push_front(item);
            if self.busy.is_none() {
                self.busy = Some(self.clock.busy());
            }
        }
    }

    /// Removes an item that does not have to be processed any more.
    pub(crate) fn remove(&mut self, item: &WorkItem) {
        if self.queued.remove(item) {
            self.queue.retain(|it| it != item);
        }
    }

    /// Keeps an item whose request admission has rejected, until a retry may succeed.
    pub(crate) fn retry_later(&mut self, item: WorkItem) {
        self.rejected.insert(item);
    }

    /// Enqueues all items whose requests admission has rejected.
    fn retry_rejected(&mut self) {
        for item in std::mem::take(&mut self.rejected) {
            self.add(item);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn next(&mut self) -> Option<WorkItem> {
        let item = self.queue.pop_front();
        match &item {
            Some(item) => {
                self.queued.remove(item);
            }
            None => self.busy = None,
        }
        item
    }
}

/// Processes the next item. Returns whether there was one.
pub(crate) fn process_next(state: &mut State) -> bool {
    let Some(item) = state.queue.next() else {
        return false;
    };
    match item {
        WorkItem::Collect(location) => garbage_collector::reconcile(state, &location),
        WorkItem::Dependents(uid) => garbage_collector::reconcile_dependents(state, &uid),
        WorkItem::Namespace(name) => namespace::reconcile(state, &name),
        WorkItem::Budget(key) => disruption::reconcile(state, &key),
        WorkItem::Quotas(namespace) => resource_quota::reconcile(state, &namespace),
        WorkItem::Volume(location) => volume_protection::reconcile(state, &location),
        WorkItem::Node(key) => node_taint::reconcile(state, &key),
        WorkItem::Policy(key) => policy_type_check::reconcile(state, &key),
        WorkItem::NamespaceBootstrap(name) => {
            namespace_bootstrap::reconcile(state, &name);
        }
        WorkItem::Token(key) => token::reconcile(state, &key),
        WorkItem::SystemNamespace(name) => ensure(state, &name),
        WorkItem::Aggregate => cluster_role_aggregation::reconcile(state),
        WorkItem::Expire => event_expiry::delete_expired(state),
        WorkItem::Definition(key) => definition::clean_up(state, &key),
    }
    true
}

/// Applies a write that later requests depend on at once, and enqueues the work items that it
/// requires.
pub(crate) fn enqueue(state: &mut State, change: &Arc<Change>) {
    garbage_collector::enqueue(state, change);
    update_indexes(state, change);
    disruption::enqueue(state, change);
    resource_quota::enqueue(state, change);
    volume_protection::enqueue(state, change);
    node_taint::enqueue(state, change);
    if may_be_admitted(state, change) {
        state.queue.retry_rejected();
    }
    namespace_bootstrap::enqueue(state, change);
    token::enqueue(state, change);
    cluster_role_aggregation::enqueue(state, change);
    event_expiry::enqueue(state, change);
    if change.after.is_none()
        && let Some(key) = definition::terminating(state, change.bucket)
    {
        state.queue.add(WorkItem::Definition(key));
    }
    namespace::enqueue(state, change);
}

/// Updates the indexes of definitions, policies, webhooks, roles and bindings, which apply from the
/// write on.
fn update_indexes(state: &mut State, change: &Arc<Change>) {
    let buckets = state.buckets;
    if change.bucket == buckets.definitions {
        definition::changed(state, change);
    } else if change.bucket == buckets.policies || change.bucket == buckets.bindings {
        if let Err(errors) = state.policies.update(change, state.kube) {
            state.record_invalid(&change.object, &errors);
        }
        policy_type_check::enqueue(state, change);
    } else if buckets.mutating_policies == change.bucket
        || buckets.mutating_bindings == change.bucket
    {
        if let Err(errors) = state.mutating_policies.update(change, state.kube) {
            state.record_invalid(&change.object, &errors);
        }
    } else if buckets.webhooks.contains(&change.bucket) {
        state.admission_webhooks.update(change, state.kube);
    } else if buckets.rbac.contains(&change.bucket) {
        Arc::make_mut(&mut state.rules).update(change);
    }
}

/// Whether admission may now admit a request that it has rejected: the write is to an object that
/// admission depends on, or to the rejected object.
fn may_be_admitted(state: &State, change: &Change) -> bool {
    let rejected = &state.queue.rejected;
    if rejected.is_empty() {
        return false;
    }
    let buckets = &state.buckets;
    let deciding = [
        buckets.policies,
        buckets.bindings,
        buckets.mutating_policies,
        buckets.mutating_bindings,
        buckets.definitions,
        buckets.namespaces,
    ];
    let key = &change.key;
    deciding.contains(&change.bucket)
        || buckets.rbac.contains(&change.bucket)
        || buckets.webhooks.contains(&change.bucket)
        || state.policies.reads_parameters_of(&change.object["kind"])
        || state
            .mutating_policies
            .reads_parameters_of(&change.object["kind"])
        || rejected.contains(&WorkItem::Collect(Location::new(
            change.bucket,
            key.clone(),
        )))
        || rejected.contains(&WorkItem::Token(key.clone()))
        || rejected.contains(&WorkItem::Budget(key.clone()))
        || rejected.contains(&WorkItem::Namespace(key.namespace.to_string()))
}
