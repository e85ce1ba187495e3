//! The work queue of the controllers.
//!
//! Each write enqueues the work items that it requires. The items are processed one at a time
//! between requests, and stop a virtual clock until they are done. One that needs the response of a
//! webhook is set aside, and the next is processed meanwhile.

use std::collections::{HashSet, VecDeque};

use indexmap::IndexSet;
use kubemu_clock::{Busy, Clock};

use crate::index::Location;
use crate::store::Key;

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
    /// The items in the queue and those that are set aside.
    queued: HashSet<WorkItem>,
    /// The items that are processed again when webhooks have responded.
    aside: IndexSet<WorkItem>,
    /// The items whose requests admission has rejected.
    pub(crate) rejected: IndexSet<WorkItem>,
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
            aside: IndexSet::new(),
            rejected: IndexSet::new(),
            busy: None,
            has_worker: false,
        }
    }

    /// A queue with the same items, which no worker processes yet. They hold `clock`.
    pub(crate) fn fork(&self, clock: Clock) -> Self {
        let queue: VecDeque<_> = self.aside.iter().chain(&self.queue).cloned().collect();
        Self {
            busy: (!queue.is_empty()).then(|| clock.busy()),
            queue,
            queued: self.queued.clone(),
            aside: IndexSet::new(),
            rejected: self.rejected.clone(),
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

    /// Sets aside an item that was processed in vain, until webhooks have responded. Meanwhile it is
    /// not added again: it will see all changes when it resumes.
    pub(crate) fn set_aside(&mut self, item: &WorkItem) {
        self.rejected.shift_remove(item);
        if !self.queued.insert(item.clone()) {
            self.queue.retain(|it| it != item);
        }
        self.aside.insert(item.clone());
        if self.busy.is_none() {
            self.busy = Some(self.clock.busy());
        }
    }

    /// Takes an item that was set aside, to process it again. Returns whether it was there.
    pub(crate) fn resume(&mut self, item: &WorkItem) -> bool {
        let was_aside = self.aside.shift_remove(item);
        if was_aside {
            self.queued.remove(item);
        }
        was_aside
    }

    /// Puts an item that was set aside at the front of the queue.
    pub(crate) fn put_back(&mut self, item: &WorkItem) {
        if self.aside.shift_remove(item) {
            self.queue.push_front(item.clone());
        }
    }

    /// Removes an item that does not have to be processed any more.
    pub(crate) fn remove(&mut self, item: &WorkItem) {
        if self.queued.remove(item) {
            self.aside.shift_remove(item);
            self.queue.retain(|it| it != item);
        }
    }

    /// Keeps an item whose request admission has rejected, until a retry may succeed.
    pub(crate) fn retry_later(&mut self, item: WorkItem) {
        self.rejected.insert(item);
    }

    /// Enqueues all items whose requests admission has rejected.
    pub(crate) fn retry_rejected(&mut self) {
        for item in std::mem::take(&mut self.rejected) {
            self.add(item);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn next(&mut self) -> Option<WorkItem> {
        let item = self.queue.pop_front();
        match &item {
            Some(item) => {
                self.queued.remove(item);
            }
            None => self.release_if_empty(),
        }
        item
    }

    /// Removes all items.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.queued.clear();
        self.aside.clear();
        self.rejected.clear();
        self.busy = None;
    }

    /// Releases the clock if there is nothing to do.
    pub(crate) fn release_if_empty(&mut self) {
        if self.queue.is_empty() && self.aside.is_empty() {
            self.busy = None;
        }
    }
}
