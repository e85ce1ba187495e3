//! Everything that the planner asks to see, from the caches or live.
//!
//! The one place that reads the clock in a pass.

mod confirm;
mod near;
mod source;

use std::sync::Arc;

use fivespot_api::{ScheduledMachine, name};
use fivespot_capi::{Cluster, Contract, Machine, Meta, Provider, Reference};
use fivespot_plan::{Fact, Freshness, Places, Seen, Sighting, Unknown};
use futures::future::join_all;
use jiff::Timestamp;
use kube::api::ApiResource;
use serde::Deserialize as _;
use serde_json::Value;

use crate::failure;
use crate::kind::cluster_api;
use crate::memo::Memo;
use crate::printed::Printed;
use crate::shape::Shape;
use crate::shell::Shell;
use crate::specs;
use crate::taken::Taken;
pub(crate) use confirm::confirm;
use fivespot_runtime::Key;
use fivespot_runtime::queue::not_before;
pub(crate) use source::Answer;
use source::Source;

/// What a pass decides from.
pub(crate) struct View {
    /// When it was gathered.
    pub(crate) now: Timestamp,
    /// The ScheduledMachine.
    pub(crate) object: ScheduledMachine,
    /// Its status as it is stored.
    pub(crate) status: Printed,
    /// Everything else.
    pub(crate) seen: Seen,
    /// Objects of the right names that no watch shows, because they lack our label.
    pub(crate) taken: Vec<Taken>,
}

/// How gathering went.
pub(crate) enum Gathered {
    /// There is something to decide from.
    View(Box<View>),
    /// There is no such ScheduledMachine.
    Gone,
    /// There is one that makes no sense, as it is stored, and why it makes none.
    Unreadable { value: Value, message: String },
    /// There is not enough in the caches.
    Short(Short),
    /// The ScheduledMachine could not be read, and this is why.
    Failed(String),
}

/// Why gathering from caches was cut short.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Short {
    /// Something has not arrived yet; the key is woken when it has.
    NotYet,
    /// Something is in no cache: only a live look shows it.
    NotCached,
}

/// Gathers for `key` in one of two ways. From caches it may have to wait, or to look live; live
/// it has to do neither.
///
/// What `memo` knows is not read again, what is read live is noted in it.
pub(crate) async fn gather(
    shell: &Arc<Shell>,
    key: &Key,
    freshness: Freshness,
    memo: &Memo,
) -> Gathered {
    let source = Source {
        shell,
        key,
        freshness,
        memo,
    };
    let found = source.scheduled_machine().await;
    match found {
        Ok(Fact::Known(Some(value))) => {
            read(&source, value).await.unwrap_or_else(Gathered::Short)
        }
        Ok(Fact::Known(None)) => Gathered::Gone,
        Ok(Fact::Unknown(unknown)) => Gathered::Failed(words(&unknown)),
        Err(short) => Gathered::Short(short),
    }
}

async fn read(source: &Source<'_>, value: Value) -> Result<Gathered, Short> {
    let status = Printed::of(&value["status"]);
    let specs = specs::of(&value);
    let object = match ScheduledMachine::deserialize(&value) {
        Ok(object) => object,
        Err(error) => {
            let message = error.to_string();
            return Ok(Gathered::Unreadable { value, message });
        }
    };
    // Of many passes at a time none holds it while it waits for answers.
    drop(value);
    let contract = contract(source).await;
    let machine = machine(source, &contract).await?;
    let known = machine.known().and_then(Option::as_ref);
    let places = Places::of(&object, known);
    let (named, bootstrap, infrastructure, workload) = futures::join!(
        cluster(source, &contract, &places.cluster),
        sightings(source, &places.bootstrap),
        sightings(source, &places.infrastructure),
        near::workload(source, &object, &places),
    );
    let (bootstrap, infrastructure) = (bootstrap?, infrastructure?);
    // What exists without its Machine belongs to the Cluster on its own label.
    let found = infrastructure.iter().chain(&bootstrap);
    let cluster = match Places::cluster_on_label(&object, known, found) {
        Some(other) if other != places.cluster => {
            cluster(source, &contract, other).await?
        }
        Some(_) | None => named?,
    };
    let sightings = bootstrap.iter().chain(&infrastructure);
    let taken = taken(source, (&contract, &machine), sightings).await;
    let seen = Seen {
        freshness: source.freshness,
        specs,
        contract,
        cluster,
        machine,
        bootstrap,
        infrastructure,
        workload: workload?,
        releases_stuck: source.shell.options.force_finalizer_on_timeout,
    };
    Ok(Gathered::View(Box::new(View {
        now: not_before(source.shell.work.now(), on_record(&object)),
        object,
        status,
        seen,
        taken,
    })))
}

/// The latest instant that an operator is known to have acted at: it may have died since, and its
/// clock may have been set back.
fn on_record(object: &ScheduledMachine) -> Option<Timestamp> {
    let status = object.status.as_ref()?;
    let left = status.shutdown.as_ref().map(|shutdown| shutdown.started_at);
    status.last_scheduled_time.max(left)
}

async fn contract(source: &Source<'_>) -> Fact<Contract> {
    match source.contract().await {
        Ok(Some(contract)) => {
            let group = fivespot_capi::version::GROUP;
            source.shell.leave_versions(group, contract.name());
            Fact::Known(contract)
        }
        Ok(None) => {
            let group = fivespot_capi::version::GROUP;
            source.shell.not_served(group, source.key);
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
) -> Result<Fact<Option<Machine>>, Short> {
    let name = fivespot_api::name::child(&source.key.name);
    let found = core(source, contract, ("Machine", Shape::Machine), name).await?;
    Ok(understood(found, Machine::read))
}

async fn cluster(
    source: &Source<'_>,
    contract: &Fact<Contract>,
    name: &str,
) -> Result<Fact<Option<Cluster>>, Short> {
    let found = core(source, contract, ("Cluster", Shape::Cluster), name).await?;
    Ok(understood(found, Cluster::read))
}

/// An object of Cluster API's own kinds.
async fn core(
    source: &Source<'_>,
    contract: &Fact<Contract>,
    (kind, shape): (&str, Shape),
    name: &str,
) -> Result<Fact<Option<Value>>, Short> {
    match contract {
        Fact::Known(contract) => {
            let resource = cluster_api(*contract, kind);
            source.object(&resource, shape, name).await
        }
        Fact::Unknown(unknown) => Ok(Fact::Unknown(unknown.clone())),
    }
}

async fn sightings(
    source: &Source<'_>,
    places: &[Reference],
) -> Result<Vec<Sighting>, Short> {
    let all = join_all(places.iter().map(|place| sighting(source, place))).await;
    all.into_iter().collect()
}

async fn sighting(source: &Source<'_>, place: &Reference) -> Result<Sighting, Short> {
    // Nothing of ours is ever made elsewhere, whatever an object asks for that got past admission.
    if !name::is_provider_group(&place.group) {
        return Ok(Sighting {
            place: place.clone(),
            found: Fact::Unknown(not_served(place)),
        });
    }
    let found = match source.resource(place).await {
        Ok(Some(resource)) => provider(source, &resource, place).await?,
        Ok(None) => {
            source.shell.not_served(&place.group, source.key);
            elsewhere(source, place).await?
        }
        Err(error) => Fact::Unknown(failure::unknown(&error)),
    };
    Ok(Sighting {
        place: place.clone(),
        found,
    })
}

async fn provider(
    source: &Source<'_>,
    resource: &ApiResource,
    place: &Reference,
) -> Result<Fact<Option<Provider>>, Short> {
    let found = source
        .object(resource, Shape::Provider, &place.name)
        .await?;
    Ok(understood(found, Provider::read))
}

/// What was made in a version that is not served any more is there in those that are. Where
/// nothing is, nothing can be made either.
async fn elsewhere(
    source: &Source<'_>,
    place: &Reference,
) -> Result<Fact<Option<Provider>>, Short> {
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

/// What an object says, or that it makes no sense.
fn understood<T>(
    found: Fact<Option<Value>>,
    read: impl Fn(&Value) -> Result<T, fivespot_capi::Error>,
) -> Fact<Option<T>> {
    match found {
        Fact::Known(Some(value)) => match read(&value) {
            Ok(object) => Fact::Known(Some(object)),
            Err(error) => Fact::Unknown(Unknown::Failed {
                message: error.to_string(),
            }),
        },
        Fact::Known(None) => Fact::Known(None),
        Fact::Unknown(unknown) => Fact::Unknown(unknown),
    }
}

/// The objects that were found without our label.
async fn taken(
    source: &Source<'_>,
    (contract, machine): (&Fact<Contract>, &Fact<Option<Machine>>),
    sightings: impl Iterator<Item = &Sighting>,
) -> Vec<Taken> {
    let is_unlabelled = |meta: &Meta| name::owner_name(&meta.labels).is_none();
    let mut taken = Vec::new();
    if let (Some(contract), Some(Some(machine))) = (contract.known(), machine.known())
        && is_unlabelled(&machine.meta)
    {
        taken.push(Taken {
            resource: cluster_api(*contract, "Machine"),
            name: machine.meta.name.clone(),
        });
    }
    for sighting in sightings {
        let found = sighting.found.known().and_then(Option::as_ref);
        let Some(found) = found.filter(|found| is_unlabelled(&found.meta)) else {
            continue;
        };
        // It was found by the same answer.
        if let Ok(Some(resource)) = source.resource(&sighting.place).await {
            let name = found.meta.name.clone();
            taken.push(Taken { resource, name });
        }
    }
    taken
}

fn words(unknown: &Unknown) -> String {
    unknown.message().unwrap_or("nobody asked").to_owned()
}

/// Whether something could not be found out that may well be found out a little later.
pub(crate) fn is_troubled(seen: &Seen) -> bool {
    fn failed<T>(fact: &Fact<T>) -> bool {
        matches!(fact, Fact::Unknown(Unknown::Failed { .. }))
    }
    let mut sightings = seen.bootstrap.iter().chain(&seen.infrastructure);
    failed(&seen.contract)
        || failed(&seen.cluster)
        || failed(&seen.machine)
        || sightings.any(|sighting| failed(&sighting.found))
}
