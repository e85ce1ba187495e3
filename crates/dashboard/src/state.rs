//! All machines, as the watches report them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::machine::{Machine, Name, Others, Phases};
use crate::reader::EventRecord;

/// How many machines are kept; what is beyond is counted and not shown.
const MOST_MACHINES: usize = 20_000;

/// What is known of the fleet; whoever waits is woken when it changes.
#[derive(Debug)]
pub(crate) struct State {
    held: Mutex<Held>,
    version: watch::Sender<u64>,
}

/// What is known at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(crate) machines: BTreeMap<Name, Arc<Machine>>,
    pub(crate) phases: BTreeMap<Name, Arc<Phases>>,
    pub(crate) others: Others,
    /// Whether the first list is complete.
    pub(crate) is_listed: bool,
    /// How many machines there was no room for.
    pub(crate) left_out: BTreeSet<Name>,
    /// Why the cluster cannot be read at present.
    pub(crate) trouble: Option<String>,
    /// The kinds beside the machines that cannot be read at present, and why.
    pub(crate) unread: BTreeMap<&'static str, String>,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            held: Mutex::default(),
            version: watch::Sender::new(0),
        }
    }

    /// A view that does not change any more.
    pub(crate) fn view(&self) -> Held {
        self.lock().clone()
    }

    /// Whether the first list is complete, or cannot be had.
    pub(crate) fn is_known(&self) -> bool {
        let held = self.lock();
        held.is_listed || held.trouble.is_some()
    }

    /// Wakes when something changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn apply(&self, machine: Machine) {
        let mut held = self.lock();
        let machine = machine.with(&held.others);
        let is_known = held.machines.contains_key(&machine.name);
        if is_known || held.machines.len() < MOST_MACHINES {
            held.machines
                .insert(machine.name.clone(), Arc::new(machine));
        } else if held.left_out.len() < MOST_MACHINES {
            held.left_out.insert(machine.name);
        }
        drop(held);
        self.changed();
    }

    /// An override or a calendar has changed; the schedules of its namespace follow.
    pub(crate) fn change(&self, namespace: &str, change: impl FnOnce(&mut Others)) {
        let mut held = self.lock();
        let held = &mut *held;
        change(&mut held.others);
        let others = &held.others;
        let machines = held.machines.iter_mut();
        for (_, machine) in machines.filter(|(name, _)| name.namespace == namespace) {
            *machine = Arc::new(machine.with(others));
        }
        self.changed();
    }

    pub(crate) fn delete(&self, name: &Name) {
        let mut held = self.lock();
        held.machines.remove(name);
        held.phases.remove(name);
        held.left_out.remove(name);
        drop(held);
        self.changed();
    }

    /// A list is complete: what is not in it is gone.
    pub(crate) fn listed(&self, listed: &BTreeSet<Name>) {
        let mut held = self.lock();
        held.machines.retain(|name, _| listed.contains(name));
        held.phases.retain(|name, _| listed.contains(name));
        held.left_out.retain(|name| listed.contains(name));
        held.is_listed = true;
        held.trouble = None;
        drop(held);
        self.changed();
    }

    /// An Event was reported; what announces no phase of a machine that is kept is left aside.
    pub(crate) fn event(&self, name: &Name, event: &EventRecord) {
        let Some(phase) = event.phase() else { return };
        let mut held = self.lock();
        // Events may be listed before the machines are.
        if held.is_listed && !held.machines.contains_key(name) {
            return;
        }
        if held.phases.len() < MOST_MACHINES || held.phases.contains_key(name) {
            let phases = held.phases.entry(name.clone()).or_default();
            Arc::make_mut(phases).add(event.at, phase);
        }
        drop(held);
        self.changed();
    }

    /// The cluster cannot be read, for now.
    pub(crate) fn trouble(&self, why: String) {
        self.lock().trouble = Some(why);
        self.changed();
    }

    /// What else the pages show of a kind is left out, for now.
    pub(crate) fn unread(&self, kind: &'static str, why: String) {
        let before = self.lock().unread.insert(kind, why.clone());
        if before.as_ref() != Some(&why) {
            self.changed();
        }
    }

    /// All objects of that kind are known again.
    pub(crate) fn read(&self, kind: &'static str) {
        if self.lock().unread.remove(kind).is_some() {
            self.changed();
        }
    }

    fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
