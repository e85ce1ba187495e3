//! The Lease with which a ScheduledMachine claims a host of a class.

use serde_json::{Value, json};

use crate::name;

/// Who has a host of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostClaim {
    /// Name of the class.
    pub class: String,
    /// Name of the host.
    pub host: String,
    /// The ScheduledMachine.
    pub holder: Holder,
}

/// A ScheduledMachine that has a host. Another one of the same name has another uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl HostClaim {
    /// Reads a Lease. `None` if it is none of these.
    ///
    /// # Example
    /// ```
    /// use fivespot_api::host_claim::{Holder, HostClaim};
    /// let (namespace, name, uid) = ("team-a".into(), "nights".into(), "u-1".into());
    /// let holder = Holder { namespace, name, uid };
    /// let claim = HostClaim { class: "desks".into(), host: "desk-7".into(), holder };
    /// assert_eq!(claim.lease("5spot-system")["metadata"]["name"], "5spot-host.desk-7.desks");
    /// assert_eq!(HostClaim::read(&claim.lease("5spot-system")), Some(claim));
    /// ```
    pub fn read(lease: &Value) -> Option<Self> {
        let (class, host) = name::claimed_host(lease["metadata"]["name"].as_str()?)?;
        let mut holder = lease["spec"]["holderIdentity"].as_str()?.splitn(3, '/');
        let mut part = || holder.next().map(str::to_owned);
        Some(Self {
            class: class.to_owned(),
            host: host.to_owned(),
            holder: Holder {
                namespace: part()?,
                name: part()?,
                uid: part()?,
            },
        })
    }

    /// The Lease, in that namespace.
    pub fn lease(&self, namespace: &str) -> Value {
        let Holder {
            namespace: of,
            name,
            uid,
        } = &self.holder;
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name::host_claim(&self.class, &self.host),
                "namespace": namespace,
                "labels": { name::HOST_CLAIM_LABEL: "true" },
            },
            "spec": { "holderIdentity": format!("{of}/{name}/{uid}") },
        })
    }
}
