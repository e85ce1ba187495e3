//! The work queue: when each key is due. A key is in it at most once, and has one reconcile at a
//! time. Namespaces with due keys take turns.
//! Why not that of `kube_runtime`: `internals/decisions/0020-own-work-queue.md`.

mod backoff;
mod lanes;
mod monotonic;
mod running;
mod start_limit;
mod work;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use jiff::{SignedDuration, Timestamp};
use kubemu_clock::after;

pub use backoff::Backoff;
pub use monotonic::{Monotonic, not_before};
pub use start_limit::StartLimit;
pub use work::WorkQueue;

use crate::Key;
use lanes::{Lanes, Turns};
use running::Running;

/// After a failed reconcile, no event makes the next one due sooner than this.
const PAUSE_AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(1);

/// More reconciles than this of one key within [`BURST_WINDOW`] are deferred to its end, so that
/// a key that is triggered by each of its reconciles does not overload the API server.
const BURST: u32 = 100;
const BURST_WINDOW: SignedDuration = SignedDuration::from_secs(1);

/// By how much a clock must be set back to be noticed.
const SET_BACK: SignedDuration = SignedDuration::from_secs(1);

/// How long to wait for something that has not arrived, such as the watch event of an object that
/// was created. Then the key is reconciled in any case.
pub const EVENT_TIMEOUT: SignedDuration = SignedDuration::from_secs(10);

/// After this time, a due key of low priority comes before those of high priority.
const MAX_DEFERRAL: SignedDuration = SignedDuration::from_secs(30);

/// The CPU time that a reconcile may use between two awaits. Its namespace has its next turn later
/// by one for each time that it uses this much.
const CPU_BUDGET: SignedDuration = SignedDuration::from_millis(20);

/// The result of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileResult {
    /// Nothing failed. The key is due again at the instant, if any, and when it is enqueued.
    Succeeded {
        /// When it is due again in any case.
        requeue_at: Option<Timestamp>,
    },
    /// Something failed. The key is due again after the backoff, or at the instant if that is
    /// earlier.
    Failed {
        /// When it is due again in any case.
        requeue_at: Option<Timestamp>,
    },
    /// The server's state was newer than what the reconcile had read. The first such result in a
    /// row is repeated at once, further ones count as failures.
    Stale {
        /// When it is due again in any case.
        requeue_at: Option<Timestamp>,
    },
    /// The remaining work can wait for other keys. The key is due again with low priority: at the
    /// instant, and when it is [enqueued with low priority](Queue::enqueue_deferred).
    Deferred {
        /// When it is due again in any case.
        until: Timestamp,
    },
    /// The reconcile could not begin, because it waits for an event, which will enqueue the key.
    /// The key is due at the instant in any case.
    Waiting {
        /// When it is due in any case.
        until: Timestamp,
    },
}

/// Keys in the order in which they are due. If keys of several namespaces are due, the namespaces
/// take turns: many keys of one delay no other for longer than one reconcile. Reconciles that do
/// not end delay no other namespace either: a namespace has no more of them under way than can
/// begin besides.
///
/// `G` is a guard that is held from the moment at which a key that may begin is found to be due
/// until a reconcile has begun.
#[derive(Debug)]
pub struct Queue<G> {
    entries: BTreeMap<Key, Entry>,
    guard: Option<G>,
    high: Lanes,
    /// Taken when no key of high priority is due; few at a time while one of them is reconciled.
    low: Lanes,
    turns: Turns,
    running: Running,
    next_age: u64,
    backoff: Backoff,
    /// The last reading of the clock.
    last_now: Timestamp,
}

/// Ordered by due instant, then by rank, then by age: keys of one rank that are due together are
/// taken in the order in which they were enqueued.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled {
    due: Timestamp,
    rank: u8,
    age: u64,
    key: Key,
    priority: Priority,
}

/// Of keys that are due, those of high priority come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Low,
    High,
}

#[derive(Debug)]
struct Entry {
    scheduled: Option<Scheduled>,
    /// The priority with which its running reconcile began.
    running: Option<Priority>,
    /// The priority with which it was enqueued while running.
    enqueued_again: Option<Priority>,
    /// How often it was enqueued while running.
    enqueues: u64,
    /// Whether the work that the last reconcile left can wait for other keys.
    is_deferred: bool,
    /// Failed reconciles in a row.
    failures: u32,
    not_before: Timestamp,
    /// An instant, and how many reconciles have begun since.
    burst: (Timestamp, u32),
    rank: u8,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            scheduled: None,
            running: None,
            enqueued_again: None,
            enqueues: 0,
            is_deferred: false,
            failures: 0,
            not_before: Timestamp::MIN,
            burst: (Timestamp::MIN, 0),
            rank: 0,
        }
    }
}

impl<G> Queue<G> {
    /// An empty queue, of whose keys at most so many are reconciled at a time.
    pub fn new(backoff: Backoff, max_concurrent: NonZeroUsize) -> Self {
        Self {
            entries: BTreeMap::new(),
            guard: None,
            high: Lanes::default(),
            low: Lanes::default(),
            turns: Turns::default(),
            running: Running::at_most(max_concurrent),
            next_age: 0,
            backoff,
            last_now: Timestamp::MIN,
        }
    }

    /// Enqueues `key` after an event: it is due now, or as soon as its running reconcile ends, or
    /// a little later if its last reconcile failed.
    pub fn enqueue(&mut self, key: &Key, now: Timestamp, guard: G) {
        self.add(key, now, Priority::High, guard);
    }

    /// The same with low priority, if the work that the last reconcile of `key` left can wait.
    pub fn enqueue_deferred(&mut self, key: &Key, now: Timestamp, guard: G) {
        self.add(key, now, Priority::Low, guard);
    }

    fn add(&mut self, key: &Key, now: Timestamp, priority: Priority, guard: G) {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.running.is_some() {
            // The running reconcile may wait for a response: a virtual clock is not stopped for
            // its successor until it has ended.
            entry.enqueued_again = entry.enqueued_again.max(Some(priority));
            entry.enqueues += 1;
            return;
        }
        let due = now.max(entry.not_before);
        let priority = entry.priority(priority);
        self.schedule(key, due, priority);
        if due <= now {
            self.guard = Some(guard);
        }
    }

    /// Takes the key that is due, may begin and comes first, if any. Its reconcile is then under
    /// way until [`finish`](Self::finish).
    pub fn take(&mut self, now: Timestamp) -> Option<(Key, Option<G>)> {
        self.handle_clock_change(now);
        // What may not begin yet waits for a reconcile, whose response may take time.
        let guard = self.guard.take();
        let high = self.high.first_due(now, &self.turns, &self.running);
        let low = self.low.first_due(now, &self.turns, &self.running);
        let low = low.filter(|_| self.running.admits_low());
        let overdue = low
            .clone()
            .filter(|first| after(first.due, MAX_DEFERRAL) <= now);
        let Scheduled { key, priority, .. } = overdue.or(high).or(low)?;
        self.cancel(&key);
        if self.high.is_idle() && self.low.is_idle() {
            self.turns.reset();
        } else {
            self.turns.advance(&key.namespace);
            self.update_turn(&key.namespace);
        }
        let entry = self.entries.get_mut(&key)?;
        entry.running = Some(priority);
        self.running.begin(&key.namespace, priority);
        entry.enqueues = 0;
        entry.is_deferred = false;
        if now.duration_since(entry.burst.0) >= BURST_WINDOW {
            entry.burst = (now, 0);
        }
        entry.burst.1 += 1;
        Some((key, guard))
    }

    /// How often `key` was enqueued since its reconcile began.
    pub fn enqueues(&self, key: &Key) -> u64 {
        self.entries.get(key).map_or(0, |entry| entry.enqueues)
    }

    /// How many keys are due.
    pub fn due(&self, now: Timestamp) -> usize {
        self.high.due(now) + self.low.due(now)
    }

    /// When the next key that may begin is due, unless a running reconcile ends before.
    pub fn next_due(&self) -> Option<Timestamp> {
        let high = self.high.next_due(&self.running);
        let low = self.low.next_due(&self.running);
        let low = low.filter(|_| self.running.admits_low());
        high.into_iter().chain(low).min()
    }

    /// Of keys that are due together from now on, those of lower rank come first. Does nothing
    /// for a key that is not in the queue.
    pub fn rank(&mut self, key: &Key, rank: u8) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.rank = rank;
        }
    }

    /// A reconcile of `key` has used so much CPU time between two awaits. If that exceeds the
    /// budget, the next turns of its namespace come after those of others.
    pub fn charge(&mut self, key: &Key, used: SignedDuration) {
        let budgets = used.as_millis() / CPU_BUDGET.as_millis();
        if let Ok(turns @ 1..) = u64::try_from(budgets) {
            self.turns.postpone(&key.namespace, turns);
            self.update_turn(&key.namespace);
        }
    }

    fn update_turn(&mut self, namespace: &str) {
        let turn = self.turns.of(namespace);
        self.high.set_turn(namespace, turn);
        self.low.set_turn(namespace, turn);
    }

    /// Ends the reconcile of `key`. Returns how many reconciles in a row have failed.
    pub fn finish(&mut self, key: &Key, result: ReconcileResult, now: Timestamp) -> u32 {
        let Some(entry) = self.entries.get_mut(key) else {
            return 0;
        };
        if let Some(priority) = entry.running.take() {
            self.running.end(&key.namespace, priority);
        }
        let backoff = self.backoff;
        let mut due =
            entry.due_after(result, now, |failures| backoff.wait(key, failures));
        let enqueued_again = entry.enqueued_again.take();
        if enqueued_again.is_some() {
            due = Some(now);
        }
        let priority = entry.priority(enqueued_again.unwrap_or(Priority::Low));
        let failures = entry.failures;
        match due.map(|due| due.max(entry.not_before)) {
            Some(due) => self.schedule(key, due, priority),
            None if failures == 0 => {
                self.entries.remove(key);
            }
            None => {}
        }
        failures
    }

    /// If the clock was set back, makes everything due now: instants that were computed from its
    /// earlier readings may be as far in the future as the clock was ahead.
    fn handle_clock_change(&mut self, now: Timestamp) {
        let last_now = std::mem::replace(&mut self.last_now, now);
        if after(now, SET_BACK) >= last_now {
            return;
        }
        for entry in self.entries.values_mut() {
            entry.not_before = Timestamp::MIN;
            entry.burst = (Timestamp::MIN, 0);
        }
        let high = std::mem::take(&mut self.high);
        let low = std::mem::take(&mut self.low);
        for scheduled in high.into_all().chain(low.into_all()) {
            let key = scheduled.key;
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.scheduled = None;
            }
            self.schedule(&key, now, scheduled.priority);
        }
    }

    /// Makes `key` due at `due` with `priority`, unless it is due earlier or has a higher one
    /// already.
    fn schedule(&mut self, key: &Key, due: Timestamp, priority: Priority) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let set = entry.scheduled.take();
        let scheduled = Scheduled {
            due: set.as_ref().map_or(due, |set| set.due.min(due)),
            rank: entry.rank,
            age: set.as_ref().map_or(self.next_age, |set| set.age),
            key: key.clone(),
            priority: set
                .as_ref()
                .map_or(priority, |set| set.priority.max(priority)),
        };
        self.next_age += 1;
        entry.scheduled = Some(scheduled.clone());
        if let Some(set) = set {
            self.keys_of(set.priority).remove(&set);
        }
        self.keys_of(scheduled.priority).insert(scheduled);
    }

    fn cancel(&mut self, key: &Key) {
        let entry = self.entries.get_mut(key);
        if let Some(set) = entry.and_then(|entry| entry.scheduled.take()) {
            self.keys_of(set.priority).remove(&set);
        }
    }

    fn keys_of(&mut self, priority: Priority) -> &mut Lanes {
        match priority {
            Priority::High => &mut self.high,
            Priority::Low => &mut self.low,
        }
    }
}

impl Entry {
    /// The priority of a key that is enqueued with `priority`.
    fn priority(&self, priority: Priority) -> Priority {
        if self.is_deferred {
            priority
        } else {
            Priority::High
        }
    }

    /// When a reconcile with this result is repeated, if no event comes before. `wait` returns
    /// the backoff after so many failures in a row.
    fn due_after(
        &mut self,
        result: ReconcileResult,
        now: Timestamp,
        wait: impl Fn(u32) -> SignedDuration,
    ) -> Option<Timestamp> {
        let due = match result {
            ReconcileResult::Succeeded { requeue_at } => {
                self.failures = 0;
                requeue_at
            }
            ReconcileResult::Deferred { until } => {
                self.failures = 0;
                self.is_deferred = true;
                Some(until)
            }
            ReconcileResult::Waiting { until } => Some(until),
            ReconcileResult::Stale { requeue_at: _ } if self.failures == 0 => {
                self.failures = 1;
                Some(now)
            }
            ReconcileResult::Failed { requeue_at }
            | ReconcileResult::Stale { requeue_at } => {
                self.failures = self.failures.saturating_add(1);
                let retry = after(now, wait(self.failures));
                self.not_before = after(now, PAUSE_AFTER_FAILURE);
                Some(requeue_at.map_or(retry, |requeue_at| {
                    retry.min(requeue_at.max(self.not_before))
                }))
            }
        };
        if self.failures == 0 {
            self.not_before = Timestamp::MIN;
        }
        if self.burst.1 >= BURST {
            self.not_before = self.not_before.max(after(self.burst.0, BURST_WINDOW));
        }
        due
    }
}

#[cfg(test)]
mod tests;
