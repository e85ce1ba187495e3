//! What the NetworkPolicies of the manifests allow.

use fivespot_install::controller::Network;

use super::rbac::check_namespace;
use crate::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct NetworkArgs {
    /// Ports of API servers that the NetworkPolicies let the pods connect to: those of this cluster,
    /// and for the operator those of the workload clusters
    #[arg(
        long,
        value_name = "PORT,...",
        value_delimiter = ',',
        default_values_t = Network::default().egress_ports,
    )]
    egress_port: Vec<u16>,

    /// Namespace from which the NetworkPolicies let metrics be read
    #[arg(
        long,
        value_name = "NAME",
        default_value_t = Network::default().metrics_namespace,
    )]
    metrics_namespace: String,
}

impl NetworkArgs {
    /// What was allowed.
    ///
    /// # Errors
    /// The namespace has an invalid name.
    pub(super) fn network(&self) -> Result<Network, Failure> {
        check_namespace(&self.metrics_namespace)?;
        Ok(Network {
            egress_ports: self.egress_port.iter().copied().collect(),
            metrics_namespace: self.metrics_namespace.clone(),
        })
    }
}
