//! What is read of a Machine.

use std::time::Duration;

use serde_json::Value;

use crate::condition::{self, Condition, Truth};
use crate::object::text;
use crate::{Contract, Error, Meta, Reference, duration, key};

/// A Machine, the same whichever version it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The version it came in.
    pub contract: Contract,
    /// Name, uid, owners and the rest.
    pub meta: Meta,
    /// The Cluster it belongs to.
    pub cluster_name: String,
    /// Cluster API's phase. It lags: deletion shows in the metadata first.
    pub phase: Option<String>,
    /// The Node that the machine became.
    pub node: Option<NodeLink>,
    /// The provider's identifier, the same as on the Node.
    pub provider_id: Option<String>,
    /// The bootstrap object.
    pub bootstrap: Option<Reference>,
    /// The infrastructure object.
    pub infrastructure: Option<Reference>,
    /// Whether the bootstrap object has been ready once.
    pub had_bootstrap: bool,
    /// Whether the infrastructure object has been ready once.
    pub had_infrastructure: bool,
    /// How long Cluster API drains; absent means without limit.
    pub drain_timeout: Option<Duration>,
    /// How long Cluster API waits for volumes; absent means without limit.
    pub volume_detach_timeout: Option<Duration>,
    /// The conditions of the version's own form.
    pub conditions: Vec<Condition>,
}

/// A Machine's link to its Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLink {
    /// Name of the Node.
    pub name: String,
    /// Uid of the Node, which v1beta2 does not say.
    pub uid: Option<String>,
}

/// What is read of a Machine's `spec`, in either version.
pub const SPEC: [&str; 7] = [
    "bootstrap",
    "clusterName",
    "deletion",
    "infrastructureRef",
    "nodeDrainTimeout",
    "nodeVolumeDetachTimeout",
    "providerID",
];

/// What is read of its `status`.
pub const STATUS: [&str; 6] = [
    "bootstrapReady",
    "conditions",
    "infrastructureReady",
    "initialization",
    "nodeRef",
    "phase",
];

/// The conditions that are read.
pub const CONDITIONS: [&str; 11] = [
    key::OWNER_REMEDIATED,
    "BootstrapReady",
    "Deleting",
    "DrainingSucceeded",
    "InfrastructureReady",
    "NodeHealthy",
    "NodeReady",
    "PreDrainDeleteHookSucceeded",
    "PreTerminateDeleteHookSucceeded",
    "Ready",
    "VolumeDetachSucceeded",
];

impl Machine {
    /// Reads a stored Machine of either version.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`] for another `apiVersion`, [`Error::Missing`] without name or uid.
    pub fn read(object: &Value) -> Result<Self, Error> {
        let contract = Contract::of(object["apiVersion"].as_str().unwrap_or_default())?;
        let (spec, status) = (&object["spec"], &object["status"]);
        let (had_bootstrap, had_infrastructure) = match contract {
            Contract::V1Beta1 => {
                (&status["bootstrapReady"], &status["infrastructureReady"])
            }
            Contract::V1Beta2 => (
                &status["initialization"]["bootstrapDataSecretCreated"],
                &status["initialization"]["infrastructureProvisioned"],
            ),
        };
        Ok(Self {
            contract,
            meta: Meta::read(object)?,
            cluster_name: text(&spec["clusterName"]).unwrap_or_default(),
            phase: text(&status["phase"]),
            node: text(&status["nodeRef"]["name"]).map(|name| NodeLink {
                name,
                uid: text(&status["nodeRef"]["uid"]),
            }),
            provider_id: text(&spec["providerID"]),
            bootstrap: Reference::read(&spec["bootstrap"]["configRef"]),
            infrastructure: Reference::read(&spec["infrastructureRef"]),
            had_bootstrap: *had_bootstrap == Value::Bool(true),
            had_infrastructure: *had_infrastructure == Value::Bool(true),
            drain_timeout: timeout(spec, contract, "nodeDrainTimeout"),
            volume_detach_timeout: timeout(spec, contract, "nodeVolumeDetachTimeout"),
            conditions: condition::read_all(object)
                .into_iter()
                .filter(|found| CONDITIONS.contains(&found.kind.as_str()))
                .collect(),
        })
    }

    /// One condition of the version's own form.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition::find(&self.conditions, kind)
    }

    /// What Cluster API says about the Node: `NodeReady` in v1beta2, `NodeHealthy` in v1beta1.
    /// None before it says anything.
    pub fn is_node_ready(&self) -> Option<bool> {
        let kind = match self.contract {
            Contract::V1Beta1 => "NodeHealthy",
            Contract::V1Beta2 => "NodeReady",
        };
        self.condition(kind)
            .map(|found| found.status == Truth::True)
    }

    /// Whether a health check asks the owner to replace the Machine.
    pub fn wants_remediation(&self) -> bool {
        self.condition(key::OWNER_REMEDIATED)
            .is_some_and(|found| found.status == Truth::False)
    }

    /// What holds up a deletion: the `Deleting` condition in v1beta2; in v1beta1 the first of the
    /// steps in their order that does not hold. None before Cluster API says anything.
    pub fn deletion_progress(&self) -> Option<&Condition> {
        match self.contract {
            // It is there, and False, before deletion has begun.
            Contract::V1Beta2 => self
                .condition("Deleting")
                .filter(|found| found.status == Truth::True),
            Contract::V1Beta1 => [
                "PreDrainDeleteHookSucceeded",
                "DrainingSucceeded",
                "VolumeDetachSucceeded",
                "PreTerminateDeleteHookSucceeded",
                "InfrastructureReady",
                "BootstrapReady",
            ]
            .into_iter()
            .filter_map(|kind| self.condition(kind))
            .find(|found| found.status != Truth::True),
        }
    }
}

/// Reads a timeout; 0 means the same as absent, without limit.
fn timeout(spec: &Value, contract: Contract, name: &str) -> Option<Duration> {
    let length = match contract {
        Contract::V1Beta1 => duration::parse(spec[name].as_str()?)?,
        Contract::V1Beta2 => {
            let seconds = &spec["deletion"][format!("{name}Seconds")];
            Duration::from_secs(seconds.as_u64()?)
        }
    };
    (!length.is_zero()).then_some(length)
}
