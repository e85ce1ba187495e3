//! Reads the claims of hosts that are about a ScheduledMachine.

use std::collections::BTreeSet;

use fivespot_api::host_claim::HostClaim;
use fivespot_api::{ScheduledMachine, name};
use fivespot_plan::{Fact, Hosts, StoredClaim, Unknown};
use fivespot_runtime::Key;
use fivespot_runtime::cache::Health;
use serde_json::Value;

use super::Incomplete;
use super::management::Source;
use crate::kind::{cache_name, lease};
use crate::observe::projection::{CachedKind, KindInformer, claims_term, host_term};

/// The claims of `object`, and who else has the host that it is about. Nothing is read for a machine
/// that needs no host, unless it has claimed one before.
pub(super) async fn hosts(
    source: &Source<'_>,
    object: &ScheduledMachine,
) -> Result<Hosts, Incomplete> {
    let context = source.context;
    let namespace = &context.options.claim_namespace;
    let mut hosts = Hosts {
        namespace: namespace.clone(),
        ..Hosts::default()
    };
    let status = object.status.as_ref();
    let recorded = status.and_then(|status| status.host.as_deref());
    let class = object.spec.class.as_ref();
    let has_pool = class.is_some_and(|class| class.pool.is_some());
    let own_claims = claims_term(source.key);
    let informer = if has_pool || recorded.is_some() {
        context.informer(&lease(), CachedKind::HostClaim)
    } else {
        let shown = context.cache(&cache_name(&lease()));
        match shown.filter(|shown| !shown.store.found_by(&own_claims).is_empty()) {
            Some(informer) => informer,
            None => return Ok(hosts),
        }
    };
    hosts.unknown = unknown(source, &informer)?;
    let class_name = class.map_or_else(
        || {
            let reference = object.spec.class_ref.as_ref();
            reference.map_or("", |of| of.name.as_str())
        },
        |class| class.name.as_str(),
    );
    let named = class.and_then(|class| class.host.as_deref());
    let needed = recorded.or(named).filter(|_| !class_name.is_empty());
    let offered = context.host_pools.offered(source.key);
    let mut leases = BTreeSet::new();
    leases.extend(needed.map(|host| name::host_claim(class_name, host)));
    leases.extend(offered.map(|(class, host)| name::host_claim(&class, &host)));
    let own = informer.store.found_by(&own_claims);
    leases.extend(own.iter().map(|key| key.name.clone()));
    let uid = object.metadata.uid.as_deref().unwrap_or_default();
    for lease in leases {
        let at = Key::new(namespace.clone(), &lease);
        match source.read_at(&informer, at).await? {
            Fact::Known(found) => {
                let Some((claim, lease_uid)) = found.as_ref().and_then(read) else {
                    continue;
                };
                if claim.holder.uid == uid {
                    let uid = lease_uid.to_owned();
                    hosts.claims.push(StoredClaim { claim, uid });
                } else if claim.class == class_name && Some(claim.host.as_str()) == needed
                {
                    let holder = claim.holder;
                    hosts.holder = Some(format!("{}/{}", holder.namespace, holder.name));
                }
            }
            Fact::Unknown(Unknown::NotServed { .. }) => {}
            Fact::Unknown(unknown) => hosts.unknown = Some(unknown),
        }
    }
    Ok(hosts)
}

/// Why the Leases are unknown: which hosts are free is known from the cache alone.
fn unknown(
    source: &Source<'_>,
    informer: &KindInformer,
) -> Result<Option<Unknown>, Incomplete> {
    let namespace = &source.context.options.claim_namespace;
    if source.is_live() && informer.health(namespace) == Health::Loading {
        return Ok(None);
    }
    source.unlisted(informer, namespace)
}

fn read(lease: &Value) -> Option<(HostClaim, &str)> {
    let claim = HostClaim::read(lease)?;
    Some((claim, lease["metadata"]["uid"].as_str()?))
}

/// Whether the Lease of the recorded host is still that of the ScheduledMachine, read live.
pub(super) async fn is_claimed(source: &Source<'_>, object: &ScheduledMachine) -> bool {
    let reference = object.spec.class_ref.as_ref();
    let status = object.status.as_ref();
    let Some((class, host)) =
        reference.zip(status.and_then(|status| status.host.as_ref()))
    else {
        return false;
    };
    let informer = source.context.informer(&lease(), CachedKind::HostClaim);
    let namespace = source.context.options.claim_namespace.clone();
    let at = Key::new(namespace, name::host_claim(&class.name, host));
    let Fact::Known(Some(found)) = source.live_at(&informer, at).await else {
        return false;
    };
    let uid = object.metadata.uid.as_deref();
    HostClaim::read(&found).is_some_and(|claim| Some(claim.holder.uid.as_str()) == uid)
}

impl crate::context::Context {
    /// The Lease of a host is another one, or its holder is gone: enqueues whose turn it is.
    pub(crate) fn host_changed(&self, lease: &str) {
        if let Some((class, host)) = name::claimed_host(lease) {
            self.enqueue_keys(self.host_pools.changed(class, host));
        }
    }

    /// A ScheduledMachine whose status names or named a host is another one, and the watch of Leases
    /// may have been ahead: enqueues whose turn it is if no status names the host any more.
    pub(crate) fn host_record_changed(&self, lease: &str) {
        let machines = &self.scheduled_machines.store;
        let is_recorded = name::claimed_host(lease).is_some_and(|(class, host)| {
            !machines.found_by(&host_term(class, host)).is_empty()
        });
        if !is_recorded {
            self.host_changed(lease);
        }
    }

    /// Whether a host is taken according to the caches: a Lease is that of a ScheduledMachine that
    /// exists, or the host is recorded in the status of another one than `key`.
    pub(crate) fn is_host_taken(&self, class: &str, host: &str, key: &Key) -> bool {
        let machines = &self.scheduled_machines.store;
        let recorded = machines.found_by(&host_term(class, host));
        if recorded.iter().any(|of| of != key) {
            return true;
        }
        let at = Key::new(
            self.options.claim_namespace.clone(),
            name::host_claim(class, host),
        );
        let leases = self.cache(&cache_name(&lease()));
        let Some(found) = leases.and_then(|leases| leases.store.get(&at)) else {
            return false;
        };
        let Some(claim) = HostClaim::read(&found.value()) else {
            return true;
        };
        let holder = Key::new(claim.holder.namespace, &claim.holder.name);
        let machine = machines.get(&holder);
        machine.is_some_and(|machine| machine.uid == claim.holder.uid)
    }
}
