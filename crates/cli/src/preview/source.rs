//! The ScheduledMachines to look at, from files or from a cluster.

use fivespot_api::{ScheduleCalendar, ScheduleOverride, ScheduledMachine, name};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, TypeMeta};
use kube::core::ApiResource;

use crate::Failure;
use crate::cluster::{self, Access};
use crate::document::Document;

/// Those of `documents` that are ScheduledMachines, of whatever version.
pub(crate) fn machines(mut documents: Vec<Document>) -> Vec<Document> {
    documents.retain(|document| document.text("/kind") == name::KIND);
    documents
}

/// Which ScheduledMachines of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which<'n> {
    /// All of them.
    All,
    /// Those of the selected namespace.
    Namespace,
    /// The one of that name, in the selected namespace.
    Named(&'n str),
}

/// ScheduledMachines of the cluster with the overrides and calendars of their namespaces, and the
/// present instant there.
///
/// # Errors
/// The cluster is unreachable or returns an error.
pub(crate) fn from_cluster(
    access: &Access,
    which: Which<'_>,
) -> Result<(Vec<Document>, Timestamp), Failure> {
    cluster::block_on(read(access, which))
}

async fn read(
    access: &Access,
    which: Which<'_>,
) -> Result<(Vec<Document>, Timestamp), Failure> {
    let client = access.client().await?;
    let now = cluster::now(&client).await;
    let resource = ApiResource::erase::<ScheduledMachine>(&());
    let failed = |error| {
        Failure::new("reading ScheduledMachines", cluster::error_message(error))
            .remedy("check the cluster and your access to it, or give files with -f")
    };
    let api: Api<DynamicObject> = match which {
        Which::All => Api::all_with(client.clone(), &resource),
        Which::Namespace | Which::Named(_) => {
            Api::default_namespaced_with(client.clone(), &resource)
        }
    };
    let found: Vec<DynamicObject> = match which {
        Which::All | Which::Namespace => {
            let listed = api.list(&ListParams::default()).await;
            listed.map_err(failed)?.items
        }
        Which::Named(name) => vec![api.get(name).await.map_err(failed)?],
    };
    let mut documents = Vec::new();
    let found = found.into_iter().map(|object| of_kind(object, &resource));
    for object in found.chain(others(client, which).await) {
        documents.push(document(object)?);
    }
    Ok((documents, now))
}

/// Overrides and calendars, of all namespaces or of the selected one. Those that cannot be read,
/// for one because an older installation has none, change nothing.
async fn others(client: Client, which: Which<'_>) -> Vec<DynamicObject> {
    let mut all = Vec::new();
    let kinds = [
        ApiResource::erase::<ScheduleOverride>(&()),
        ApiResource::erase::<ScheduleCalendar>(&()),
    ];
    for resource in kinds {
        let api: Api<DynamicObject> = if which == Which::All {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::default_namespaced_with(client.clone(), &resource)
        };
        let Ok(list) = api.list(&ListParams::default()).await else {
            continue;
        };
        all.extend(list.items.into_iter().map(|item| of_kind(item, &resource)));
    }
    all
}

/// The object with its kind, which items of a list lack.
fn of_kind(mut object: DynamicObject, resource: &ApiResource) -> DynamicObject {
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    object
}

fn document(object: DynamicObject) -> Result<Document, Failure> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let namespace = object.metadata.namespace.clone().unwrap_or_default();
    let origin = format!("scheduledmachine {namespace}/{name}");
    let object = serde_json::to_value(object)
        .map_err(|error| Failure::new(format!("reading {origin}"), error))?;
    Ok(Document {
        origin,
        object,
        place: None,
    })
}
