//! The inputs of a schedule besides its spec: calendars and overrides of the namespace.

use std::collections::BTreeMap;

use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_api::{ScheduleCalendar, ScheduleOverride, ScheduledMachine};
use fivespot_plan::{Fact, ScheduleInputs, Unknown};
use fivespot_runtime::cache::{Health, MAX_OBJECTS, TooLarge};
use fivespot_runtime::http::Address;
use serde::Deserialize as _;

use super::Incomplete;
use super::management::Source;
use crate::failure;
use crate::kind::{schedule_calendar, schedule_override};
use crate::observe::projection::CachedKind;
use crate::observe::watch::KindInformer;
use crate::schedule_override as overrides;

/// Reads the calendars and overrides of `object`. A kind that is not served counts as empty.
pub(super) async fn schedule_inputs(
    source: &Source<'_>,
    object: &ScheduledMachine,
) -> Result<ScheduleInputs, Incomplete> {
    let mut inputs = ScheduleInputs::default();
    for name in object.spec.schedule.calendars() {
        if inputs.calendars.contains_key(name) {
            continue;
        }
        let resource = schedule_calendar();
        let found = source.object(&resource, CachedKind::Calendar, name).await?;
        match found {
            Fact::Known(Some(value)) => {
                // A calendar that cannot be parsed has no dates that could be applied.
                if let Ok(calendar) = ScheduleCalendar::deserialize(&value) {
                    let dates = calendar.spec.dates();
                    inputs.calendars.insert(name.to_owned(), dates);
                }
            }
            Fact::Known(None) | Fact::Unknown(Unknown::NotServed { .. }) => {}
            Fact::Unknown(unknown) => inputs.unknown = Some(unknown),
        }
    }
    match all_overrides(source).await? {
        Ok(all) => {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let none = BTreeMap::new();
            let labels = object.metadata.labels.as_ref().unwrap_or(&none);
            let now = source.context.queue.now();
            let ended = &source.context.ended_overrides;
            // An override that has ended by now still applies to the time before its end.
            let is_over = |of: &ScheduleOverride| {
                ended.end_of(of, now).is_some_and(|end| end > now)
            };
            let own = all.of_machine(name, labels).filter(|of| !is_over(of));
            inputs.overrides = own.filter_map(ScheduleOverride::in_schedule).collect();
        }
        Err(Unknown::NotServed { .. }) => {}
        Err(unknown) => inputs.unknown = Some(unknown),
    }
    Ok(inputs)
}

/// The overrides of the namespace, from their cache. A live observation lists them if the cache is
/// not filled yet.
async fn all_overrides(
    source: &Source<'_>,
) -> Result<Result<ConsideredOverrides, Unknown>, Incomplete> {
    let informer = overrides::informer(source.context);
    let namespace = &source.key.namespace;
    match informer.health(namespace) {
        Health::Synced => Ok(Ok(overrides::considered(&informer, namespace))),
        Health::Loading if source.is_live() => Ok(listed(source, &informer).await),
        Health::Loading => {
            informer.add_waiting(source.key);
            Err(Incomplete::NotYet)
        }
        Health::Failing(failure) => {
            informer.add_waiting(source.key);
            Ok(Err(failure::of_watch(&failure)))
        }
    }
}

async fn listed(
    source: &Source<'_>,
    informer: &KindInformer,
) -> Result<ConsideredOverrides, Unknown> {
    let resource = schedule_override();
    let all = Address {
        resource: &resource,
        namespace: Some(&source.key.namespace),
        name: "",
        projection: Some(&informer.projection),
    };
    let mut found = Vec::new();
    let each = |value| {
        found.extend(ScheduleOverride::deserialize(&value).ok());
        let is_many = found.len() > MAX_OBJECTS;
        is_many
            .then_some(TooLarge::Objects)
            .map_or(Ok(()), |why| Err(why.into()))
    };
    let listed = source
        .context
        .api
        .page(&all, &[("limit", "500")], each)
        .await;
    match listed {
        Ok(_) => Ok(ConsideredOverrides::of(found)),
        Err(error) if failure::code(&error) == Some(404) => Err(Unknown::NotServed {
            message: failure::message(&error),
        }),
        Err(error) => Err(failure::unknown(&error)),
    }
}
