//! The state of the fleet, as the watches report it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::ScheduleOverride;
use fivespot_api::verdict::{Lease, Verdict};
use fivespot_controller::Key;
use fivespot_schedule::Dates;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::capacity::Capacity;
use crate::machine::{Machine, PhaseHistory};
use crate::reader::EventRecord;
use crate::schedule_inputs::ScheduleInputs;
use crate::set::Set;

/// The largest number of machines, of capacities and of sets that are kept. More are counted and not shown.
const MAX_MACHINES: usize = 20_000;

/// The state of the fleet. Subscribers are notified when it changes.
#[derive(Debug)]
pub(crate) struct State {
    current: Mutex<Snapshot>,
    version: watch::Sender<u64>,
}

/// The state at one instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) machines: BTreeMap<Key, Arc<Machine>>,
    pub(crate) phases: BTreeMap<Key, Arc<PhaseHistory>>,
    pub(crate) schedule_inputs: ScheduleInputs,
    /// Whether the first list is complete.
    pub(crate) is_listed: bool,
    /// The machines beyond the limit.
    pub(crate) omitted: BTreeSet<Key>,
    /// Why the cluster cannot be read at present.
    pub(crate) watch_error: Option<String>,
    /// Whether an operator holds its Lease; `None` before the first read.
    pub(crate) lease: Option<Lease>,
    pub(crate) capacities: BTreeMap<Key, Arc<Capacity>>,
    /// The capacities beyond the limit.
    pub(crate) omitted_capacities: BTreeSet<Key>,
    /// The sets of machines, as many as are kept.
    pub(crate) sets: BTreeMap<Key, Arc<Set>>,
    /// Whether what reconciles capacities holds its Lease; `None` before the first read.
    pub(crate) capacity_lease: Option<Lease>,
    /// The kinds other than ScheduledMachine that cannot be read at present, and why.
    pub(crate) unreadable: BTreeMap<&'static str, String>,
}

impl Snapshot {
    /// The verdict about a machine. Before the Lease was read, an operator is assumed.
    pub(crate) fn verdict(&self, machine: &Machine, now: Timestamp) -> Verdict {
        let lease = self.lease.as_ref().unwrap_or(&Lease::Held);
        machine.verdict(lease, now)
    }

    /// Recomputes the schedules of the machines in the namespace of `changed` for which
    /// `is_affected` returns true. Other machines are unchanged: a fleet has thousands of machines,
    /// and each may have an override.
    fn update_schedules(
        &mut self,
        changed: &Key,
        is_affected: impl Fn(&Machine) -> bool,
    ) {
        let machines = self.machines.iter_mut();
        for (name, machine) in machines {
            if name.namespace == changed.namespace && is_affected(machine) {
                *machine =
                    Arc::new(Machine::clone(machine).with_inputs(&self.schedule_inputs));
            }
        }
    }
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            current: Mutex::default(),
            version: watch::Sender::new(0),
        }
    }

    /// A snapshot of the current state.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.lock().clone()
    }

    /// Whether the first list is complete or has failed.
    pub(crate) fn is_initialized(&self) -> bool {
        let current = self.lock();
        current.is_listed || current.watch_error.is_some()
    }

    /// A receiver that is notified when the state changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn apply(&self, machine: Machine) {
        let mut current = self.lock();
        let machine = machine.with_inputs(&current.schedule_inputs);
        let is_known = current.machines.contains_key(&machine.name);
        if is_known || current.machines.len() < MAX_MACHINES {
            current
                .machines
                .insert(machine.name.clone(), Arc::new(machine));
        } else if current.omitted.len() < MAX_MACHINES {
            current.omitted.insert(machine.name);
        }
        drop(current);
        self.notify();
    }

    /// Applies a changed or deleted override, and recomputes the schedules of the machines that
    /// it targets, and of those of an override that is considered because of it or no longer.
    pub(crate) fn change_override(&self, name: &Key, new: Option<Arc<ScheduleOverride>>) {
        let mut current = self.lock();
        let changed = current.schedule_inputs.change_override(name, new);
        current.update_schedules(name, |machine| {
            let mut changed = changed.iter();
            changed.any(|it| it.is_about(&machine.name.name, &machine.labels))
        });
        drop(current);
        self.notify();
    }

    /// Applies a changed or deleted calendar, and recomputes the schedules that refer to it.
    pub(crate) fn change_calendar(&self, name: &Key, new: Option<Dates>) {
        let mut current = self.lock();
        current.schedule_inputs.change_calendar(name, new);
        current.update_schedules(name, |machine| machine.refers_to(&name.name));
        drop(current);
        self.notify();
    }

    /// Applies a changed or deleted capacity.
    pub(crate) fn change_capacity(&self, name: &Key, new: Option<Capacity>) {
        let mut current = self.lock();
        let is_kept = current.capacities.contains_key(name)
            || current.capacities.len() < MAX_MACHINES;
        match new {
            None => {
                current.capacities.remove(name);
                current.omitted_capacities.remove(name);
            }
            Some(new) if is_kept => {
                current.omitted_capacities.remove(name);
                current.capacities.insert(name.clone(), Arc::new(new));
            }
            Some(_) => {
                if current.omitted_capacities.len() < MAX_MACHINES {
                    current.omitted_capacities.insert(name.clone());
                }
            }
        }
        drop(current);
        self.notify();
    }

    /// Applies a changed or deleted set.
    pub(crate) fn change_set(&self, name: &Key, new: Option<Set>) {
        let mut current = self.lock();
        let is_kept =
            current.sets.contains_key(name) || current.sets.len() < MAX_MACHINES;
        match new {
            None => drop(current.sets.remove(name)),
            Some(new) if is_kept => {
                current.sets.insert(name.clone(), Arc::new(new));
            }
            Some(_) => {}
        }
        drop(current);
        self.notify();
    }

    pub(crate) fn delete(&self, name: &Key) {
        let mut current = self.lock();
        current.machines.remove(name);
        current.phases.remove(name);
        current.omitted.remove(name);
        drop(current);
        self.notify();
    }

    /// A list is complete: machines that are not in it are removed.
    pub(crate) fn retain_listed(&self, listed: &BTreeSet<Key>) {
        let mut current = self.lock();
        current.machines.retain(|name, _| listed.contains(name));
        current.phases.retain(|name, _| listed.contains(name));
        current.omitted.retain(|name| listed.contains(name));
        current.is_listed = true;
        current.watch_error = None;
        drop(current);
        self.notify();
    }

    /// Records the phase that an Event reports. Events without a phase and Events of machines that
    /// are not kept are ignored.
    pub(crate) fn record_event(&self, name: &Key, event: &EventRecord) {
        let Some(phase) = event.phase() else { return };
        let mut current = self.lock();
        // Events may be listed before the machines are.
        if current.is_listed && !current.machines.contains_key(name) {
            return;
        }
        if current.phases.len() < MAX_MACHINES || current.phases.contains_key(name) {
            let phases = current.phases.entry(name.clone()).or_default();
            Arc::make_mut(phases).add(event.at, phase);
        }
        drop(current);
        self.notify();
    }

    /// Records that the cluster cannot be read at present.
    pub(crate) fn set_watch_error(&self, why: String) {
        self.lock().watch_error = Some(why);
        self.notify();
    }

    /// Records that a kind other than ScheduledMachine cannot be read at present.
    pub(crate) fn set_unreadable(&self, kind: &'static str, why: String) {
        let previous = self.lock().unreadable.insert(kind, why.clone());
        if previous.as_ref() != Some(&why) {
            self.notify();
        }
    }

    /// Records whether an operator holds its Lease.
    pub(crate) fn set_lease(&self, lease: Lease) {
        let changed = Some(lease);
        let mut current = self.lock();
        if current.lease != changed {
            current.lease = changed;
            drop(current);
            self.notify();
        }
    }

    /// Records whether what reconciles capacities holds its Lease.
    pub(crate) fn set_capacity_lease(&self, lease: Lease) {
        let changed = Some(lease);
        let mut current = self.lock();
        if current.capacity_lease != changed {
            current.capacity_lease = changed;
            drop(current);
            self.notify();
        }
    }

    /// Records that all objects of a kind have been read.
    pub(crate) fn set_readable(&self, kind: &'static str) {
        if self.lock().unreadable.remove(kind).is_some() {
            self.notify();
        }
    }

    fn notify(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
