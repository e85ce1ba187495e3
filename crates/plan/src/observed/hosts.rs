//! The claims of hosts of classes: one Lease for each host that is in use. Of two creations of one
//! Lease the API server accepts one.

use std::sync::Arc;

use fivespot_api::host_claim::HostClaim;
use fivespot_api::{HostPool, ScheduledMachine};
use serde_json::{Map, Value};

use crate::Unknown;

/// The claims of hosts that are about one ScheduledMachine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// The namespace of the Leases: that of the operator.
    pub namespace: String,
    /// The Leases of this ScheduledMachine.
    pub claims: Vec<StoredClaim>,
    /// Who else has the host that is recorded in the status, or else the one that the spec names:
    /// a ScheduledMachine as `namespace/name`.
    pub holder: Option<String>,
    /// Why the Leases are unknown; `None` if they are known, or not needed.
    pub unknown: Option<Unknown>,
}

/// A Lease that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredClaim {
    /// The class, the host, and who has it.
    pub claim: HostClaim,
    /// The uid of the Lease.
    pub uid: String,
}

impl Hosts {
    /// The claim of a host of a class.
    pub(crate) fn claim(&self, class: &str, host: &str) -> Option<&StoredClaim> {
        let mut claims = self.claims.iter();
        claims.find(|of| of.claim.class == class && of.claim.host == host)
    }
}

/// What a machine with a class requests of hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DesiredHost {
    /// Name of the class; empty without one.
    pub(crate) class: String,
    /// The hosts of the class; `None` if it has none, or is not known.
    pub(crate) pool: Option<Arc<HostPool>>,
    /// The only host that may be used.
    pub(crate) named: Option<String>,
    /// The host that the machine is made on, if it has one.
    pub(crate) current: Option<String>,
}

impl DesiredHost {
    pub(crate) fn of(object: &ScheduledMachine, hosts: &Hosts) -> Self {
        let Some(class) = &object.spec.class else {
            return Self::default();
        };
        let mut desired = Self {
            class: class.name.clone(),
            pool: class.pool.clone(),
            named: class.host.clone(),
            current: None,
        };
        let recorded = object.status.as_ref().and_then(|of| of.host.clone());
        desired.current = recorded.or_else(|| {
            let claims = hosts.claims.iter().map(|of| &of.claim);
            let mut own = claims.filter(|of| of.class == desired.class);
            let usable = own.find(|of| desired.allows(&of.host));
            usable.map(|of| of.host.clone())
        });
        desired
    }

    /// Whether a machine may be made on this host.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let is_named = self.named.as_deref().is_none_or(|named| named == host);
        is_named && self.pool.as_ref().is_some_and(|pool| pool.has(host))
    }

    /// What differs on the host of the machine.
    pub(crate) fn patch(&self) -> Option<&Map<String, Value>> {
        self.pool.as_ref()?.patch(self.current.as_deref()?)
    }
}
