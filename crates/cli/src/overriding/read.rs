//! Reads machines, calendars and overrides.

use fivespot_api::ScheduledMachine;
use kube::Resource;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use serde::de::DeserializeOwned;

use crate::cluster::{self, Connection};
use crate::{Failure, output, undecodable};

/// Selects all namespaces instead of the selected one.
#[derive(Clone, Copy)]
pub(super) struct AllNamespaces;

/// Lists the objects of one kind. Prints a warning about each one that cannot be decoded, and leaves it
/// out.
///
/// # Errors
/// The request fails.
pub(super) async fn list<K>(
    cluster: &Connection,
    all_namespaces: Option<AllNamespaces>,
) -> Result<Vec<K>, Failure>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let resource = ApiResource::erase::<K>(&());
    let client = cluster.client.clone();
    let api: Api<DynamicObject> = match all_namespaces {
        Some(AllNamespaces) => Api::all_with(client, &resource),
        None => Api::default_namespaced_with(client, &resource),
    };
    let what = format!("reading {}s", resource.kind);
    let found = api.list(&ListParams::default()).await;
    let crd = format!("{}.{}", resource.plural, resource.group);
    let found = found.map_err(|error| {
        cluster::failed_request_of(&crd, &what, &cluster.address, error)
    })?;
    let (mut decoded, mut undecoded) = (Vec::new(), Vec::new());
    for mut item in found.items {
        item.types = None;
        // kubectl does not print them either.
        item.metadata.managed_fields = None;
        let name = item.metadata.name.clone().unwrap_or_default();
        let namespace = item.metadata.namespace.clone().unwrap_or_default();
        match serde_json::to_value(item).and_then(serde_json::from_value) {
            Ok(item) => decoded.push(item),
            Err(error) => undecoded.push(format!(
                "{} {namespace}/{name} is left out: {error}",
                resource.kind
            )),
        }
    }
    output::notes("warning", &undecoded);
    Ok(decoded)
}

/// Gets the ScheduledMachine of this name in the selected namespace.
///
/// # Errors
/// The request fails, or the object cannot be decoded.
pub(super) async fn get(
    cluster: &Connection,
    machine: &str,
) -> Result<ScheduledMachine, Failure> {
    let Connection {
        client, address, ..
    } = cluster;
    let namespace = client.default_namespace();
    let found = cluster::machine(client, address, namespace, machine).await?;
    serde_json::to_value(found)
        .and_then(serde_json::from_value)
        .map_err(|error| {
            let what = format!("ScheduledMachine {namespace}/{machine}");
            undecodable(what, error)
        })
}
