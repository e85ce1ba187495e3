//! Which overrides apply to which machines, kept by the events of their watches.
//!
//! An override is parsed once for each change of it, and only if it is considered: of the others
//! the index keeps the rank. Nothing here is computed for each reconcile or as time passes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::ScheduleOverride;
use fivespot_api::schedule_override::{ConsideredOverrides, Rank};
use fivespot_plan::Matched;

use crate::Key;

/// The considered overrides and the labels of the machines, by namespace.
#[derive(Debug, Default)]
pub(crate) struct OverrideIndex(Mutex<BTreeMap<String, Namespace>>);

/// What of a ScheduledMachine decides which overrides apply to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) labels: BTreeMap<String, String>,
    /// Whether its schedule is disabled or invalid: overrides have no effect.
    pub(crate) is_ignoring: bool,
    /// The class that it names.
    pub(crate) class: Option<String>,
}

/// The objects that a change affects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Affected {
    /// ScheduledMachines whose schedule may have changed.
    pub(crate) machines: BTreeSet<Key>,
    /// ScheduleOverrides whose status may have changed.
    pub(crate) overrides: BTreeSet<Key>,
}

/// A label's name and value.
type Label = (String, String);

#[derive(Debug, Default)]
struct Namespace {
    considered: ConsideredOverrides<Arc<ScheduleOverride>>,
    beyond: Beyond,
    machines: BTreeMap<Key, Labelled>,
    /// The machines that have a label.
    by_label: BTreeMap<Arc<Label>, BTreeSet<Key>>,
}

/// The overrides beyond the limit: the first takes the next place that is free.
#[derive(Debug, Default)]
struct Beyond {
    ranked: BTreeSet<Rank>,
    by_name: BTreeMap<String, Rank>,
}

impl Beyond {
    fn insert(&mut self, rank: Rank) {
        self.remove(rank.name());
        self.by_name.insert(rank.name().to_owned(), rank.clone());
        self.ranked.insert(rank);
    }

    fn remove(&mut self, name: &str) {
        if let Some(rank) = self.by_name.remove(name) {
            self.ranked.remove(&rank);
        }
    }

    /// Takes the first, if `considered` has a place for it.
    fn take_for(
        &mut self,
        considered: &ConsideredOverrides<Arc<ScheduleOverride>>,
    ) -> Option<Rank> {
        let first = self.ranked.first().filter(|of| considered.admits(of))?;
        let first = first.clone();
        self.remove(first.name());
        Some(first)
    }
}

/// A machine, with labels that it shares with others; sorted.
#[derive(Debug)]
struct Labelled {
    labels: Box<[Arc<Label>]>,
    is_ignoring: bool,
    class: Option<String>,
}

impl Labelled {
    fn label(&self, name: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|of| of.0.as_str().cmp(name));
        Some(&self.labels[at.ok()?].1)
    }

    /// Whether an override applies to it; `key` is its own.
    fn is_target_of(&self, object: &ScheduleOverride, key: &Key) -> bool {
        object.applies_to(&key.name, |name| self.label(name))
    }

    fn is(&self, machine: &Machine) -> bool {
        let own = self.labels.iter().map(|of| (&of.0, &of.1));
        self.is_ignoring == machine.is_ignoring
            && self.class == machine.class
            && own.eq(&machine.labels)
    }
}

impl OverrideIndex {
    fn namespaces(&self) -> MutexGuard<'_, BTreeMap<String, Namespace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The override `key` is now `found`; `None` if it is gone or cannot be parsed. `read` returns
    /// another override of the namespace that becomes considered because of that.
    pub(crate) fn change_override(
        &self,
        key: &Key,
        found: Option<ScheduleOverride>,
        read: impl Fn(&Key) -> Option<ScheduleOverride>,
    ) -> Affected {
        let mut namespaces = self.namespaces();
        let namespace = namespaces.entry(key.namespace.clone()).or_default();
        let affected = namespace.change_override(key, found, read);
        if namespace.is_empty() {
            namespaces.remove(&key.namespace);
        }
        affected
    }

    /// The ScheduledMachine `key` is now `found`; `None` if it is gone or cannot be parsed. Returns
    /// the considered overrides that have applied to it or apply to it now, if that makes a
    /// difference to them.
    pub(crate) fn change_machine(
        &self,
        key: &Key,
        found: Option<Machine>,
    ) -> BTreeSet<Key> {
        let mut namespaces = self.namespaces();
        if found.is_none() && !namespaces.contains_key(&key.namespace) {
            return BTreeSet::new();
        }
        let namespace = namespaces.entry(key.namespace.clone()).or_default();
        let affected = namespace.change_machine(key, found);
        if namespace.is_empty() {
            namespaces.remove(&key.namespace);
        }
        affected
    }

    /// The keys of the overrides that are in the index.
    pub(crate) fn overrides(&self) -> BTreeSet<Key> {
        let namespaces = self.namespaces();
        let all = namespaces.iter();
        all.flat_map(|(name, namespace)| namespace.keys(name))
            .collect()
    }

    /// The keys of the overrides of namespaces in which a machine names the class.
    pub(crate) fn overrides_beside(&self, class: &str) -> BTreeSet<Key> {
        let namespaces = self.namespaces();
        let is_used = |namespace: &Namespace| {
            let mut machines = namespace.machines.values();
            machines.any(|of| of.class.as_deref() == Some(class))
        };
        let used = namespaces.iter().filter(|(_, of)| is_used(of));
        used.flat_map(|(name, namespace)| namespace.keys(name))
            .collect()
    }

    /// The keys of the machines that are in the index.
    pub(crate) fn machines(&self) -> BTreeSet<Key> {
        let namespaces = self.namespaces();
        let all = namespaces.values().flat_map(|of| of.machines.keys());
        all.cloned().collect()
    }

    /// The considered overrides of a machine with these labels.
    pub(crate) fn of_machine(
        &self,
        key: &Key,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<ScheduleOverride>> {
        let namespaces = self.namespaces();
        let considered = namespaces.get(&key.namespace).map(|of| &of.considered);
        let all = considered.into_iter().flat_map(ConsideredOverrides::iter);
        let own = all.filter(|of| of.is_about(&key.name, labels));
        own.cloned().collect()
    }

    /// The considered overrides of a ScheduledCapacity.
    pub(crate) fn of_capacity(&self, key: &Key) -> Vec<Arc<ScheduleOverride>> {
        let namespaces = self.namespaces();
        let considered = namespaces.get(&key.namespace).map(|of| &of.considered);
        let all = considered.into_iter().flat_map(ConsideredOverrides::iter);
        let own = all.filter(|of| of.capacity() == Some(key.name.as_str()));
        own.cloned().collect()
    }

    /// Whether one of mode Stop would be considered that is created now in a namespace.
    pub(crate) fn has_room_for_stop(&self, namespace: &str) -> bool {
        let namespaces = self.namespaces();
        let considered = namespaces.get(namespace).map(|of| &of.considered);
        considered.is_none_or(ConsideredOverrides::have_room_for_stop)
    }

    /// The classes of the machines that the override `key` applies to.
    pub(crate) fn classes(&self, key: &Key) -> BTreeSet<String> {
        let namespaces = self.namespaces();
        let found = namespaces
            .get(&key.namespace)
            .and_then(|of| Some((of, of.considered.get(&key.name)?)));
        let Some((namespace, object)) = found else {
            return BTreeSet::new();
        };
        let classes = namespace.matching(object);
        classes.filter_map(|(_, of)| of.class.clone()).collect()
    }

    /// The machines that the override `key` applies to.
    pub(crate) fn matched(&self, key: &Key) -> Matched {
        let namespaces = self.namespaces();
        let found = namespaces
            .get(&key.namespace)
            .and_then(|of| Some((of, of.considered.get(&key.name)?)));
        let Some((namespace, object)) = found else {
            return Matched {
                is_beyond_limit: true,
                ..Matched::default()
            };
        };
        let mut matched = Matched::default();
        for (key, machine) in namespace.matching(object) {
            matched.machines += 1;
            if machine.is_ignoring {
                matched.ignoring.push(key.name.clone());
            }
        }
        matched
    }
}

impl Namespace {
    fn is_empty(&self) -> bool {
        self.machines.is_empty()
            && self.beyond.ranked.is_empty()
            && self.considered.iter().next().is_none()
    }

    fn change_override(
        &mut self,
        key: &Key,
        found: Option<ScheduleOverride>,
        read: impl Fn(&Key) -> Option<ScheduleOverride>,
    ) -> Affected {
        let mut affected = Affected::default();
        let rank = found.as_ref().map(Rank::of);
        match (self.considered.get(&key.name), &found) {
            (Some(known), Some(found)) if is_same_in_effect(known, found) => {
                return affected;
            }
            (Some(_), _) => {
                let known = self.considered.remove(&key.name);
                self.affect(known.as_deref(), &mut affected);
            }
            (None, _) => {
                if rank.is_some() && self.beyond.by_name.get(&key.name) == rank.as_ref() {
                    return affected;
                }
                self.beyond.remove(&key.name);
            }
        }
        if let Some(rank) = rank {
            self.beyond.insert(rank);
        }
        while let Some(first) = self.beyond.take_for(&self.considered) {
            let object = if first.name() == key.name {
                found.clone()
            } else {
                read(&Key::new(key.namespace.clone(), first.name()))
            };
            let Some(object) = object.map(Arc::new) else {
                continue;
            };
            self.affect(Some(&object), &mut affected);
            if let Some(dropped) = self.considered.add(object) {
                self.affect(Some(&dropped), &mut affected);
                self.beyond.insert(Rank::of(&dropped));
            }
        }
        affected
    }

    /// Adds an override that is considered only before or only after a change, and its machines.
    fn affect(&self, object: Option<&ScheduleOverride>, affected: &mut Affected) {
        let Some(object) = object else { return };
        let machines = self.matching(object).map(|(key, _)| key.clone());
        affected.machines.extend(machines);
        let metadata = &object.metadata;
        affected.overrides.insert(Key::new(
            metadata.namespace.clone().unwrap_or_default(),
            metadata.name.clone().unwrap_or_default(),
        ));
    }

    fn change_machine(&mut self, key: &Key, found: Option<Machine>) -> BTreeSet<Key> {
        let before = self.machines.get(key);
        let is_same = match (before, &found) {
            (Some(before), Some(found)) => before.is(found),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same {
            return BTreeSet::new();
        }
        let mut affected = self.overrides_of(key);
        if let Some(before) = self.machines.remove(key) {
            for label in &before.labels {
                if let Some(keys) = self.by_label.get_mut(label) {
                    keys.remove(key);
                    if keys.is_empty() {
                        self.by_label.remove(label);
                    }
                }
            }
        }
        let Some(machine) = found else {
            return affected;
        };
        let labels = machine.labels.into_iter().map(|label| {
            let known = self.by_label.get_key_value(&label);
            let label = known.map_or_else(|| Arc::new(label), |(known, _)| known.clone());
            let keys = self.by_label.entry(label.clone()).or_default();
            keys.insert(key.clone());
            label
        });
        let labelled = Labelled {
            labels: labels.collect(),
            is_ignoring: machine.is_ignoring,
            class: machine.class,
        };
        self.machines.insert(key.clone(), labelled);
        affected.extend(self.overrides_of(key));
        affected
    }

    /// The keys of all its overrides.
    fn keys(&self, name: &str) -> impl Iterator<Item = Key> {
        let beyond = self.beyond.ranked.iter().map(Rank::name);
        let considered = self.considered.iter();
        let considered = considered.filter_map(|of| of.metadata.name.as_deref());
        beyond.chain(considered).map(move |of| Key::new(name, of))
    }

    /// The considered overrides of a machine.
    fn overrides_of(&self, key: &Key) -> BTreeSet<Key> {
        let Some(machine) = self.machines.get(key) else {
            return BTreeSet::new();
        };
        let all = self.considered.iter();
        let own = all.filter(|of| machine.is_target_of(of, key));
        let names = own.filter_map(|of| of.metadata.name.as_deref());
        names
            .map(|name| Key::new(key.namespace.clone(), name))
            .collect()
    }

    /// The machines that an override applies to.
    fn matching<'a>(
        &'a self,
        object: &ScheduleOverride,
    ) -> impl Iterator<Item = (&'a Key, &'a Labelled)> {
        let candidates = self.candidates(object).into_iter();
        candidates.filter(|(key, machine)| machine.is_target_of(object, key))
    }

    /// The machines among which are those that an override applies to: the one that it names, those
    /// with the rarest label that it requires, or all of the namespace.
    fn candidates<'a>(
        &'a self,
        object: &ScheduleOverride,
    ) -> Vec<(&'a Key, &'a Labelled)> {
        let spec = &object.spec;
        if let Some(target) = &spec.target_ref {
            let namespace = object.metadata.namespace.clone().unwrap_or_default();
            let key = Key::new(namespace, target.name.clone());
            return self.machines.get_key_value(&key).into_iter().collect();
        }
        let required = spec.selector.iter().flat_map(|of| of.match_labels.iter());
        let required = required
            .flatten()
            .map(|(name, value)| self.by_label.get(&(name.clone(), value.clone())));
        let rarest = required.min_by_key(|keys| keys.map_or(0, BTreeSet::len));
        match rarest {
            None => self.machines.iter().collect(),
            Some(keys) => keys
                .into_iter()
                .flatten()
                .filter_map(|key| self.machines.get_key_value(key))
                .collect(),
        }
    }
}

/// Whether two states of an override have the same effect on machines, and the same rank.
fn is_same_in_effect(one: &ScheduleOverride, other: &ScheduleOverride) -> bool {
    let identity = |of: &ScheduleOverride| {
        let metadata = &of.metadata;
        (metadata.uid.clone(), metadata.creation_timestamp.clone())
    };
    one.spec == other.spec
        && identity(one) == identity(other)
        && Rank::of(one) == Rank::of(other)
}

#[cfg(test)]
mod tests;
