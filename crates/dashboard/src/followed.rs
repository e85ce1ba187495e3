//! What machines and schedules depend on, as watches report it: it changes and goes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_api::{ScheduleOverride, ScheduledMachineClassSpec, SharedSchedule};
use fivespot_controller::Key;
use fivespot_schedule::Dates;

use crate::schedule_inputs::ScheduleInputs;

/// The largest number of classes, of overrides, of calendars and of shared schedules that are kept.
const MAX_SCHEDULE_INPUTS: usize = 4_096;

/// The inputs of schedules, with the overrides that take the place of those that go.
#[derive(Clone, Debug, Default)]
pub(crate) struct FollowedInputs {
    inputs: ScheduleInputs,
    overrides: BTreeMap<Key, Arc<ScheduleOverride>>,
}

impl Deref for FollowedInputs {
    type Target = ScheduleInputs;

    fn deref(&self) -> &ScheduleInputs {
        &self.inputs
    }
}

impl FollowedInputs {
    /// Sets or removes an override. Returns the overrides that are considered only before or only
    /// after it: the changed one, and one that takes or gives up its place.
    pub(crate) fn change_override(
        &mut self,
        name: &Key,
        new: Option<Arc<ScheduleOverride>>,
    ) -> Vec<Arc<ScheduleOverride>> {
        let has_room = self.overrides.len() < MAX_SCHEDULE_INPUTS;
        set_entry(&mut self.overrides, name, new, has_room);
        let all = self.overrides.iter();
        let of_namespace = all.filter(|(other, _)| other.namespace == name.namespace);
        let after = ConsideredOverrides::of(of_namespace.map(|(_, it)| it.clone()));
        let considered = &mut self.inputs.considered;
        let before = considered.remove(&name.namespace).unwrap_or_default();
        let changed = difference(&before, &after)
            .chain(difference(&after, &before))
            .collect();
        if after.iter().next().is_some() {
            considered.insert(name.namespace.clone(), after);
        }
        changed
    }

    /// Sets or removes a calendar.
    pub(crate) fn change_calendar(&mut self, name: &Key, new: Option<Dates>) {
        let all = &mut self.inputs.calendars;
        let count: usize = all.values().map(BTreeMap::len).sum();
        let of_namespace = all.entry(name.namespace.clone()).or_default();
        set_entry(of_namespace, &name.name, new, count < MAX_SCHEDULE_INPUTS);
        if of_namespace.is_empty() {
            all.remove(&name.namespace);
        }
    }

    /// Sets or removes a class.
    pub(crate) fn change_class(
        &mut self,
        name: &str,
        new: Option<ScheduledMachineClassSpec>,
    ) {
        let all = &mut self.inputs.classes;
        let has_room = all.len() < MAX_SCHEDULE_INPUTS;
        let new = new.map(|spec| Arc::new(spec.into()));
        set_entry(all, &name.to_owned(), new, has_room);
    }

    /// Sets or removes a schedule of that kind which machines follow.
    pub(crate) fn change_shared(
        &mut self,
        kind: &str,
        name: &Key,
        new: Option<SharedSchedule>,
    ) {
        let key = [&name.namespace, kind, &name.name].map(ToOwned::to_owned);
        let all = &mut self.inputs.shared;
        let has_room = all.len() < MAX_SCHEDULE_INPUTS;
        set_entry(all, &key, new.map(Arc::new), has_room);
    }
}

/// The overrides in `these` that are not in `those`. A changed override is another one.
fn difference(
    these: &ConsideredOverrides<Arc<ScheduleOverride>>,
    those: &ConsideredOverrides<Arc<ScheduleOverride>>,
) -> impl Iterator<Item = Arc<ScheduleOverride>> {
    let those: BTreeSet<_> = those.iter().map(Arc::as_ptr).collect();
    let these = these.iter();
    these
        .filter(move |it| !those.contains(&Arc::as_ptr(it)))
        .cloned()
}

/// Replaces an entry, inserts one if there is room, or removes it.
fn set_entry<K: Clone + Ord, T>(
    entries: &mut BTreeMap<K, T>,
    name: &K,
    new: Option<T>,
    has_room: bool,
) {
    let is_kept = has_room || entries.contains_key(name);
    match new.filter(|_| is_kept) {
        Some(new) => entries.insert(name.clone(), new),
        None => entries.remove(name),
    };
}
