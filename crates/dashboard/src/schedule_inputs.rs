//! The objects that schedules depend on: overrides and calendars.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fivespot_api::ScheduleOverride;
use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_controller::Key;
use fivespot_schedule::{Dates, Override};

/// The largest number of overrides and of calendars that are kept.
const MAX_SCHEDULE_INPUTS: usize = 4_096;

/// The overrides and calendars of all namespaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScheduleInputs {
    overrides: BTreeMap<Key, Arc<ScheduleOverride>>,
    /// Those of `overrides` that the operator considers, by namespace.
    considered: BTreeMap<String, ConsideredOverrides<Arc<ScheduleOverride>>>,
    calendars: BTreeMap<Key, Dates>,
}

impl ScheduleInputs {
    /// Sets or removes an override. Returns the overrides that are considered only before or only
    /// after it: the changed one, and one that takes or gives up its place.
    pub(crate) fn change_override(
        &mut self,
        name: &Key,
        new: Option<Arc<ScheduleOverride>>,
    ) -> Vec<Arc<ScheduleOverride>> {
        set_entry(&mut self.overrides, name, new);
        let all = self.overrides.iter();
        let of_namespace = all.filter(|(other, _)| other.namespace == name.namespace);
        let after = ConsideredOverrides::of(of_namespace.map(|(_, it)| it.clone()));
        let before = self.considered.remove(&name.namespace).unwrap_or_default();
        let changed = difference(&before, &after)
            .chain(difference(&after, &before))
            .collect();
        if after.iter().next().is_some() {
            self.considered.insert(name.namespace.clone(), after);
        }
        changed
    }

    /// Sets or removes a calendar.
    pub(crate) fn change_calendar(&mut self, name: &Key, new: Option<Dates>) {
        set_entry(&mut self.calendars, name, new);
    }

    /// The dates of a calendar.
    pub(crate) fn calendar(&self, name: &Key) -> Option<&Dates> {
        self.calendars.get(name)
    }

    /// The considered overrides of the machine `name` with these labels, in the form that its
    /// schedule uses.
    pub(crate) fn overrides_of(
        &self,
        name: &Key,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Override> {
        let considered = self.considered.get(&name.namespace).into_iter();
        let own = considered.flat_map(|all| all.of_machine(&name.name, labels));
        own.filter_map(ScheduleOverride::in_schedule).collect()
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

/// Inserts `new` if the limit allows it, or removes the entry.
fn set_entry<T>(entries: &mut BTreeMap<Key, T>, name: &Key, new: Option<T>) {
    let has_room = entries.contains_key(name) || entries.len() < MAX_SCHEDULE_INPUTS;
    match new.filter(|_| has_room) {
        Some(new) => entries.insert(name.clone(), new),
        None => entries.remove(name),
    };
}
