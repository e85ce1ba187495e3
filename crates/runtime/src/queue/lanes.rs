//! The scheduled keys of one priority, in one lane for each namespace.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::Scheduled;
use super::running::Running;

/// When each namespace has its turn. A namespace that was not there meanwhile has neither an
/// advantage nor a disadvantage.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    /// The turn of the key that was last taken.
    now: u64,
    /// Later turns than that.
    later: BTreeMap<String, u64>,
}

impl Turns {
    /// The turn of a namespace.
    pub(super) fn of(&self, namespace: &str) -> u64 {
        let later = self.later.get(namespace).copied();
        later.unwrap_or(self.now).max(self.now)
    }

    /// A key of a namespace is taken in its turn.
    pub(super) fn advance(&mut self, namespace: &str) {
        self.now = self.of(namespace);
        self.postpone(namespace, 1);
    }

    /// Makes the turn of a namespace later by so many.
    pub(super) fn postpone(&mut self, namespace: &str, turns: u64) {
        let turn = self.of(namespace).saturating_add(turns);
        self.later.insert(namespace.to_owned(), turn);
    }

    /// No namespace waits for its turn.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// The scheduled keys of one priority.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    of_namespace: BTreeMap<String, Lane>,
    /// The first key of each lane that had no due key when it was last examined.
    waiting: BTreeSet<Scheduled>,
    /// The first key of each other lane, and the turn of its namespace.
    ready: BTreeSet<(u64, Scheduled)>,
}

/// The keys of one namespace.
#[derive(Debug, Default)]
struct Lane {
    keys: BTreeSet<Scheduled>,
    /// The turn, if the lane is among those that are ready.
    turn: Option<u64>,
    /// The key by which it is found there, or among those that wait.
    first: Option<Scheduled>,
}

impl Lanes {
    pub(super) fn insert(&mut self, scheduled: Scheduled) {
        let namespace = scheduled.key.namespace.clone();
        let lane = self.of_namespace.entry(namespace.clone()).or_default();
        lane.keys.insert(scheduled);
        let turn = lane.turn;
        self.place(&namespace, turn);
    }

    pub(super) fn remove(&mut self, scheduled: &Scheduled) {
        let namespace = &scheduled.key.namespace;
        if let Some(lane) = self.of_namespace.get_mut(namespace) {
            lane.keys.remove(scheduled);
            let turn = lane.turn;
            self.place(namespace, turn);
        }
    }

    /// The key that is due and comes first: of the namespaces with due keys of which one more may
    /// be reconciled, that of the one whose turn it is.
    pub(super) fn first_due(
        &mut self,
        now: Timestamp,
        turns: &Turns,
        running: &Running,
    ) -> Option<Scheduled> {
        while let Some(first) = self.waiting.first().filter(|first| first.due <= now) {
            let namespace = first.key.namespace.clone();
            self.place(&namespace, Some(turns.of(&namespace)));
        }
        loop {
            let mut ready = self.ready.iter().map(|(_, first)| first);
            let first = ready.find(|it| running.admits(&it.key.namespace))?.clone();
            if first.due <= now {
                return Some(first);
            }
            self.place(&first.key.namespace, None);
        }
    }

    /// The turn of a namespace has changed.
    pub(super) fn set_turn(&mut self, namespace: &str, turn: u64) {
        let lane = self.of_namespace.get(namespace);
        if lane.is_some_and(|lane| lane.turn.is_some()) {
            self.place(namespace, Some(turn));
        }
    }

    /// Whether no namespace waits for its turn.
    pub(super) fn is_idle(&self) -> bool {
        self.ready.is_empty()
    }

    /// When the first key is due of a namespace of which one more may be reconciled. If one is due
    /// already, an instant that has passed.
    pub(super) fn next_due(&self, running: &Running) -> Option<Timestamp> {
        let may_begin = |it: &&Scheduled| running.admits(&it.key.namespace);
        let ready = self.ready.iter().map(|(_, first)| first).find(may_begin);
        let waiting = self.waiting.iter().find(may_begin);
        ready.into_iter().chain(waiting).map(|it| it.due).min()
    }

    /// How many keys are due.
    pub(super) fn due(&self, now: Timestamp) -> usize {
        let due = |lane: &Lane| lane.keys.iter().take_while(|it| it.due <= now).count();
        self.of_namespace.values().map(due).sum()
    }

    /// Every scheduled key.
    pub(super) fn into_all(self) -> impl Iterator<Item = Scheduled> {
        self.of_namespace.into_values().flat_map(|lane| lane.keys)
    }

    /// Puts a lane among those that are ready, in that turn, or those that wait.
    fn place(&mut self, namespace: &str, turn: Option<u64>) {
        let Some(lane) = self.of_namespace.get_mut(namespace) else {
            return;
        };
        match (lane.first.take(), lane.turn) {
            (Some(first), Some(turn)) => {
                self.ready.remove(&(turn, first));
            }
            (Some(first), None) => {
                self.waiting.remove(&first);
            }
            (None, _) => {}
        }
        let Some(first) = lane.keys.first().cloned() else {
            self.of_namespace.remove(namespace);
            return;
        };
        lane.turn = turn;
        lane.first = Some(first.clone());
        match turn {
            Some(turn) => self.ready.insert((turn, first)),
            None => self.waiting.insert(first),
        };
    }
}
