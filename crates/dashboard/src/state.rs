//! All machines, as the watches report them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::ScheduleOverride;
use fivespot_schedule::Dates;
use tokio::sync::watch;

use crate::machine::{Machine, Name, Others, Phases};
use crate::reader::EventRecord;

/// How many machines are kept; what is beyond is counted and not shown.
const MOST_MACHINES: usize = 20_000;

/// How many overrides and calendars are kept each.
const MOST_OTHERS: usize = 4_096;

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

impl Held {
    /// Computes the schedules again of those machines in the namespace of `changed` that it
    /// concerns. Others stay: a fleet has thousands of machines, and each may have an override.
    fn follow(&mut self, changed: &Name, concerns: impl Fn(&Machine) -> bool) {
        let machines = self.machines.iter_mut();
        for (name, machine) in machines {
            if name.namespace == changed.namespace && concerns(machine) {
                *machine = Arc::new(Machine::clone(machine).with(&self.others));
            }
        }
    }
}

/// Puts in what was found, if there is room for it, or takes out what is gone; returns what was
/// there.
fn replace<T>(all: &mut BTreeMap<Name, T>, name: &Name, found: Option<T>) -> Option<T> {
    let has_room = all.contains_key(name) || all.len() < MOST_OTHERS;
    match found.filter(|_| has_room) {
        Some(found) => all.insert(name.clone(), found),
        None => all.remove(name),
    }
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

    /// An override has changed, or is gone; the schedules of its machines follow.
    pub(crate) fn change_override(
        &self,
        name: &Name,
        found: Option<Arc<ScheduleOverride>>,
    ) {
        let mut held = self.lock();
        let overrides = &mut held.others.overrides;
        let before = replace(overrides, name, found.clone());
        let both = [before, found];
        held.follow(name, |machine| {
            let mut both = both.iter().flatten();
            both.any(|it| it.is_about(&machine.name.name, &machine.labels))
        });
        drop(held);
        self.changed();
    }

    /// A calendar has changed, or is gone; the schedules that refer to it follow.
    pub(crate) fn change_calendar(&self, name: &Name, found: Option<Dates>) {
        let mut held = self.lock();
        replace(&mut held.others.calendars, name, found);
        held.follow(name, |machine| machine.refers_to(&name.name));
        drop(held);
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
