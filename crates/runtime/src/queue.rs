//! Which object is due when: each at most once, and one pass for each at a time.

mod backoff;
mod latest;
mod start_limit;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use fivespot_clock::after;
use jiff::{SignedDuration, Timestamp};

pub use backoff::Backoff;
pub use latest::{Latest, not_before};
pub use start_limit::Starts;
pub use work::Work;

use crate::Key;

/// After a failed pass nothing that merely happens may bring the next one forward to less
/// than this.
const PAUSE_AFTER_FAILURE: SignedDuration = SignedDuration::from_secs(1);

/// More passes than this for one key within [`BURST_WINDOW`] are put off to its end, so that
/// a world that changes with every pass costs time and not the API server.
const BURST: u32 = 100;
const BURST_WINDOW: SignedDuration = SignedDuration::from_secs(1);

/// By how much a clock has to be set back to be noticed.
const SET_BACK: SignedDuration = SignedDuration::from_secs(1);

/// How long something that has not arrived is waited for, such as news of a machine that was made;
/// then it is looked at whatever happens.
pub const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// The same while others are being made, and for how long at most its news wait for them.
const HOLD: SignedDuration = SignedDuration::from_secs(30);

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
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
    /// The world was newer than what the pass had seen. The first in a row is repeated at
    /// once, further ones count as failures.
    Stale {
        /// When it is due again in any case.
        wake: Option<Timestamp>,
    },
    /// A machine was made. What becomes of it brings the next pass; due again at the instant, and
    /// after a while whatever happens.
    Made {
        /// When it is due again in any case.
        wake: Option<Timestamp>,
    },
    /// The pass could not begin, because something has not arrived yet that will wake the
    /// key. Looks again at the instant whatever happens.
    Waiting {
        /// When it looks again.
        until: Timestamp,
    },
}

/// Keys in the order in which they are due. `G` is held from the moment a key is known to
/// be due until its pass ends.
#[derive(Debug)]
pub struct Queue<G> {
    entries: BTreeMap<Key, Entry<G>>,
    order: BTreeSet<Appointment>,
    next_age: u64,
    backoff: Backoff,
    /// How many of the passes under way are making a machine.
    making: usize,
    /// Keys that have heard news, which wait until no pass is making a machine.
    held: BTreeSet<Key>,
    /// What the clock showed last.
    shown: Timestamp,
}

/// Ordered by due instant, then by rank, then by age, so that equal keys that are due together
/// come in the order in which they were asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Appointment {
    due: Timestamp,
    rank: u8,
    age: u64,
    key: Key,
}

#[derive(Debug)]
struct Entry<G> {
    appointment: Option<Appointment>,
    guard: Option<G>,
    running: bool,
    /// Asked for while running.
    again: Option<Call>,
    /// How often that was.
    calls: u64,
    /// The running pass is making a machine.
    making: bool,
    /// The last pass has made a machine, and that was then.
    made: Option<Timestamp>,
    /// Passes in a row that failed.
    failures: u32,
    not_before: Timestamp,
    /// Passes begun since this instant.
    burst: (Timestamp, u32),
    rank: u8,
}

/// Why a key is due before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Call {
    /// One of its objects has come further.
    News,
    /// Anything else.
    Change,
}

impl<G> Default for Entry<G> {
    fn default() -> Self {
        Self {
            appointment: None,
            guard: None,
            running: false,
            again: None,
            calls: 0,
            making: false,
            made: None,
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
            order: BTreeSet::new(),
            next_age: 0,
            backoff,
            making: 0,
            held: BTreeSet::new(),
            shown: Timestamp::MIN,
        }
    }

    /// Something happened: `key` is due now, or as soon as its running pass ends, or a
    /// little later when its last pass failed.
    pub fn wake(&mut self, key: &Key, now: Timestamp, guard: G) {
        self.call(key, now, (Call::Change, guard));
    }

    /// The same, for news of an object that `key` has made. Where its last pass made a machine,
    /// they wait until no other pass is making one: at an edge others are due.
    pub fn hear(&mut self, key: &Key, now: Timestamp, guard: G) {
        self.call(key, now, (Call::News, guard));
    }

    fn call(&mut self, key: &Key, now: Timestamp, (call, guard): (Call, G)) {
        let is_making = self.making > 0;
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.running {
            // The pass that is under way may wait for an answer: nothing stands still for its
            // successor until it has ended.
            entry.again = entry.again.max(Some(call));
            entry.calls += 1;
            return;
        }
        if let Some(until) = entry.holds(call, now).filter(|_| is_making) {
            self.held.insert(key.clone());
            self.appoint(key, until);
            return;
        }
        let due = now.max(entry.not_before);
        if due <= now {
            entry.guard = Some(guard);
        }
        self.appoint(key, due);
    }

    /// The pass of `key`, which is under way, makes a machine.
    pub fn makes(&mut self, key: &Key) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.running
            && !entry.making
        {
            entry.making = true;
            self.making += 1;
        }
    }

    /// The key that has been due longest, if any is. Its pass is then under way until
    /// [`finish`](Self::finish).
    pub fn take(&mut self, now: Timestamp) -> Option<(Key, Option<G>)> {
        self.note_clock(now);
        let first = self.order.first().filter(|first| first.due <= now)?;
        let key = first.key.clone();
        self.cancel(&key);
        let entry = self.entries.get_mut(&key)?;
        entry.running = true;
        entry.calls = 0;
        entry.made = None;
        self.held.remove(&key);
        if now.duration_since(entry.burst.0) >= BURST_WINDOW {
            entry.burst = (now, 0);
        }
        entry.burst.1 += 1;
        let guard = entry.guard.take();
        Some((key, guard))
    }

    /// How often `key` was asked for since its pass began.
    pub fn calls(&self, key: &Key) -> u64 {
        self.entries.get(key).map_or(0, |entry| entry.calls)
    }

    /// How many keys are due.
    pub fn due(&self, now: Timestamp) -> usize {
        let due = self.order.iter();
        due.take_while(|appointment| appointment.due <= now).count()
    }

    /// When the next key is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.order.first().map(|first| first.due)
    }

    /// Of keys that are due together from now on, those of lower rank come first. Says nothing
    /// about a key that is not known.
    pub fn rank(&mut self, key: &Key, rank: u8) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.rank = rank;
        }
    }

    /// Ends the pass of `key`. Returns how many passes in a row have failed.
    pub fn finish(&mut self, key: &Key, outcome: Outcome, now: Timestamp) -> u32 {
        let Some(entry) = self.entries.get_mut(key) else {
            return 0;
        };
        entry.running = false;
        self.making -= usize::from(std::mem::take(&mut entry.making));
        let is_making = self.making > 0;
        let mut due = entry.due_after(key, (outcome, now), (self.backoff, is_making));
        if let Some(call) = entry.again.take() {
            let held = entry.holds(call, now).filter(|_| is_making);
            if held.is_some() {
                self.held.insert(key.clone());
            }
            due = held.or(Some(now));
        }
        let is_held = self.held.contains(key);
        let failures = entry.failures;
        match due.map(|due| due.max(entry.not_before)) {
            Some(due) => {
                if due > now && !is_held {
                    entry.guard = None;
                }
                self.appoint(key, due);
            }
            None if failures == 0 => {
                self.entries.remove(key);
            }
            None => entry.guard = None,
        }
        if !is_making {
            for key in std::mem::take(&mut self.held) {
                self.appoint(&key, now);
            }
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
            entry.made = None;
        }
        for appointment in std::mem::take(&mut self.order) {
            let key = appointment.key;
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.appointment = None;
            }
            self.appoint(&key, now);
        }
    }

    /// Makes `key` due at `due`, unless it is due earlier already.
    fn appoint(&mut self, key: &Key, due: Timestamp) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if entry.appointment.as_ref().is_some_and(|set| set.due <= due) {
            return;
        }
        if let Some(later) = entry.appointment.take() {
            self.order.remove(&later);
        }
        let appointment = Appointment {
            due,
            rank: entry.rank,
            age: self.next_age,
            key: key.clone(),
        };
        self.next_age += 1;
        entry.appointment = Some(appointment.clone());
        self.order.insert(appointment);
    }

    fn cancel(&mut self, key: &Key) {
        let entry = self.entries.get_mut(key);
        if let Some(set) = entry.and_then(|entry| entry.appointment.take()) {
            self.order.remove(&set);
        }
    }
}

impl<G> Entry<G> {
    /// Until when a call waits while others make machines, if it does.
    fn holds(&self, call: Call, now: Timestamp) -> Option<Timestamp> {
        let until = after(self.made?, HOLD);
        (call == Call::News && until > now).then_some(until)
    }

    /// When a pass that ended like this is repeated, if nothing happens before.
    fn due_after(
        &mut self,
        key: &Key,
        (outcome, now): (Outcome, Timestamp),
        (backoff, is_making): (Backoff, bool),
    ) -> Option<Timestamp> {
        let due = match outcome {
            Outcome::Done { wake } => {
                self.failures = 0;
                wake
            }
            Outcome::Made { wake } => {
                self.made = Some(now);
                let until = after(now, if is_making { HOLD } else { PATIENCE });
                Some(wake.map_or(until, |wake| wake.min(until)))
            }
            Outcome::Waiting { until } => Some(until),
            Outcome::Stale { wake: _ } if self.failures == 0 => {
                self.failures = 1;
                Some(now)
            }
            Outcome::Failed { wake } | Outcome::Stale { wake } => {
                self.failures = self.failures.saturating_add(1);
                let retry = after(now, backoff.wait(key, self.failures));
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
