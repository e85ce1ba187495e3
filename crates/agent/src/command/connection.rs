//! The clusters of the arguments, and what the agent has there.

use std::path::Path;

use fivespot_program::cluster::{Source, no_client};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::Client;

use super::Failure;
use super::argument::Args;
use crate::node::{Identity, OwnNode};
use crate::reporting::OwnMachine;

/// The user agent in the audit log of an API server.
const USER: &str = concat!("5spot-reclaim-agent/", env!("CARGO_PKG_VERSION"));

/// The name of a ScheduledMachine.
#[derive(Clone, Debug)]
pub(super) struct MachineName {
    namespace: String,
    name: String,
}

pub(super) fn machine(text: &str) -> Result<MachineName, String> {
    let parts = text.split_once('/');
    let is_name = |part: &str| !part.is_empty() && !part.contains('/');
    let parts = parts.filter(|(namespace, name)| is_name(namespace) && is_name(name));
    let (namespace, name) =
        parts.ok_or("expected NAMESPACE/NAME, such as team-a/desk")?;
    Ok(MachineName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

impl Args {
    /// The ScheduledMachine to report to, if any; in the cluster of the Node if none is given.
    pub(super) async fn own_machine(
        &self,
        node: &OwnNode,
    ) -> Result<Option<OwnMachine>, Failure> {
        let Some(machine) = &self.machine else {
            return Ok(None);
        };
        Ok(Some(OwnMachine {
            client: match &self.machine_kubeconfig {
                None => node.client.clone(),
                given => client(given.as_deref()).await?,
            },
            namespace: machine.namespace.clone(),
            name: machine.name.clone(),
        }))
    }

    pub(super) async fn own_node(&self, name: &str) -> Result<OwnNode, Failure> {
        Ok(OwnNode {
            client: client(self.kubeconfig.as_deref()).await?,
            name: name.to_owned(),
            identity: if self.skip_host_id_check {
                Identity::Unchecked
            } else {
                Identity::File(self.machine_id_path.clone())
            },
        })
    }
}

/// A client of the cluster that a kubeconfig names, or else of the usual one.
async fn client(kubeconfig: Option<&Path>) -> Result<Client, Failure> {
    let source = Source {
        kubeconfig: kubeconfig.map(Path::to_owned),
        context: None,
    };
    let mut config = source.config_or_in_cluster().await?;
    // The callers decide what is retried, and when.
    config.default_retry = false;
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(USER)));
    Client::try_from(config).map_err(no_client)
}
