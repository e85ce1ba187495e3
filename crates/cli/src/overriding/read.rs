//! Lists overrides.

use fivespot_api::ScheduleOverride;
use kube::api::ListParams;
use kube::core::ApiResource;

use crate::cluster::{self, Connection};
use crate::{Failure, output};

/// Lists the overrides of the selected namespace, or of all. Prints a warning about each one that
/// cannot be decoded, and leaves it out.
///
/// # Errors
/// The request fails.
pub(super) async fn list(
    cluster: &Connection,
    is_all: bool,
) -> Result<Vec<ScheduleOverride>, Failure> {
    let resource = ApiResource::erase::<ScheduleOverride>(&());
    let api = cluster::objects(&cluster.client, &resource, is_all);
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
