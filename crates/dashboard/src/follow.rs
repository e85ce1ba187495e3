//! Follows the cluster: applies the events of the watches to the state.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fivespot_api::{
    CapitalMarketsSchedule, ScheduleCalendar, ScheduleOverride, ScheduledCapacity,
    ScheduledMachine, ScheduledMachineClass, ScheduledMachineSet, SharedSchedule,
    TimeBasedSpotSchedule,
};
use fivespot_controller::Key;
use futures::StreamExt as _;
use kube::Resource;
use kube::runtime::watcher::{Error, Event};

use crate::decoded::decoded;
use crate::machine::{Machine, key};
use crate::reader::{EventRecord, ObjectWatch, Reader};
use crate::serve::Now;
use crate::state::{CAPACITIES, CLASSES, State};

/// How often the Lease of the operator is read. An operator that is gone is noticed by the time that
/// passes, which no watch reports.
const LEASE_INTERVAL: Duration = Duration::from_secs(5);

/// Follows machines, sets, capacities, what schedules depend on, Events and the operator's Lease until
/// dropped.
pub(crate) async fn follow(reader: &Reader, state: &State, now: &Now) {
    let leases = async {
        loop {
            state.set_leases(reader.leases(now().await).await);
            tokio::time::sleep(LEASE_INTERVAL).await;
        }
    };
    let objects = objects(reader, state);
    tokio::select! {
        () = objects => {}
        () = leases => {}
    }
}

async fn objects(reader: &Reader, state: &State) {
    let sets = reader.watch::<ScheduledMachineSet>();
    let capacities = reader.watch::<ScheduledCapacity>();
    let overrides = reader.watch::<ScheduleOverride>();
    let calendars = reader.watch::<ScheduleCalendar>();
    // A class, an override, a calendar or a shared schedule that cannot be decoded counts as none.
    futures::join!(
        machines(reader, state),
        follow_kind("ScheduledMachineSets", sets, state, |name, found| {
            state.change_set(&name, found.map(decoded));
        }),
        follow_kind(CAPACITIES, capacities, state, |name, found| {
            state.change_capacity(&name, found.map(decoded));
        }),
        follow_kind(CLASSES, reader.classes(), state, |name, found| {
            let found = found.and_then(|it| decoded(it).ok());
            let spec = found.map(|of: ScheduledMachineClass| of.spec);
            state.change_class(&name.name, spec);
        }),
        follow_kind("ScheduleOverrides", overrides, state, |name, found| {
            let found = found.and_then(|it| decoded(it).ok());
            state.change_override(&name, found.map(Arc::new));
        }),
        follow_kind("ScheduleCalendars", calendars, state, |name, found| {
            let found = found.and_then(|it| decoded(it).ok());
            let dates = found.map(|of: ScheduleCalendar| of.spec.dates());
            state.change_calendar(&name, dates);
        }),
        shared::<TimeBasedSpotSchedule>("TimeBasedSpotSchedules", reader, state),
        shared::<CapitalMarketsSchedule>("CapitalMarketsSchedules", reader, state),
        events(reader, state)
    );
}

async fn machines(reader: &Reader, state: &State) {
    let changes = reader.watch::<ScheduledMachine>();
    let report = |name: Key, found: Option<_>| match found {
        Some(found) => state.apply(Machine::of(found)),
        None => state.delete(&name),
    };
    follow_objects(changes, report, |listed| match listed {
        Ok(()) => state.set_listed(),
        Err(error) => state.set_watch_error(error.to_string()),
    })
    .await;
}

async fn shared<K: Resource<DynamicType = ()>>(
    kinds: &'static str,
    reader: &Reader,
    state: &State,
) {
    let kind = K::kind(&());
    follow_kind(kinds, reader.watch::<K>(), state, |name, found| {
        let found =
            found.and_then(|it| SharedSchedule::of_spec(&kind, &it.data["spec"]).ok());
        state.change_shared(&kind, &name, found);
    })
    .await;
}

/// Follows a kind without which the pages are shown too. If it cannot be read although the cluster
/// serves it, the pages show the error.
async fn follow_kind<K: Resource>(
    kind: &'static str,
    changes: impl ObjectWatch<K>,
    state: &State,
    report: impl Fn(Key, Option<K>),
) {
    follow_objects(changes, report, |listed| match listed {
        Ok(()) => state.set_readable(kind),
        Err(error) if is_not_served(&error) => {}
        Err(error) => state.set_unreadable(kind, error.to_string()),
    })
    .await;
}

/// Calls `report` with each object of a watch, and with `None` for each deleted object; and `listed`
/// after each list, and with the error of a watch that ended.
async fn follow_objects<K: Resource>(
    changes: impl ObjectWatch<K>,
    report: impl Fn(Key, Option<K>),
    listed: impl Fn(Result<(), Error>),
) {
    let mut changes = pin!(changes);
    let mut known = BTreeSet::new();
    // What was known before a list, without what the list has.
    let mut unlisted = BTreeSet::new();
    while let Some(change) = changes.next().await {
        match change {
            Ok(Event::Init) => unlisted.clone_from(&known),
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                let name = key(object.meta());
                unlisted.remove(&name);
                known.insert(name.clone());
                report(name, Some(object));
            }
            Ok(Event::InitDone) => {
                for gone in std::mem::take(&mut unlisted) {
                    known.remove(&gone);
                    report(gone, None);
                }
                listed(Ok(()));
            }
            Ok(Event::Delete(object)) => {
                let name = key(object.meta());
                known.remove(&name);
                report(name, None);
            }
            Err(error) => {
                tracing::debug!(%error, "a watch ended");
                listed(Err(error));
            }
        }
    }
}

/// Whether the server does not serve the kind, as in an older installation or without 5-Spot.
fn is_not_served(error: &Error) -> bool {
    matches!(error, Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}

async fn events(reader: &Reader, state: &State) {
    let mut changes = pin!(reader.events());
    while let Some(change) = changes.next().await {
        let event = match change {
            Ok(Event::Apply(event) | Event::InitApply(event)) => event,
            Ok(Event::InitDone) => {
                state.set_readable("Events");
                continue;
            }
            Ok(Event::Init | Event::Delete(_)) => continue,
            Err(error) => {
                // The pages are shown without Events. The status has the same facts with less
                // history.
                tracing::debug!(%error, "a watch of Events ended");
                state.set_unreadable("Events", error.to_string());
                continue;
            }
        };
        let about = &event.involved_object;
        let name = Key::new(
            about.namespace.clone().unwrap_or_default(),
            about.name.clone().unwrap_or_default(),
        );
        if let Some(record) = EventRecord::of(&event) {
            state.record_event(&name, &record);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::watcher::Event;

    use super::{State, follow_kind};

    fn named(name: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.namespace = Some("default".to_owned());
        object.metadata.name = Some(name.to_owned());
        object
    }

    #[tokio::test]
    async fn what_a_further_list_lacks_is_reported_as_gone_once() {
        let changes = [
            Event::Init,
            Event::InitApply(named("listed")),
            Event::InitApply(named("deleted")),
            Event::InitDone,
            Event::Delete(named("deleted")),
            Event::Apply(named("created")),
            Event::Init,
            Event::InitApply(named("listed")),
            Event::InitDone,
        ];
        let reported = RefCell::new(Vec::new());
        let report = |key: super::Key, object: Option<ConfigMap>| {
            let change = if object.is_some() { "is" } else { "gone" };
            reported.borrow_mut().push(format!("{} {change}", key.name));
        };
        let changes = futures::stream::iter(changes.map(Ok));
        follow_kind("ConfigMaps", changes, &State::new(), report).await;
        assert_eq!(
            reported.into_inner(),
            [
                "listed is",
                "deleted is",
                "deleted gone",
                "created is",
                "listed is",
                "created gone"
            ]
        );
    }
}
