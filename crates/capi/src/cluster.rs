//! Reads Clusters.

use serde_json::Value;

use crate::condition::{self, ConditionState};
use crate::{Contract, Error, Meta};

/// A Cluster, the same for both contract versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The version of the object that was read.
    pub contract: Contract,
    /// The metadata.
    pub meta: Meta,
    /// Whether `spec.paused` is set or the object carries the paused annotation.
    pub is_paused: bool,
    /// Whether the infrastructure of the Cluster is ready.
    pub is_infrastructure_ready: bool,
    /// Whether the control plane is initialized. It never becomes false again.
    pub is_control_plane_initialized: bool,
}

impl Cluster {
    /// Reads a stored Cluster of either version.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`] for another `apiVersion`, [`Error::Missing`] without name or uid.
    pub fn read(object: &Value) -> Result<Self, Error> {
        let contract = Contract::of(object["apiVersion"].as_str().unwrap_or_default())?;
        let meta = Meta::read(object)?;
        let status = &object["status"];
        let is_true = |value: &Value| *value == Value::Bool(true);
        let (infrastructure, control_plane) = match contract {
            Contract::V1Beta1 => {
                let all = condition::read_all(object);
                let initialized = condition::find(&all, "ControlPlaneInitialized");
                (
                    is_true(&status["infrastructureReady"]),
                    initialized.is_some_and(|found| found.status == ConditionState::True),
                )
            }
            Contract::V1Beta2 => (
                is_true(&status["initialization"]["infrastructureProvisioned"]),
                is_true(&status["initialization"]["controlPlaneInitialized"]),
            ),
        };
        Ok(Self {
            contract,
            is_paused: is_true(&object["spec"]["paused"]) || meta.is_paused(),
            is_infrastructure_ready: infrastructure,
            is_control_plane_initialized: control_plane,
            meta,
        })
    }

    /// Whether Machines can join: infrastructure ready and control plane initialised.
    pub fn is_initialized(&self) -> bool {
        self.is_infrastructure_ready && self.is_control_plane_initialized
    }
}
