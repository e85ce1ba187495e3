//! Reads the ScheduledMachines for a preview or a report, from files or from a cluster.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use fivespot_api::scheduled_machine_set::MAX_REPLICAS;
use fivespot_api::{
    CapitalMarketsSchedule, ScheduleCalendar, ScheduleOverride, ScheduledCapacity,
    ScheduledMachine, ScheduledMachineClass, ScheduledMachineSet, TimeBasedSpotSchedule,
    name,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{DynamicObject, ListParams, TypeMeta};
use kube::core::ApiResource;
use serde::Deserialize as _;
use serde_json::Value;

use crate::check::{Judge, Operator};
use crate::cluster::{self, Access, Connection};
use crate::document::Document;
use crate::explain::unreadable::Unreadable;
use crate::named::{self, Named};
use crate::preview::Context;
use crate::{Failure, undecodable};

/// The ScheduledMachines among `documents`, and the ScheduledCapacities.
pub(crate) fn machines_and_capacities(
    documents: Vec<Document>,
) -> (Vec<Document>, Vec<Document>) {
    let all = previewed(documents).into_iter();
    all.partition(|it| it.text("/kind") == name::KIND)
}

/// The ScheduledMachines and ScheduledCapacities among `documents`. A set is represented by its
/// machines: those among `documents`, else as many as it has `replicas`. One that cannot be decoded
/// stays.
pub(crate) fn previewed(mut documents: Vec<Document>) -> Vec<Document> {
    let kinds = [name::KIND, name::CAPACITY_KIND, name::SET_KIND];
    documents.retain(|document| kinds.contains(&document.text("/kind")));
    let namespaced = |document: &Document, of: &str| {
        let namespace = document.text("/metadata/namespace").to_owned();
        (namespace, of.to_owned())
    };
    let label = |document: &Document| {
        let set = document.object["metadata"]["labels"][name::SET_LABEL].as_str();
        set.map(|set| namespaced(document, set))
    };
    let present: BTreeSet<_> = documents.iter().filter_map(label).collect();
    documents.retain(|document| {
        let own = namespaced(document, document.text("/metadata/name"));
        document.text("/kind") != name::SET_KIND || !present.contains(&own)
    });
    let all = documents.into_iter();
    all.flat_map(|document| machines_of(&document).unwrap_or_else(|| vec![document]))
        .collect()
}

/// The machines of a set. `None` if the document is not a set that can be decoded.
fn machines_of(document: &Document) -> Option<Vec<Document>> {
    if document.text("/kind") != name::SET_KIND {
        return None;
    }
    let set = ScheduledMachineSet::deserialize(&document.object).ok()?;
    let indexes = 0..set.spec.replicas.min(MAX_REPLICAS);
    let machines = indexes.map(|index| Document {
        object: fivespot_plan::set::machine(&set, index),
        ..document.clone()
    });
    Some(machines.collect())
}

/// Selects ScheduledMachines of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection<'n> {
    /// All of them.
    All,
    /// Those of the selected namespace.
    Namespace,
    /// The ScheduledMachine of that name, or the object as `scap/NAME`, in the selected namespace.
    Named(&'n str),
}

/// The objects of a cluster, and what verdicts about them depend on.
pub(crate) struct ClusterObjects {
    pub(crate) documents: Vec<Document>,
    pub(crate) judge: Judge,
    /// Why ScheduledCapacities are not among them.
    pub(crate) unreadable: Option<Unreadable>,
}

/// Reads ScheduledMachines and ScheduledCapacities of the cluster with the overrides and calendars
/// of their namespaces, the current time of the cluster, and whether its operator runs.
///
/// # Errors
/// The cluster is unreachable or returns an error.
pub(crate) fn from_cluster(
    access: &Access,
    selection: Selection<'_>,
    operator: &Operator,
) -> Result<ClusterObjects, Failure> {
    cluster::block_on(async {
        let Connection {
            client, address, ..
        } = access.connect().await?;
        let judge = Judge::read(&client, operator).await;
        let mut documents = read(client.clone(), &address, selection).await?;
        let capacities = match selection {
            Selection::Named(_) => Ok(Vec::new()),
            Selection::All | Selection::Namespace => {
                listed::<ScheduledCapacity>(&client, selection).await
            }
        };
        let unreadable = match capacities {
            Ok(found) => {
                documents.extend(found);
                None
            }
            Err(unreadable) => Some(unreadable),
        };
        Ok(ClusterObjects {
            documents,
            judge,
            unreadable,
        })
    })
}

/// Reads all ScheduledMachines of the cluster with what their schedules depend on, the namespaces, and
/// the current time of the cluster.
///
/// # Errors
/// The cluster is unreachable or returns an error.
pub(crate) fn machines_of_cluster(
    access: &Access,
) -> Result<(Vec<Document>, Timestamp), Failure> {
    cluster::block_on(async {
        let Connection {
            client,
            address,
            now,
        } = access.connect().await?;
        let mut documents = read(client.clone(), &address, Selection::All).await?;
        // Who may not read namespaces is not told that a class does not select one.
        let namespaces = listed::<Namespace>(&client, Selection::All).await;
        documents.extend(namespaces.unwrap_or_default());
        Ok((documents, now))
    })
}

async fn read(
    client: Client,
    address: &str,
    selection: Selection<'_>,
) -> Result<Vec<Document>, Failure> {
    let mut resource = ApiResource::erase::<ScheduledMachine>(&());
    let failed =
        |error| cluster::failed_request("reading ScheduledMachines", address, error);
    let found: Vec<DynamicObject> = match selection {
        Selection::All | Selection::Namespace => {
            let is_all = selection == Selection::All;
            let api = cluster::objects(&client, &resource, is_all);
            let listed = api.list(&ListParams::default()).await;
            listed.map_err(failed)?.items
        }
        Selection::Named(name) => {
            let named = Named::of(name, named::FOLLOWERS)?;
            resource = named.served();
            vec![cluster::named(&client, address, named).await?]
        }
    };
    let spec = match (selection, found.as_slice()) {
        (Selection::Named(_), [object]) => Some(&object.data["spec"]),
        _ => None,
    };
    let inputs = schedule_inputs(&client, selection, spec).await?;
    let mut documents = Vec::new();
    let found = found.into_iter().map(|object| of_kind(object, &resource));
    for object in found.chain(inputs) {
        documents.push(document(object)?);
    }
    Ok(documents)
}

/// Reads the ScheduledMachine of that name in the selected namespace, and what it depends on; or why that
/// cannot be read.
///
/// # Errors
/// The machine cannot be read, or cannot be decoded.
pub(crate) async fn machine(
    client: &Client,
    address: &str,
    name: &str,
) -> Result<(ScheduledMachine, Result<Context, Failure>), Failure> {
    let namespace = client.default_namespace();
    let found = cluster::named(client, address, Named::machine(name)).await?;
    let spec = Some(&found.data["spec"]);
    let context = context(client, Selection::Named(name), spec).await;
    let machine = serde_json::to_value(found).and_then(serde_json::from_value);
    let machine = machine.map_err(|error| {
        undecodable(format!("ScheduledMachine {namespace}/{name}"), error)
    })?;
    Ok((machine, context))
}

/// Reads what the objects of a selection depend on. With the `spec` of a single object, only what that
/// refers to.
///
/// # Errors
/// It cannot be read.
pub(crate) async fn context(
    client: &Client,
    selection: Selection<'_>,
    spec: Option<&Value>,
) -> Result<Context, Failure> {
    let found = schedule_inputs(client, selection, spec).await?;
    let documents = found.into_iter().map(document);
    let documents: Vec<Document> = documents.collect::<Result<_, _>>()?;
    Ok(Context::of(&documents, Some(client.default_namespace())))
}

/// Reads overrides, calendars and shared schedules, of all namespaces or of the selected one, and the
/// classes. An older installation does not serve these kinds, so they do not affect its schedules.
/// With the `spec` of a single object, only the kinds that it refers to.
///
/// # Errors
/// They cannot be read: without them, the preview could differ from the schedule in force.
async fn schedule_inputs(
    client: &Client,
    selection: Selection<'_>,
    spec: Option<&Value>,
) -> Result<Vec<DynamicObject>, Failure> {
    let mut all = Vec::new();
    let mut kinds = vec![
        ApiResource::erase::<ScheduleOverride>(&()),
        ApiResource::erase::<ScheduleCalendar>(&()),
    ];
    let shared = [
        ApiResource::erase::<TimeBasedSpotSchedule>(&()),
        ApiResource::erase::<CapitalMarketsSchedule>(&()),
    ];
    let is_followed = |resource: &ApiResource| {
        spec.is_none_or(|spec| spec["schedule"]["kind"] == resource.kind.as_str())
    };
    kinds.extend(shared.into_iter().filter(is_followed));
    for resource in kinds {
        let found = list(client, &resource, selection == Selection::All).await;
        all.extend(found.map_err(|error| {
            let what = format!("reading {}s", resource.kind);
            Failure::new(what, cluster::error_message(error)).remedy(
                "schedules depend on them: get access, such as that of ClusterRole 5spot-view",
            )
        })?);
    }
    if spec.is_none_or(|spec| !spec["classRef"].is_null()) {
        // Who may not read classes is told so where a machine has one.
        let classes = ApiResource::erase::<ScheduledMachineClass>(&());
        all.extend(list(client, &classes, true).await.unwrap_or_default());
    }
    Ok(all)
}

/// Lists the objects of a kind, of all namespaces or of the selected one. None if the kind is not served.
async fn list(
    client: &Client,
    resource: &ApiResource,
    is_all: bool,
) -> Result<Vec<DynamicObject>, kube::Error> {
    let api = cluster::objects(client, resource, is_all);
    match api.list(&ListParams::default()).await {
        Ok(list) => {
            let items = list.items.into_iter();
            Ok(items.map(|item| of_kind(item, resource)).collect())
        }
        Err(kube::Error::Api(status)) if cluster::is_not_served(&status) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// Adds the kind to an object, because items of a list lack it.
fn of_kind(mut object: DynamicObject, resource: &ApiResource) -> DynamicObject {
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    object
}

/// Reads the objects of a kind in the selected namespace, or in all. None if the kind is not served.
///
/// # Errors
/// They cannot be read.
pub(crate) async fn listed<K>(
    client: &Client,
    selection: Selection<'_>,
) -> Result<Vec<Document>, Unreadable>
where
    K: kube::Resource<DynamicType = ()>,
{
    let resource = ApiResource::erase::<K>(&());
    let not_readable = |why: String| Unreadable::of(&resource.plural, &why);
    let found = list(client, &resource, selection == Selection::All).await;
    let found = found.map_err(|error| not_readable(cluster::error_message(error)))?;
    let documents: Result<Vec<Document>, Failure> =
        found.into_iter().map(document).collect();
    documents.map_err(|failure| not_readable(failure.to_string()))
}

/// A ScheduledCapacity as a document.
///
/// # Errors
/// It cannot be converted into JSON.
pub(crate) fn capacity(object: DynamicObject) -> Result<Document, Failure> {
    document(of_kind(
        object,
        &ApiResource::erase::<ScheduledCapacity>(&()),
    ))
}

fn document(object: DynamicObject) -> Result<Document, Failure> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let kind = object
        .types
        .as_ref()
        .map_or("", |types| types.kind.as_str());
    let origin = format!("{} {namespace}/{name}", kind.to_lowercase());
    let object = serde_json::to_value(object)
        .map_err(|error| Failure::new(format!("reading {origin}"), error))?;
    Ok(Document {
        origin,
        object,
        location: None,
    })
}
