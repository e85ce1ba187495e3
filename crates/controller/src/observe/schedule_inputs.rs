//! The inputs of a schedule besides its spec: calendars and overrides of the namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_api::{
    Provided, Resolved, ScheduleCalendar, ScheduleOverride, ScheduleSpec,
    ScheduledMachine, SharedSchedule, SpotScheduleRef, Unfollowable, name,
};
use fivespot_capi::Reference;
use fivespot_plan::{Fact, ReclaimStop, ScheduleInputs, Unknown};
use fivespot_runtime::Key;
use fivespot_runtime::cache::Health;
use fivespot_runtime::http::Address;
use fivespot_schedule::Dates;
use serde::Deserialize as _;
use serde_json::Value;

use super::Incomplete;
use super::management::Source;
use crate::failure;
use crate::kind::{self, schedule_calendar};
use crate::observe::projection::{CachedKind, KindInformer, spot_schedule_term};
use crate::observe::provided::MAX_KINDS;
use crate::schedule_override::overrides::Listed;

/// Reads the schedule that `object` follows into it, and the calendars and overrides. A kind that
/// is not served counts as empty.
pub(super) async fn schedule_inputs(
    source: &Source<'_>,
    object: &mut ScheduledMachine,
) -> Result<ScheduleInputs, Incomplete> {
    let mut inputs = without_overrides(source, &mut object.spec.schedule).await?;
    let object = &*object;
    match overrides_of(source, object).await? {
        Ok(own) => {
            inputs.overrides = source.context.overrides.in_schedule(&own);
            let stops = own.iter().filter_map(|of| ReclaimStop::of(of));
            inputs.reclaim_stops = stops.collect();
        }
        Err(Unknown::NotServed { .. }) => {}
        Err(unknown) => inputs.unknown = Some(unknown),
    }
    Ok(inputs)
}

/// The same without overrides, for any object with a schedule.
pub(crate) async fn without_overrides(
    source: &Source<'_>,
    schedule: &mut ScheduleSpec,
) -> Result<ScheduleInputs, Incomplete> {
    let mut inputs = ScheduleInputs::default();
    if let Some(reference) = schedule.reference() {
        match followed(source, &reference).await? {
            Fact::Known(found) => schedule.resolved = found,
            Fact::Unknown(Unknown::NotServed { .. }) => inputs.is_kind_missing = true,
            Fact::Unknown(unknown) => inputs.unknown = Some(unknown),
        }
    }
    add_calendars(source, schedule.calendars(), &mut inputs).await?;
    Ok(inputs)
}

/// Reads the calendars of these names.
pub(crate) async fn add_calendars(
    source: &Source<'_>,
    names: impl Iterator<Item = &str>,
    inputs: &mut ScheduleInputs,
) -> Result<(), Incomplete> {
    for name in names {
        if inputs.calendars.contains_key(name) {
            continue;
        }
        match calendar(source, name).await? {
            Fact::Known(Some(dates)) => {
                inputs.calendars.insert(name.to_owned(), dates);
            }
            Fact::Known(None) | Fact::Unknown(Unknown::NotServed { .. }) => {}
            Fact::Unknown(unknown) => inputs.unknown = Some(unknown),
        }
    }
    Ok(())
}

/// What a reference resolves to; `None` if the object does not exist or cannot be decoded.
async fn followed(
    source: &Source<'_>,
    reference: &SpotScheduleRef,
) -> Result<Fact<Option<Resolved>>, Incomplete> {
    if !reference.is_known() {
        return provided(source, reference).await;
    }
    let SpotScheduleRef { kind, name, .. } = reference;
    let (context, namespace) = (source.context, &source.key.namespace);
    let resource = kind::spot_schedule(kind);
    let cached_kind = CachedKind::SpotSchedule(kind.clone());
    let at = Key::new(namespace.clone(), name);
    let term = spot_schedule_term(kind, &at);
    let informer = context.informer(&resource, cached_kind);
    let read = |value: &Value| {
        let schedule = SharedSchedule::of_spec(kind, &value["spec"]).ok()?;
        Some(Resolved::Shared {
            schedule: Arc::new(schedule),
            generation: value["metadata"]["generation"].as_i64(),
        })
    };
    source
        .read_once(&informer, at, &context.followed, &term, read)
        .await
}

/// What a reference to an object of another provider resolves to.
async fn provided(
    source: &Source<'_>,
    reference: &SpotScheduleRef,
) -> Result<Fact<Option<Resolved>>, Incomplete> {
    let SpotScheduleRef { kind, name, .. } = reference;
    let context = source.context;
    let place = Reference {
        group: name::SPOT_GROUP.to_owned(),
        // Group and kind are matched: a provider may serve any version.
        version: None,
        kind: kind.clone(),
        name: name.clone(),
    };
    let resource = match source.resource(&place).await {
        Ok(Some(resource)) => resource,
        Ok(None) => {
            context.record_unserved(&place.group, source.key);
            let message = format!("the API server does not serve {kind}");
            return Ok(Fact::Unknown(Unknown::NotServed { message }));
        }
        Err(error) => return Ok(Fact::Unknown(failure::unknown(&error))),
    };
    let resolved = |published, is_flapping| {
        Fact::Known(Some(Resolved::Provided {
            published,
            is_flapping,
        }))
    };
    if !context.has_room_for_provider(&resource) {
        let why =
            format!("{MAX_KINDS} other kinds are followed already, and no more are");
        return Ok(resolved(Err(Unfollowable::NotReady(why)), false));
    }
    let cached = CachedKind::ProvidedSchedule(kind.clone());
    let found = source.object(&resource, cached, name).await?;
    Ok(found.and_then(|found| {
        let Some(value) = found else {
            return Fact::Known(None);
        };
        let term =
            spot_schedule_term(kind, &Key::new(source.key.namespace.clone(), name));
        let published = Provided::of_object(&value);
        let now = context.queue.now();
        let following = context.provided.follow(&term, &published, now);
        resolved(following.published, following.is_flapping)
    }))
}

/// The dates of a calendar. One that cannot be parsed has no dates that could be applied.
async fn calendar(
    source: &Source<'_>,
    name: &str,
) -> Result<Fact<Option<Dates>>, Incomplete> {
    let context = source.context;
    let at = Key::new(source.key.namespace.clone(), name);
    let informer = context.informer(&schedule_calendar(), CachedKind::Calendar);
    let read = |value: &Value| {
        let calendar = ScheduleCalendar::deserialize(value).ok()?;
        Some(calendar.spec.dates())
    };
    source
        .read_once(&informer, at.clone(), &context.calendars, &at, read)
        .await
}

/// The considered overrides of a machine: from the index; before something is ended, from the
/// server, because one that was created a moment ago may forbid it.
async fn overrides_of(
    source: &Source<'_>,
    object: &ScheduledMachine,
) -> Result<Result<Vec<Arc<ScheduleOverride>>, Unknown>, Incomplete> {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let none = BTreeMap::new();
    let labels = object.metadata.labels.as_ref().unwrap_or(&none);
    let informer = source.context.override_cache();
    let health = informer.health(&source.key.namespace);
    let is_listed = source.is_live()
        && match health {
            Health::Synced => depends_on_overrides(object),
            Health::Loading => true,
            Health::Failing(_) => false,
        };
    if is_listed {
        let found = listed(source, &informer).await;
        match found {
            Ok(Listed { all, is_complete })
                if is_complete || health != Health::Synced =>
            {
                let own = all.iter().filter(|of| of.is_about(name, labels));
                return Ok(Ok(own.cloned().collect()));
            }
            Ok(_) => {}
            Err(unknown) => return Ok(Err(unknown)),
        }
    }
    Ok(match source.unlisted(&informer, &source.key.namespace)? {
        Some(unknown) => Err(unknown),
        None => Ok(source.context.overrides.of_machine(source.key, labels)),
    })
}

/// Whether an override can change what is done. It cannot stop a removal by the kill switch or by
/// a deletion, which must not wait for it.
fn depends_on_overrides(object: &ScheduledMachine) -> bool {
    let spec = &object.spec;
    spec.is_enabled() && !spec.kill_switch && object.metadata.deletion_timestamp.is_none()
}

/// How many pages of overrides are read at most before something is ended.
const MAX_PAGES: usize = 4;

/// The page size.
const PAGE: &str = "500";

/// Lists the overrides of the namespace. Machines that end together share a list.
async fn listed(source: &Source<'_>, informer: &KindInformer) -> Result<Listed, Unknown> {
    let all = Key::new(source.key.namespace.clone(), "");
    let listed = &source.context.overrides.listed;
    listed
        .read(&informer.name, &all, list(source, informer))
        .await
}

async fn list(source: &Source<'_>, informer: &KindInformer) -> Result<Listed, Unknown> {
    let resource = kind::schedule_override();
    let all = Address {
        resource: &resource,
        namespace: Some(&source.key.namespace),
        name: "",
        projection: Some(&informer.projection),
    };
    let mut found = ConsideredOverrides::default();
    let mut next = String::new();
    for _ in 0..MAX_PAGES {
        let query = [("limit", PAGE), ("continue", next.as_str())];
        let query = if next.is_empty() { &query[..1] } else { &query };
        let each = |value| {
            if let Ok(object) = ScheduleOverride::deserialize(&value) {
                found.add(Arc::new(object));
            }
            Ok(())
        };
        match source.context.api.page(&all, query, each).await {
            Ok(page) => next = page.next,
            Err(error) if failure::code(&error) == Some(404) => {
                return Err(Unknown::NotServed {
                    message: failure::message(&error),
                });
            }
            Err(error) => return Err(failure::unknown(&error)),
        }
        if next.is_empty() {
            break;
        }
    }
    Ok(Listed {
        all: Arc::new(found),
        is_complete: next.is_empty(),
    })
}
