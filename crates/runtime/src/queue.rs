//! Which object is due when: each at most once, and one reconcile for each at a time.

mod backoff;
mod monotonic;
mod start_limit;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use fivespot_clock::after;
use jiff::{SignedDuration, Timestamp};

pub use backoff::Backoff;
pub use monotonic::{Monotonic, not_before};
pub use start_limit::StartLimit;
pub use work::WorkQueue;

use crate::Key;

/// After a failed reconcile nothing that merely happens may bring the next one forward to less
/// than this.
const PAUSE_AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(1);

/// More reconciles than this for one key within [`BURST_WINDOW`] are put off to its end, so that
/// a world that changes with every reconcile costs time and not the API server.
const BURST: u32 = 100;
const BURST_WINDOW: SignedDuration = SignedDuration::from_secs(1);

/// By how much a clock has to be set back to be noticed.
const SET_BACK: SignedDuration = SignedDuration::from_secs(1);

/// How long something that has not arrived is waited for, such as the watch event of an object that
/// was created; then it is looked at whatever happens.
pub const EVENT_TIMEOUT: SignedDuration = SignedDuration::from_secs(10);

/// After how long a key of low priority that is due comes before those of high priority.
const LONGEST_DEFERRAL: SignedDuration = SignedDuration::from_secs(30);

/// How many reconciles of low priority are under way at most beside one of high priority. What they
/// write makes the API server slower for it.
const LOW_BESIDE_HIGH: usize = 4;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileResult {
    /// Nothing failed. Due again at the instant, if any, and whenever something happens.
    Done {
        /// When it is due again in any case.
        wake: Option<Timestamp>,
    },
    /// Something failed. Due again after a growing wait, and at the instant if that is
    /// earlier.
    Failed {
        /// When it is due again in any case.
        wake: Option<Timestamp>,
    },
    /// The world was newer than what the reconcile had seen. The first in a row is repeated at
    /// once, further ones count as failures.
    Stale {
        /// When it is due again in any case.
        wake: Option<Timestamp>,
    },
    /// What is left can wait for others. Due again with low priority: at the instant, and whenever
    /// something happens that [waits as well](Queue::wake_deferred).
    Deferred {
        /// When it is due again in any case.
        until: Timestamp,
    },
    /// The reconcile could not begin, because something has not arrived yet that will wake the
    /// key. Looks again at the instant whatever happens.
    Waiting {
        /// When it looks again.
        until: Timestamp,
    },
}

/// Keys in the order in which they are due. `G` is held from the moment a key is known to
/// be due until its reconcile ends.
#[derive(Debug)]
pub struct Queue<G> {
    entries: BTreeMap<Key, Entry<G>>,
    high: BTreeSet<Scheduled>,
    /// Taken when none of high priority is due, few at a time while one of them is under way.
    low: BTreeSet<Scheduled>,
    under_way: UnderWay,
    next_age: u64,
    backoff: Backoff,
    /// What the clock showed last.
    shown: Timestamp,
}

/// Ordered by due instant, then by rank, then by age, so that equal keys that are due together
/// come in the order in which they were asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled {
    due: Timestamp,
    rank: u8,
    age: u64,
    key: Key,
    priority: Priority,
}

/// How many reconciles have begun and not ended, by priority.
#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    high: usize,
    low: usize,
}

impl UnderWay {
    fn of(&mut self, priority: Priority) -> &mut usize {
        match priority {
            Priority::High => &mut self.high,
            Priority::Low => &mut self.low,
        }
    }

    /// Whether one of low priority may begin now.
    fn admits_low(self) -> bool {
        self.high == 0 || self.low < LOW_BESIDE_HIGH
    }
}

/// Of keys that are due, those of high priority come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Low,
    High,
}

#[derive(Debug)]
struct Entry<G> {
    scheduled: Option<Scheduled>,
    guard: Option<G>,
    /// The priority with which its reconcile began that is under way.
    running: Option<Priority>,
    /// Asked for while running.
    again: Option<Priority>,
    /// How often that was.
    calls: u64,
    /// What the last reconcile has left to do can wait for others.
    is_deferred: bool,
    /// Passes in a row that failed.
    failures: u32,
    not_before: Timestamp,
    /// Passes begun since this instant.
    burst: (Timestamp, u32),
    rank: u8,
}

impl<G> Default for Entry<G> {
    fn default() -> Self {
        Self {
            scheduled: None,
            guard: None,
            running: None,
            again: None,
            calls: 0,
            is_deferred: false,
            failures: 0,
            not_before: Timestamp::MIN,
            burst: (Timestamp::MIN, 0),
            rank: 0,
        }
    }
}

impl<G> Queue<G> {
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            entries: BTreeMap::new(),
            high: BTreeSet::new(),
            low: BTreeSet::new(),
            under_way: UnderWay::default(),
            next_age: 0,
            backoff,
            shown: Timestamp::MIN,
        }
    }

    /// Something happened: `key` is due now, or as soon as its running reconcile ends, or a
    /// little later when its last reconcile failed.
    pub fn wake(&mut self, key: &Key, now: Timestamp, guard: G) {
        self.enqueue(key, now, Priority::High, guard);
    }

    /// The same with low priority, where what the last reconcile of `key` has left to do can wait.
    pub fn wake_deferred(&mut self, key: &Key, now: Timestamp, guard: G) {
        self.enqueue(key, now, Priority::Low, guard);
    }

    fn enqueue(&mut self, key: &Key, now: Timestamp, priority: Priority, guard: G) {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.running.is_some() {
            // The reconcile that is under way may wait for an answer: nothing stands still for its
            // successor until it has ended.
            entry.again = entry.again.max(Some(priority));
            entry.calls += 1;
            return;
        }
        let due = now.max(entry.not_before);
        if due <= now {
            entry.guard = Some(guard);
        }
        let priority = entry.priority(priority);
        self.appoint(key, due, priority);
    }

    /// The key that is due and comes first, if any is due. Its reconcile is then under way until
    /// [`finish`](Self::finish).
    pub fn take(&mut self, now: Timestamp) -> Option<(Key, Option<G>)> {
        self.note_clock(now);
        let first = |all: &BTreeSet<Scheduled>| {
            all.first().filter(|first| first.due <= now).cloned()
        };
        let (high, low) = (first(&self.high), first(&self.low));
        let low = low.filter(|_| self.under_way.admits_low());
        let overdue = low
            .clone()
            .filter(|first| after(first.due, LONGEST_DEFERRAL) <= now);
        let Scheduled { key, priority, .. } = overdue.or(high).or(low)?;
        self.cancel(&key);
        let entry = self.entries.get_mut(&key)?;
        entry.running = Some(priority);
        *self.under_way.of(priority) += 1;
        entry.calls = 0;
        entry.is_deferred = false;
        if now.duration_since(entry.burst.0) >= BURST_WINDOW {
            entry.burst = (now, 0);
        }
        entry.burst.1 += 1;
        let guard = entry.guard.take();
        Some((key, guard))
    }

    /// How often `key` was asked for since its reconcile began.
    pub fn calls(&self, key: &Key) -> u64 {
        self.entries.get(key).map_or(0, |entry| entry.calls)
    }

    /// How many keys are due.
    pub fn due(&self, now: Timestamp) -> usize {
        let is_due = |scheduled: &&Scheduled| scheduled.due <= now;
        let due = |all: &BTreeSet<Scheduled>| all.iter().take_while(is_due).count();
        due(&self.high) + due(&self.low)
    }

    /// When the next key is to be taken, unless a reconcile that is under way ends before.
    pub fn next_due(&self) -> Option<Timestamp> {
        let high = self.high.first().map(|first| first.due);
        let low = self.low.first().map(|first| first.due);
        let low = low.filter(|_| self.under_way.admits_low());
        high.into_iter().chain(low).min()
    }

    /// Of keys that are due together from now on, those of lower rank come first. Says nothing
    /// about a key that is not known.
    pub fn rank(&mut self, key: &Key, rank: u8) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.rank = rank;
        }
    }

    /// Ends the reconcile of `key`. Returns how many reconciles in a row have failed.
    pub fn finish(&mut self, key: &Key, result: ReconcileResult, now: Timestamp) -> u32 {
        let Some(entry) = self.entries.get_mut(key) else {
            return 0;
        };
        if let Some(priority) = entry.running.take() {
            let under_way = self.under_way.of(priority);
            *under_way = under_way.saturating_sub(1);
        }
        let backoff = self.backoff;
        let mut due =
            entry.due_after(result, now, |failures| backoff.wait(key, failures));
        let again = entry.again.take();
        if again.is_some() {
            due = Some(now);
        }
        let priority = entry.priority(again.unwrap_or(Priority::Low));
        let failures = entry.failures;
        match due.map(|due| due.max(entry.not_before)) {
            Some(due) => {
                if due > now {
                    entry.guard = None;
                }
                self.appoint(key, due, priority);
            }
            None if failures == 0 => {
                self.entries.remove(key);
            }
            None => entry.guard = None,
        }
        failures
    }

    /// Where the clock was set back, everything is due now: instants that were reckoned from what
    /// it showed before may lie as far ahead as it did.
    fn note_clock(&mut self, now: Timestamp) {
        let shown = std::mem::replace(&mut self.shown, now);
        if after(now, SET_BACK) >= shown {
            return;
        }
        for entry in self.entries.values_mut() {
            entry.not_before = Timestamp::MIN;
            entry.burst = (Timestamp::MIN, 0);
        }
        let high = std::mem::take(&mut self.high);
        for scheduled in high.into_iter().chain(std::mem::take(&mut self.low)) {
            let key = scheduled.key;
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.scheduled = None;
            }
            self.appoint(&key, now, scheduled.priority);
        }
    }

    /// Makes `key` due at `due` with `priority`, unless it is due earlier or has a higher one
    /// already.
    fn appoint(&mut self, key: &Key, due: Timestamp, priority: Priority) {
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
            self.of(set.priority).remove(&set);
        }
        self.of(scheduled.priority).insert(scheduled);
    }

    fn cancel(&mut self, key: &Key) {
        let entry = self.entries.get_mut(key);
        if let Some(set) = entry.and_then(|entry| entry.scheduled.take()) {
            self.of(set.priority).remove(&set);
        }
    }

    fn of(&mut self, priority: Priority) -> &mut BTreeSet<Scheduled> {
        match priority {
            Priority::High => &mut self.high,
            Priority::Low => &mut self.low,
        }
    }
}

impl<G> Entry<G> {
    /// The priority of a key that is asked for with `priority`.
    fn priority(&self, priority: Priority) -> Priority {
        if self.is_deferred {
            priority
        } else {
            Priority::High
        }
    }

    /// When a reconcile that ended like this is repeated, if nothing happens before; `wait` is for how
    /// long after so many failures in a row.
    fn due_after(
        &mut self,
        result: ReconcileResult,
        now: Timestamp,
        wait: impl Fn(u32) -> SignedDuration,
    ) -> Option<Timestamp> {
        let due = match result {
            ReconcileResult::Done { wake } => {
                self.failures = 0;
                wake
            }
            ReconcileResult::Deferred { until } => {
                self.failures = 0;
                self.is_deferred = true;
                Some(until)
            }
            ReconcileResult::Waiting { until } => Some(until),
            ReconcileResult::Stale { wake: _ } if self.failures == 0 => {
                self.failures = 1;
                Some(now)
            }
            ReconcileResult::Failed { wake } | ReconcileResult::Stale { wake } => {
                self.failures = self.failures.saturating_add(1);
                let retry = after(now, wait(self.failures));
                self.not_before = after(now, PAUSE_AFTER_FAILURE);
                Some(wake.map_or(retry, |wake| retry.min(wake.max(self.not_before))))
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
