//! Claims a host of a class, and gives back what a ScheduledMachine that is gone has claimed.

use std::collections::BTreeSet;
use std::sync::Arc;

use fivespot_api::host_claim::{Holder, HostClaim};
use fivespot_api::name;
use fivespot_runtime::Key;
use fivespot_runtime::http::{Address, ApiClient, Deletion};
use serde_json::Value;

use crate::context::Context;
use crate::failure;
use crate::kind::{cache_name, cluster_api, lease, scheduled_machine};
use crate::observe::projection::{CachedKind, claims_term};

/// Creates the Lease of a host. One that exists is returned if it is already that of the holder, and
/// replaced if its holder is gone together with its Machine.
///
/// # Errors
/// Also a conflict if another ScheduledMachine has the host, or may have it.
pub(super) async fn claim(
    context: &Arc<Context>,
    key: &Key,
    at: &Address<'_>,
    lease: &Value,
) -> kube::Result<Value> {
    let api = &context.api;
    let claimed = match create_or_find(api, at, lease).await {
        Err(error) if failure::code(&error) == Some(409) => {
            if take_over(context, at).await? {
                create_or_find(api, at, lease).await
            } else {
                Err(error)
            }
        }
        claimed => claimed,
    };
    let is_decided = match &claimed {
        Ok(_) => true,
        Err(error) => failure::code(error) == Some(409),
    };
    if is_decided {
        let now = context.queue.now();
        context.enqueue_keys(context.host_pools.claimed(key, now));
    }
    claimed
}

async fn create_or_find(
    api: &ApiClient,
    at: &Address<'_>,
    lease: &Value,
) -> kube::Result<Value> {
    let collection = Address { name: "", ..*at };
    match api.create(&collection, lease).await {
        Err(error) if failure::code(&error) == Some(409) => {
            // The response to an earlier attempt may be lost.
            let found = api.get(at).await?;
            let is_own = |found: &Value| HostClaim::read(found) == HostClaim::read(lease);
            found.filter(is_own).ok_or(error)
        }
        created => created,
    }
}

/// Deletes the claims of a ScheduledMachine that is gone, except those of hosts that its Machine is
/// still on, and enqueues whose turn it is. There are some if the watch shows the deletion late: then
/// a host is claimed for a ScheduledMachine that does not exist any more, and its finalizer cannot
/// tell.
///
/// # Errors
/// A request that failed. The other claims may be left, too.
pub(crate) async fn give_back(context: &Context, key: &Key) -> kube::Result<()> {
    let offered = context.host_pools.offered(key);
    let offered = offered.map(|(class, host)| name::host_claim(&class, &host));
    let shown = context.cache(&cache_name(&lease()));
    let shown = shown.map(|shown| shown.store.found_by(&claims_term(key)));
    let shown = shown.into_iter().flatten().map(|lease| lease.name.clone());
    let leases: BTreeSet<String> = shown.chain(offered).collect();
    let resource = lease();
    for lease in leases {
        let at = Address {
            resource: &resource,
            namespace: Some(&context.options.claim_namespace),
            name: &lease,
            projection: Some(&CachedKind::HostClaim),
        };
        let deleted = context.fence.write(key, take_over(context, &at)).await;
        deleted.unwrap_or(Ok(false))?;
        context.host_changed(&lease);
    }
    Ok(())
}

/// Deletes the Lease if its holder is gone. Returns whether the host may be claimed again.
async fn take_over(context: &Context, at: &Address<'_>) -> kube::Result<bool> {
    let Some(found) = context.api.get(at).await? else {
        return Ok(true);
    };
    let Some(claim) = HostClaim::read(&found) else {
        return Ok(false);
    };
    if !is_gone(context, &claim.holder).await? {
        return Ok(false);
    }
    tracing::warn!(
        host = claim.host,
        class = claim.class,
        namespace = claim.holder.namespace,
        name = claim.holder.name,
        "the ScheduledMachine that has the host is gone: its claim is deleted"
    );
    let text = |field: &str| found["metadata"][field].as_str().unwrap_or_default();
    let (uid, version) = (text("uid"), text("resourceVersion"));
    let deletion = Deletion::of(uid).in_version(version);
    let deleted = context.api.delete(at, deletion).await;
    match deleted {
        Err(error) if failure::code(&error) == Some(404) => Ok(true),
        Err(error) => Err(error),
        Ok(_) => Ok(true),
    }
}

/// Whether neither a ScheduledMachine nor its Machine exists, according to the server.
async fn is_gone(context: &Context, holder: &Holder) -> kube::Result<bool> {
    let resource = scheduled_machine();
    let of = |resource, projection| Address {
        resource,
        namespace: Some(holder.namespace.as_str()),
        name: &holder.name,
        projection: Some(projection),
    };
    let at = of(&resource, &CachedKind::ScheduledMachine);
    let machine = context.api.get(&at).await?;
    if machine.is_some_and(|found| found["metadata"]["uid"] == holder.uid.as_str()) {
        return Ok(false);
    }
    let Some(contract) = context.discovery.contract().await? else {
        return Ok(false);
    };
    let resource = cluster_api(contract, "Machine");
    let at = of(&resource, &CachedKind::Machine);
    let found = context.api.get(&at).await?;
    // After a restore it may be that of the machine with another uid.
    Ok(found.is_none())
}
