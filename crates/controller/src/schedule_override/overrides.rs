//! The overrides that the caches show, and which machines they apply to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_api::scheduled_machine::ScheduleSpec;
use fivespot_api::{ClassRef, ScheduleOverride};
use fivespot_plan::Unknown;
use fivespot_runtime::Key;
use fivespot_runtime::cache::SharedReads;
use serde::Deserialize;

use super::ended::EndedOverrides;
use super::index::{Machine, OverrideIndex};
use crate::observe::projection::KindInformer;
use crate::own_kind::OwnKind;

/// The overrides: their queue, and which machines they apply to.
#[derive(Debug)]
pub(crate) struct Overrides {
    pub(crate) kind: OwnKind,
    pub(super) index: OverrideIndex,
    /// Those that have ended.
    pub(crate) ended: EndedOverrides,
    /// Live lists that machines share.
    pub(crate) listed: SharedReads<Result<Listed, Unknown>>,
}

/// The part of a ScheduledMachine that is read for the index.
#[derive(Deserialize)]
struct MachineParts {
    metadata: Labels,
    spec: SpecParts,
}

#[derive(Deserialize)]
struct Labels {
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct SpecParts {
    schedule: ScheduleSpec,
    #[serde(default)]
    enabled: Option<bool>,
    #[serde(default, rename = "classRef")]
    class_ref: Option<ClassRef>,
}

/// The overrides of a namespace, as the server lists them.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) all: Arc<ConsideredOverrides<Arc<ScheduleOverride>>>,
    /// Whether there are no more than were read.
    pub(crate) is_complete: bool,
}

impl From<MachineParts> for Machine {
    fn from(parts: MachineParts) -> Self {
        let SpecParts {
            schedule,
            enabled,
            class_ref,
        } = parts.spec;
        Self {
            is_ignoring: !schedule.is_enabled_beside(enabled)
                || schedule.schedule().is_err(),
            labels: parts.metadata.labels.unwrap_or_default(),
            class: class_ref.map(|class| class.name),
        }
    }
}

impl Overrides {
    /// No overrides.
    pub(crate) fn new(kind: OwnKind) -> Self {
        Self {
            kind,
            index: OverrideIndex::default(),
            ended: EndedOverrides::default(),
            listed: SharedReads::default(),
        }
    }

    /// The considered overrides of a machine with these labels.
    pub(crate) fn of_machine(
        &self,
        key: &Key,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<ScheduleOverride>> {
        self.index.of_machine(key, labels)
    }

    /// The considered overrides of a ScheduledCapacity.
    pub(crate) fn of_capacity(&self, key: &Key) -> Vec<Arc<ScheduleOverride>> {
        self.index.of_capacity(key)
    }

    /// The cache of capacities shows a change of one: enqueues the overrides of it.
    pub(crate) fn capacity_changed(&self, key: &Key) {
        let own = self.index.of_capacity(key);
        let names = own.iter().filter_map(|of| of.metadata.name.as_deref());
        self.kind
            .enqueue(names.map(|name| Key::new(key.namespace.clone(), name)));
    }

    /// These overrides as a schedule knows them. One that had ended before the clock was set back is
    /// not among them; one that has ended by now still applies to the time before its end.
    pub(crate) fn in_schedule(
        &self,
        overrides: &[Arc<ScheduleOverride>],
    ) -> Vec<fivespot_schedule::Override> {
        let now = self.kind.queue.now();
        let is_over = |of: &ScheduleOverride| {
            self.ended.end_of(of, now).is_some_and(|end| end > now)
        };
        let all = overrides.iter().filter(|of| !is_over(of));
        all.filter_map(|of| of.in_schedule()).collect()
    }

    /// Whether one of mode Stop would be considered that is created now in a namespace.
    pub(crate) fn have_room_for_stop(&self, namespace: &str) -> bool {
        self.index.has_room_for_stop(namespace)
    }

    /// Enqueues the overrides beside machines of a class that has changed, and with it which of them
    /// these machines ignore.
    pub(crate) fn class_changed(&self, class: &str) {
        self.kind.enqueue(self.index.overrides_beside(class));
    }

    /// The cache of machines shows a change of these. Enqueues the overrides whose status may
    /// change.
    pub(crate) fn machines_changed<'a>(
        &self,
        machines: &KindInformer,
        keys: impl IntoIterator<Item = &'a Key>,
    ) {
        for key in keys {
            let found = machines.store.get(key);
            let parts = found.and_then(|of| of.read::<MachineParts>().ok());
            self.kind
                .enqueue(self.index.change_machine(key, parts.map(Machine::from)));
        }
    }

    /// The cache shows a change of these overrides. Enqueues them, and returns the machines whose
    /// schedule may change.
    pub(crate) fn changed<'a>(
        &self,
        informer: &KindInformer,
        keys: impl IntoIterator<Item = &'a Key>,
    ) -> BTreeSet<Key> {
        let read = |key: &Key| -> Option<ScheduleOverride> {
            informer.store.get(key)?.read().ok()
        };
        let mut machines = BTreeSet::new();
        for key in keys {
            let mut affected = self.index.change_override(key, read(key), read);
            affected.overrides.insert(key.clone());
            self.kind.enqueue(affected.overrides);
            machines.append(&mut affected.machines);
        }
        machines
    }

    /// The machines have been listed: forgets those that are gone, and enqueues all overrides,
    /// which may have waited for that.
    pub(crate) fn machines_synced(&self, machines: &KindInformer) {
        let mut known = self.index.machines();
        known.retain(|key| machines.store.get(key).is_none());
        self.machines_changed(machines, &known);
        self.kind.enqueue(self.index.overrides());
    }

    /// The overrides have been listed: forgets those that are gone. Returns the machines whose
    /// schedule may change.
    pub(crate) fn synced(&self, informer: &KindInformer) -> BTreeSet<Key> {
        let mut known = self.index.overrides();
        known.retain(|key| informer.store.get(key).is_none());
        self.changed(informer, &known)
    }
}
