//! Observes all objects that the planner needs, from the caches or live.
//!
//! The only place in a reconcile that reads the clock.

mod class;
pub(crate) mod confirm;
pub(crate) mod crds;
pub(crate) mod discovery;
mod hosts;
pub(crate) mod json_text;
pub mod kubeconfig;
pub(crate) mod live_reads;
pub(crate) mod management;
pub(crate) mod name_conflict;
mod node;
pub(crate) mod own_crd;
pub(crate) mod projection;
pub(crate) mod provided;
pub(crate) mod read_class;
pub(crate) mod read_once;
pub(crate) mod read_result;
pub(crate) mod schedule_inputs;
pub(crate) mod taken_name;
pub(crate) mod watch;
pub(crate) mod workload;

use std::sync::Arc;

use fivespot_api::{ScheduledMachine, name};
use fivespot_capi::{Cluster, Contract, Machine, Meta, Provider, Reference};
use fivespot_plan::{Fact, Freshness, Locations, Lookup, Observed, Unknown};
use futures::future::join_all;
use jiff::Timestamp;
use kube::api::ApiResource;
use serde::Deserialize as _;
use serde_json::Value;

use crate::context::Context;
use crate::failure;
use crate::kind::cluster_api;
use crate::object_state::ObjectState;
use crate::observe::json_text::JsonText;
use crate::observe::live_reads::LiveReads;
use crate::observe::name_conflict::NameConflict;
use crate::observe::projection::CachedKind;
use crate::provider_specs;
use fivespot_runtime::Key;
use fivespot_runtime::queue::not_before;
use management::Source;

/// The objects that a reconcile plans from.
pub(crate) struct Snapshot {
    /// When it was observed.
    pub(crate) now: Timestamp,
    /// The ScheduledMachine.
    pub(crate) object: ScheduledMachine,
    /// Its stored status.
    pub(crate) status: JsonText,
    /// All other objects.
    pub(crate) observed: Observed,
    /// Objects with the names we need that no watch shows, because they lack our label.
    pub(crate) conflicts: Vec<NameConflict>,
}

/// The snapshot that a reconcile acts on, and the reads that it was made from.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) reads: &'a LiveReads,
}

/// The outcome of observing.
pub(crate) enum Observation {
    /// The objects to plan from.
    Snapshot(Box<Snapshot>),
    /// There is no such ScheduledMachine.
    Gone,
    /// The ScheduledMachine, as stored, cannot be parsed; the error message.
    Unreadable { value: Value, message: String },
    /// The caches do not hold all objects.
    Incomplete(Incomplete),
    /// The ScheduledMachine could not be read; the error message.
    Failed(String),
}

/// Why observing from caches ended early.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Incomplete {
    /// An object has not arrived yet; the key is enqueued when it has.
    NotYet,
    /// An object is in no cache: only a live read shows it.
    NotCached,
}

/// Observes the objects for `key`, from caches or live. From caches it may have to wait, or need a
/// live read; a live observation needs neither.
///
/// Objects in `reads` are not read again; objects that are read live are recorded there.
pub(crate) async fn observe(
    context: &Arc<Context>,
    key: &Key,
    freshness: Freshness,
    reads: &LiveReads,
) -> Observation {
    if freshness == Freshness::Cached
        && let Some(cache) = context.loading(&key.namespace)
    {
        cache.add_waiting(key);
        return Observation::Incomplete(Incomplete::NotYet);
    }
    let source = Source {
        context,
        key,
        freshness,
        reads,
    };
    let found = source.scheduled_machine().await;
    match found {
        Ok(Fact::Known(Some(value))) => read(&source, value)
            .await
            .unwrap_or_else(Observation::Incomplete),
        Ok(Fact::Known(None)) => Observation::Gone,
        Ok(Fact::Unknown(unknown)) => Observation::Failed(message(&unknown)),
        Err(incomplete) => Observation::Incomplete(incomplete),
    }
}

async fn read(source: &Source<'_>, value: Value) -> Result<Observation, Incomplete> {
    let status = JsonText::of(&value["status"]);
    let mut specs = provider_specs::of(&value);
    let mut object = match ScheduledMachine::deserialize(&value) {
        Ok(object) => with_dropped_shutdown(source, object),
        Err(error) => {
            let message = error.to_string();
            return Ok(Observation::Unreadable { value, message });
        }
    };
    // Dropped here, because many reconciles wait for responses at the same time.
    drop(value);
    let class = class::resolve(source, &mut object, &mut specs).await?;
    let mut schedule = schedule_inputs::schedule_inputs(source, &mut object).await?;
    // The class has part of the schedule: its lead time and its end.
    schedule.unknown = class.or(schedule.unknown);
    let contract = contract(source).await;
    let machine = machine(source, &contract).await?;
    let known = machine.known().and_then(Option::as_ref);
    let locations = Locations::of(&object, known);
    let (named, bootstrap, infrastructure, workload) = futures::join!(
        cluster(source, &contract, &locations.cluster),
        lookups(source, &locations.bootstrap),
        lookups(source, &locations.infrastructure),
        node::workload(source, &object, &locations),
    );
    let (bootstrap, infrastructure) = (bootstrap?, infrastructure?);
    // Objects that exist without their Machine belong to the Cluster on their own label.
    let found = infrastructure.iter().chain(&bootstrap);
    let cluster = match Locations::cluster_on_label(&object, known, found) {
        Some(other) if other != locations.cluster => {
            cluster(source, &contract, other).await?
        }
        Some(_) | None => named?,
    };
    let lookups = bootstrap.iter().chain(&infrastructure);
    let conflicts = conflicts(source, lookups).await;
    let context = source.context;
    let hosts = hosts::hosts(source, &object).await?;
    let observed = Observed {
        freshness: source.freshness,
        specs,
        schedule,
        contract,
        cluster,
        machine,
        bootstrap,
        infrastructure,
        workload: workload?,
        releases_stuck: context.options.force_finalizer_on_timeout,
        reclaim_override: context
            .options
            .reclaim_override
            .or_else(|| object.spec.reclaim_stop().map(Into::into))
            .filter(|_| context.overrides.have_room_for_stop(&source.key.namespace)),
        outdated_crd: crds::outdated(context).await,
        hosts,
    };
    Ok(Observation::Snapshot(Box::new(Snapshot {
        now: not_before(source.context.queue.now(), last_recorded_instant(&object)),
        object,
        status,
        observed,
        conflicts,
    })))
}

/// The ScheduledMachine with the shutdown record that the server has dropped from its status, so
/// that a removal goes on although the record cannot be stored.
fn with_dropped_shutdown(
    source: &Source<'_>,
    mut object: ScheduledMachine,
) -> ScheduledMachine {
    let dropped = |state: &mut ObjectState| state.dropped_shutdown.clone();
    if let Some(status) = object.status.as_mut().filter(|of| of.shutdown.is_none()) {
        status.shutdown = source.context.state(source.key, dropped);
    }
    object
}

/// The latest instant at which an operator has acted, according to the status. That operator may
/// have stopped since, and its clock may have been set back.
fn last_recorded_instant(object: &ScheduledMachine) -> Option<Timestamp> {
    let status = object.status.as_ref()?;
    let left = status.shutdown.as_ref().map(|shutdown| shutdown.started_at);
    status.last_scheduled_time.max(left)
}

async fn contract(source: &Source<'_>) -> Fact<Contract> {
    match source.contract().await {
        Ok(Some(contract)) => {
            let group = fivespot_capi::version::GROUP;
            source.context.use_version(group, contract.name());
            Fact::Known(contract)
        }
        Ok(None) => {
            let group = fivespot_capi::version::GROUP;
            source.context.record_unserved(group, source.key);
            Fact::Unknown(Unknown::NotServed {
                message: format!("Machine of {group}"),
            })
        }
        Err(error) => Fact::Unknown(failure::unknown(&error)),
    }
}

async fn machine(
    source: &Source<'_>,
    contract: &Fact<Contract>,
) -> Result<Fact<Option<Machine>>, Incomplete> {
    let name = fivespot_api::name::child(&source.key.name);
    let found = cluster_api_object(source, contract, CachedKind::Machine, name).await?;
    Ok(parse(found, Machine::read))
}

async fn cluster(
    source: &Source<'_>,
    contract: &Fact<Contract>,
    name: &str,
) -> Result<Fact<Option<Cluster>>, Incomplete> {
    // A class that does not exist names none.
    if name.is_empty() {
        return Ok(Fact::Known(None));
    }
    let found = cluster_api_object(source, contract, CachedKind::Cluster, name).await?;
    Ok(parse(found, Cluster::read))
}

/// An object of one of Cluster API's own kinds.
async fn cluster_api_object(
    source: &Source<'_>,
    contract: &Fact<Contract>,
    projection: CachedKind,
    name: &str,
) -> Result<Fact<Option<Value>>, Incomplete> {
    match contract {
        Fact::Known(contract) => {
            let kind = if projection == CachedKind::Machine {
                "Machine"
            } else {
                "Cluster"
            };
            let resource = cluster_api(*contract, kind);
            source.object(&resource, projection, name).await
        }
        Fact::Unknown(unknown) => Ok(Fact::Unknown(unknown.clone())),
    }
}

async fn lookups(
    source: &Source<'_>,
    locations: &[Reference],
) -> Result<Vec<Lookup>, Incomplete> {
    let all = join_all(locations.iter().map(|place| lookup(source, place))).await;
    all.into_iter().collect()
}

async fn lookup(source: &Source<'_>, place: &Reference) -> Result<Lookup, Incomplete> {
    // We create no objects in other groups, even if an object that bypassed admission names one.
    if !name::is_provider_group(&place.group) {
        return Ok(Lookup {
            reference: place.clone(),
            found: Fact::Unknown(not_served(place)),
        });
    }
    let found = match source.resource(place).await {
        Ok(Some(resource)) => provider(source, &resource, place).await?,
        Ok(None) => {
            source.context.record_unserved(&place.group, source.key);
            find_in_other_versions(source, place).await?
        }
        Err(error) => Fact::Unknown(failure::unknown(&error)),
    };
    Ok(Lookup {
        reference: place.clone(),
        found,
    })
}

async fn provider(
    source: &Source<'_>,
    resource: &ApiResource,
    place: &Reference,
) -> Result<Fact<Option<Provider>>, Incomplete> {
    let found = source
        .object(resource, CachedKind::Provider, &place.name)
        .await?;
    Ok(parse(found, Provider::read))
}

/// An object that was created in a version that is not served any more exists in the served
/// versions. If no version is served, no object can be created either.
async fn find_in_other_versions(
    source: &Source<'_>,
    place: &Reference,
) -> Result<Fact<Option<Provider>>, Incomplete> {
    let any = Reference {
        version: None,
        ..place.clone()
    };
    let resource = match source.resource(&any).await {
        Ok(resource) => resource,
        Err(error) => return Ok(Fact::Unknown(failure::unknown(&error))),
    };
    if let Some(resource) = resource {
        let found = provider(source, &resource, place).await?;
        if !matches!(found, Fact::Known(None)) {
            return Ok(found);
        }
    }
    Ok(Fact::Unknown(not_served(place)))
}

fn not_served(place: &Reference) -> Unknown {
    Unknown::NotServed {
        message: format!("{} of {}", place.kind, place.group),
    }
}

/// The parsed object, or the error if it cannot be parsed.
fn parse<T>(
    found: Fact<Option<Value>>,
    read: impl Fn(&Value) -> Result<T, fivespot_capi::Error>,
) -> Fact<Option<T>> {
    found.and_then(|found| {
        let object = found.map(|value| read(&value)).transpose();
        let failed = |error: fivespot_capi::Error| Unknown::Failed {
            message: error.to_string(),
        };
        object.map_err(failed).into()
    })
}

/// The provider objects that were found without our label.
async fn conflicts(
    source: &Source<'_>,
    lookups: impl Iterator<Item = &Lookup>,
) -> Vec<NameConflict> {
    let is_unlabelled = |meta: &Meta| name::owner_name(&meta.labels).is_none();
    let mut conflicts = Vec::new();
    for lookup in lookups {
        let found = lookup.found.known().and_then(Option::as_ref);
        let Some(found) = found.filter(|found| is_unlabelled(&found.meta)) else {
            continue;
        };
        // Discovery has already returned this kind for the lookup.
        if let Ok(Some(resource)) = source.resource(&lookup.reference).await {
            let name = found.meta.name.clone();
            conflicts.push(NameConflict { resource, name });
        }
    }
    conflicts
}

fn message(unknown: &Unknown) -> String {
    unknown.message().unwrap_or("not read yet").to_owned()
}

/// Whether a read failed that may succeed when it is tried again.
pub(crate) fn has_failed_reads(observed: &Observed) -> bool {
    fn failed<T>(fact: &Fact<T>) -> bool {
        matches!(fact, Fact::Unknown(Unknown::Failed { .. }))
    }
    let mut lookups = observed.bootstrap.iter().chain(&observed.infrastructure);
    failed(&observed.contract)
        || failed(&observed.cluster)
        || failed(&observed.machine)
        || matches!(observed.hosts.unknown, Some(Unknown::Failed { .. }))
        || lookups.any(|lookup| failed(&lookup.found))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clean observation is not repeated, and one that lacks anything is.
    #[test]
    fn each_object_that_could_not_be_read_is_a_failed_read() {
        let failed = || Unknown::Failed {
            message: "no response".to_owned(),
        };
        let lookup = || Lookup {
            reference: Reference::new("b/v1", "B", "worker"),
            found: Fact::Unknown(failed()),
        };
        let alone: [fn(&mut Observed, Unknown, Lookup); 6] = [
            |it, unknown, _| it.contract = Fact::Unknown(unknown),
            |it, unknown, _| it.cluster = Fact::Unknown(unknown),
            |it, unknown, _| it.machine = Fact::Unknown(unknown),
            |it, unknown, _| it.hosts.unknown = Some(unknown),
            |it, _, lookup| it.bootstrap.push(lookup),
            |it, _, lookup| it.infrastructure.push(lookup),
        ];
        assert!(!has_failed_reads(&Observed::default()));
        for fail in alone {
            let mut observed = Observed::default();
            fail(&mut observed, failed(), lookup());
            assert!(has_failed_reads(&observed), "{observed:#?}");
        }
    }
}
