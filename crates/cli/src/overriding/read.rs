//! Reads machines, calendars and overrides.

use fivespot_api::ScheduledMachine;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::cluster;

/// Selects all namespaces instead of the selected one.
#[derive(Clone, Copy)]
pub(super) struct AllNamespaces;

/// Lists the objects of one kind.
///
/// # Errors
/// The request fails, or an object cannot be decoded.
pub(super) async fn list<K>(
    client: &Client,
    all_namespaces: Option<AllNamespaces>,
) -> Result<Vec<K>, Failure>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = match all_namespaces {
        Some(AllNamespaces) => Api::all_with(client.clone(), &resource),
        None => Api::default_namespaced_with(client.clone(), &resource),
    };
    let failed = |why: String| {
        Failure::new(format!("reading {}s", resource.kind), why)
            .remedy("check your access to the cluster")
    };
    let found = api.list(&ListParams::default()).await;
    let found = found.map_err(|error| failed(cluster::error_message(error)))?;
    let typed = found.items.into_iter().map(|mut item| {
        item.types = None;
        serde_json::to_value(item).and_then(serde_json::from_value)
    });
    typed
        .collect::<Result<_, _>>()
        .map_err(|error| failed(error.to_string()))
}

/// Gets the ScheduledMachine of this name.
///
/// # Errors
/// The request fails, or the object cannot be decoded.
pub(super) async fn get(
    client: &Client,
    machine: &str,
) -> Result<ScheduledMachine, Failure> {
    let resource = ApiResource::erase::<ScheduledMachine>(&());
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let failed = |why: String| {
        Failure::new(format!("reading ScheduledMachine {machine}"), why)
            .remedy("check the name, the namespace (-n) and your access to it")
    };
    let found = api.get(machine).await;
    let found = found.map_err(|error| failed(cluster::error_message(error)))?;
    serde_json::to_value(found)
        .and_then(serde_json::from_value)
        .map_err(|error| failed(error.to_string()))
}
