//! The state of the fleet, as the watches report it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::ScheduleOverride;
use fivespot_schedule::Dates;
use tokio::sync::watch;

use crate::machine::{Machine, Name, Others, Phases};
use crate::reader::EventRecord;

/// The largest number of machines that are kept. More machines are counted and not shown.
const MOST_MACHINES: usize = 20_000;

/// The largest number of overrides and of calendars that are kept.
const MOST_OTHERS: usize = 4_096;

/// The state of the fleet. Subscribers are notified when it changes.
#[derive(Debug)]
pub(crate) struct State {
    held: Mutex<Held>,
    version: watch::Sender<u64>,
}

/// A snapshot of the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(crate) machines: BTreeMap<Name, Arc<Machine>>,
    pub(crate) phases: BTreeMap<Name, Arc<Phases>>,
    pub(crate) others: Others,
    /// Whether the first list is complete.
    pub(crate) is_listed: bool,
    /// The machines beyond the limit.
    pub(crate) left_out: BTreeSet<Name>,
    /// Why the cluster cannot be read at present.
    pub(crate) trouble: Option<String>,
    /// The kinds other than ScheduledMachine that cannot be read at present, and why.
    pub(crate) unread: BTreeMap<&'static str, String>,
}

impl Held {
    /// Recomputes the schedules of the machines in the namespace of `changed` for which `concerns`
    /// returns true. Other machines are unchanged: a fleet has thousands of machines, and each may
    /// have an override.
    fn follow(&mut self, changed: &Name, concerns: impl Fn(&Machine) -> bool) {
        let machines = self.machines.iter_mut();
        for (name, machine) in machines {
            if name.namespace == changed.namespace && concerns(machine) {
                *machine = Arc::new(Machine::clone(machine).with(&self.others));
            }
        }
    }
}

/// Inserts what was found if the limit allows it, or removes the entry. Returns the previous entry.
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

    /// A snapshot of the current state.
    pub(crate) fn view(&self) -> Held {
        self.lock().clone()
    }

    /// Whether the first list is complete or has failed.
    pub(crate) fn is_known(&self) -> bool {
        let held = self.lock();
        held.is_listed || held.trouble.is_some()
    }

    /// A receiver that is notified when the state changes.
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

    /// Applies a changed or deleted override, and recomputes the schedules of the machines that it
    /// targets.
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

    /// Applies a changed or deleted calendar, and recomputes the schedules that refer to it.
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

    /// A list is complete: machines that are not in it are removed.
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

    /// Records the phase that an Event reports. Events without a phase and Events of machines that
    /// are not kept are ignored.
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

    /// Records that the cluster cannot be read at present.
    pub(crate) fn trouble(&self, why: String) {
        self.lock().trouble = Some(why);
        self.changed();
    }

    /// Records that a kind other than ScheduledMachine cannot be read at present.
    pub(crate) fn unread(&self, kind: &'static str, why: String) {
        let before = self.lock().unread.insert(kind, why.clone());
        if before.as_ref() != Some(&why) {
            self.changed();
        }
    }

    /// Records that all objects of a kind have been read.
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
