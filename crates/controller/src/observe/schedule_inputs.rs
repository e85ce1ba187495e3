//! The inputs of a schedule besides its spec: calendars and overrides of the namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_api::{ScheduleCalendar, ScheduleOverride, ScheduledMachine};
use fivespot_plan::{Fact, ScheduleInputs, Unknown};
use fivespot_runtime::cache::{Health, MAX_OBJECTS, TooLarge};
use fivespot_runtime::http::Address;
use serde::Deserialize as _;

use super::Incomplete;
use super::management::Source;
use crate::failure;
use crate::kind::{self, schedule_calendar};
use crate::observe::projection::CachedKind;
use crate::observe::watch::KindInformer;
use crate::schedule_override;

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
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let none = BTreeMap::new();
    let labels = object.metadata.labels.as_ref().unwrap_or(&none);
    match overrides_of(source, name, labels).await? {
        Ok(own) => {
            let now = source.context.queue.now();
            let ended = &source.context.overrides.ended;
            // An override that has ended by now still applies to the time before its end.
            let is_over = |of: &ScheduleOverride| {
                ended.end_of(of, now).is_some_and(|end| end > now)
            };
            let own = own.iter().filter(|of| !is_over(of));
            inputs.overrides = own.filter_map(|of| of.in_schedule()).collect();
        }
        Err(Unknown::NotServed { .. }) => {}
        Err(unknown) => inputs.unknown = Some(unknown),
    }
    Ok(inputs)
}

/// The considered overrides of the machine `name` with these labels, from the index. A live
/// observation lists the overrides if their cache is not filled yet.
async fn overrides_of(
    source: &Source<'_>,
    name: &str,
    labels: &BTreeMap<String, String>,
) -> Result<Result<Vec<Arc<ScheduleOverride>>, Unknown>, Incomplete> {
    let informer = schedule_override::informer(source.context);
    match informer.health(&source.key.namespace) {
        Health::Synced => Ok(Ok(source.context.overrides.of_machine(source.key, labels))),
        Health::Loading if source.is_live() => {
            let listed = listed(source, &informer).await;
            Ok(listed.map(|all| {
                let own = all.iter().filter(|of| of.is_about(name, labels));
                own.cloned().collect()
            }))
        }
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
) -> Result<ConsideredOverrides<Arc<ScheduleOverride>>, Unknown> {
    let resource = kind::schedule_override();
    let all = Address {
        resource: &resource,
        namespace: Some(&source.key.namespace),
        name: "",
        projection: Some(&informer.projection),
    };
    let mut found = Vec::new();
    let each = |value| {
        found.extend(ScheduleOverride::deserialize(&value).ok().map(Arc::new));
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
