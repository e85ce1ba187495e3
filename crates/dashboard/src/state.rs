//! The state of the fleet, as the watches report it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::verdict::Verdict;
use fivespot_api::{
    ScheduleOverride, ScheduledCapacity, ScheduledMachineClassSpec, ScheduledMachineSet,
    SharedSchedule,
};
use fivespot_controller::Key;
use fivespot_schedule::Dates;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::decoded::Decoded;
use crate::followed::FollowedInputs;
use crate::machine::{Machine, PhaseHistory};
use crate::reader::{EventRecord, Leases};

/// The largest number of objects of one kind that are kept. More are counted and not shown.
const MAX_OBJECTS: usize = 20_000;

/// The name in notices of the kind ScheduledCapacity.
pub(crate) const CAPACITIES: &str = "ScheduledCapacities";

/// The name in notices of the kind ScheduledMachineClass.
pub(crate) const CLASSES: &str = "ScheduledMachineClasses";

/// The state of the fleet. Subscribers are notified when it changes.
#[derive(Debug)]
pub(crate) struct State {
    current: Mutex<Snapshot>,
    version: watch::Sender<u64>,
}

/// The state at one instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) machines: Objects<Machine>,
    pub(crate) phases: BTreeMap<Key, Arc<PhaseHistory>>,
    pub(crate) schedule_inputs: FollowedInputs,
    /// Whether the first list of machines is complete.
    pub(crate) is_listed: bool,
    /// Why the cluster cannot be read at present.
    pub(crate) watch_error: Option<String>,
    /// Whether the controllers hold their Leases. Before the first read, they are assumed to.
    pub(crate) leases: Leases,
    pub(crate) capacities: Objects<Decoded<ScheduledCapacity>>,
    /// The sets of machines.
    pub(crate) sets: Objects<Decoded<ScheduledMachineSet>>,
    /// The kinds other than ScheduledMachine that cannot be read at present, and why.
    pub(crate) unreadable: BTreeMap<&'static str, String>,
}

/// The objects of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Objects<T> {
    /// Those that are kept.
    pub(crate) all: BTreeMap<Key, Arc<T>>,
    /// Those beyond the limit.
    pub(crate) omitted: BTreeSet<Key>,
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            omitted: BTreeSet::new(),
        }
    }
}

impl<T> Objects<T> {
    /// Applies a changed or deleted object.
    fn change(&mut self, name: &Key, new: Option<T>) {
        let is_kept = self.all.contains_key(name) || self.all.len() < MAX_OBJECTS;
        match new {
            Some(new) if is_kept => {
                self.omitted.remove(name);
                self.all.insert(name.clone(), Arc::new(new));
            }
            Some(_) if self.omitted.len() < MAX_OBJECTS => {
                self.omitted.insert(name.clone());
            }
            Some(_) => {}
            None => {
                self.all.remove(name);
                self.omitted.remove(name);
            }
        }
    }
}

impl Snapshot {
    /// The verdict about a machine.
    pub(crate) fn verdict(&self, machine: &Machine, now: Timestamp) -> Verdict {
        machine.verdict(&self.leases.machines, now)
    }

    /// The kinds that are not readable at present and that the pages would show, and why. Nobody
    /// misses classes of which there is no machine.
    pub(crate) fn missed(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let has_class = || self.machines.all.values().any(|it| it.class().is_some());
        let all = self
            .unreadable
            .iter()
            .map(|(kind, why)| (*kind, why.as_str()));
        all.filter(move |(kind, _)| *kind != CLASSES || has_class())
    }

    /// Reads again what the machines for which `is_affected` returns true depend on. Other machines
    /// are unchanged: a fleet has thousands of machines, and each may have an override.
    fn update_machines(&mut self, is_affected: impl Fn(&Machine) -> bool) {
        let machines = self.machines.all.values_mut();
        for machine in machines.filter(|machine| is_affected(machine)) {
            *machine =
                Arc::new(Machine::clone(machine).with_inputs(&self.schedule_inputs));
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

    /// The version, which changes with the state.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Applies a new or changed machine.
    pub(crate) fn apply(&self, machine: Machine) {
        self.change(|current| {
            let machine = machine.with_inputs(&current.schedule_inputs);
            let name = machine.name.clone();
            current.machines.change(&name, Some(machine));
        });
    }

    /// Removes a deleted machine.
    pub(crate) fn delete(&self, name: &Key) {
        self.change(|current| {
            current.machines.change(name, None);
            current.phases.remove(name);
        });
    }

    /// Applies a changed or deleted override, and recomputes the schedules of the machines that
    /// it targets, and of those of an override that is considered because of it or no longer.
    pub(crate) fn change_override(&self, name: &Key, new: Option<Arc<ScheduleOverride>>) {
        self.change(|current| {
            let changed = current.schedule_inputs.change_override(name, new);
            current.update_machines(|machine| {
                let mut changed = changed.iter();
                machine.name.namespace == name.namespace
                    && changed.any(|it| it.is_about(&machine.name.name, &machine.labels))
            });
        });
    }

    /// Applies a changed or deleted calendar, and recomputes the schedules that refer to it.
    pub(crate) fn change_calendar(&self, name: &Key, new: Option<Dates>) {
        self.change(|current| {
            current.schedule_inputs.change_calendar(name, new);
            current.update_machines(|machine| machine.refers_to(name));
        });
    }

    /// Applies a changed or deleted class, and recomputes its machines.
    pub(crate) fn change_class(
        &self,
        name: &str,
        new: Option<ScheduledMachineClassSpec>,
    ) {
        self.change(|current| {
            current.schedule_inputs.change_class(name, new);
            current.update_machines(|machine| machine.class() == Some(name));
        });
    }

    /// Applies a changed or deleted schedule of that kind, and recomputes those that follow it.
    pub(crate) fn change_shared(
        &self,
        kind: &str,
        name: &Key,
        new: Option<SharedSchedule>,
    ) {
        self.change(|current| {
            current.schedule_inputs.change_shared(kind, name, new);
            current.update_machines(|machine| machine.follows(kind, name));
        });
    }

    /// Applies a changed or deleted capacity.
    pub(crate) fn change_capacity(
        &self,
        name: &Key,
        new: Option<Decoded<ScheduledCapacity>>,
    ) {
        self.change(|current| current.capacities.change(name, new));
    }

    /// Applies a changed or deleted set.
    pub(crate) fn change_set(
        &self,
        name: &Key,
        new: Option<Decoded<ScheduledMachineSet>>,
    ) {
        self.change(|current| current.sets.change(name, new));
    }

    /// A list of machines is complete: what Events said about others is dropped.
    pub(crate) fn set_listed(&self) {
        self.change(|current| {
            let machines = &current.machines.all;
            current.phases.retain(|name, _| machines.contains_key(name));
            current.is_listed = true;
            current.watch_error = None;
        });
    }

    /// Records the phase that an Event reports. Events without a phase and Events of machines that
    /// are not kept are ignored.
    pub(crate) fn record_event(&self, name: &Key, event: &EventRecord) {
        let Some(phase) = event.phase() else { return };
        let mut current = self.lock();
        // Events may be listed before the machines are.
        if current.is_listed && !current.machines.all.contains_key(name) {
            return;
        }
        if current.phases.len() < MAX_OBJECTS || current.phases.contains_key(name) {
            let phases = current.phases.entry(name.clone()).or_default();
            Arc::make_mut(phases).add(event.at, phase);
        }
        drop(current);
        self.notify();
    }

    /// Records that the cluster cannot be read at present.
    pub(crate) fn set_watch_error(&self, why: String) {
        self.change(|current| current.watch_error = Some(why));
    }

    /// Records that a kind other than ScheduledMachine cannot be read at present.
    pub(crate) fn set_unreadable(&self, kind: &'static str, why: String) {
        let previous = self.lock().unreadable.insert(kind, why.clone());
        if previous.as_ref() != Some(&why) {
            self.notify();
        }
    }

    /// Records whether the controllers hold their Leases.
    pub(crate) fn set_leases(&self, leases: Leases) {
        let previous = std::mem::replace(&mut self.lock().leases, leases.clone());
        if previous != leases {
            self.notify();
        }
    }

    /// Records that all objects of a kind have been read.
    pub(crate) fn set_readable(&self, kind: &'static str) {
        if self.lock().unreadable.remove(kind).is_some() {
            self.notify();
        }
    }

    fn change(&self, change: impl FnOnce(&mut Snapshot)) {
        change(&mut self.lock());
        self.notify();
    }

    fn notify(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
