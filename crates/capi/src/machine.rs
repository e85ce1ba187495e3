//! Reads Machines.

use std::time::Duration;

use serde_json::Value;

use crate::condition::{self, Condition, ConditionState};
use crate::object::text;
use crate::{Contract, Error, Meta, Reference, duration, key};

/// A Machine, the same for both contract versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The version of the object that was read.
    pub contract: Contract,
    /// The metadata.
    pub meta: Meta,
    /// The Cluster it belongs to.
    pub cluster_name: String,
    /// Cluster API's phase. It is updated late: a deletion is visible in the metadata first.
    pub phase: Option<String>,
    /// The Machine's Node.
    pub node: Option<NodeLink>,
    /// The provider ID, the same as on the Node.
    pub provider_id: Option<String>,
    /// The bootstrap object.
    pub bootstrap: Option<Reference>,
    /// The infrastructure object.
    pub infrastructure: Option<Reference>,
    /// Whether the bootstrap object has been ready once.
    pub had_bootstrap: bool,
    /// Whether the infrastructure object has been ready once.
    pub had_infrastructure: bool,
    /// How long Cluster API drains; `None` means without limit.
    pub drain_timeout: Option<Duration>,
    /// How long Cluster API waits for volumes; `None` means without limit.
    pub volume_detach_timeout: Option<Duration>,
    /// The conditions of the object's own contract version.
    pub conditions: Vec<Condition>,
}

/// A Machine's link to its Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLink {
    /// Name of the Node.
    pub name: String,
    /// Uid of the Node, which v1beta2 does not contain.
    pub uid: Option<String>,
}

/// The fields of a Machine's `spec` that are read, in either version.
pub const SPEC: [&str; 7] = [
    "bootstrap",
    "clusterName",
    "deletion",
    "infrastructureRef",
    "nodeDrainTimeout",
    "nodeVolumeDetachTimeout",
    "providerID",
];

/// The fields of its `status` that are read.
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

    /// A condition of the object's own contract version.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        condition::find(&self.conditions, kind)
    }

    /// Whether the Node is ready according to Cluster API: `NodeReady` in v1beta2, `NodeHealthy`
    /// in v1beta1. `None` before the condition exists.
    pub fn is_node_ready(&self) -> Option<bool> {
        let kind = match self.contract {
            Contract::V1Beta1 => "NodeHealthy",
            Contract::V1Beta2 => "NodeReady",
        };
        self.condition(kind)
            .map(|found| found.status == ConditionState::True)
    }

    /// Whether a health check requests that the owner replaces the Machine.
    pub fn wants_remediation(&self) -> bool {
        self.condition(key::OWNER_REMEDIATED)
            .is_some_and(|found| found.status == ConditionState::False)
    }

    /// The condition that a deletion waits for: `Deleting` in v1beta2; in v1beta1 the first step,
    /// in their order, that is not True. `None` before the condition exists.
    pub fn deletion_progress(&self) -> Option<&Condition> {
        match self.contract {
            // The condition exists, and is False, before the deletion has begun.
            Contract::V1Beta2 => self
                .condition("Deleting")
                .filter(|found| found.status == ConditionState::True),
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
            .find(|found| found.status != ConditionState::True),
        }
    }
}

/// Reads a timeout; 0 means without limit, the same as absent.
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
