//! The clusters of the arguments, and what the agent has there.

use std::error::Error;
use std::fmt;
use std::path::Path;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::argument::Args;
use super::{Failure, refused};
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

impl fmt::Display for MachineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
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

/// Why there is no cluster.
fn failed(error: &(dyn Error + 'static)) -> Failure {
    let what = "finding the cluster";
    if let Some(why) = malformed(error) {
        let remedy = "correct the file; it has secrets, so that no line of it is shown";
        return refused(what, why, remedy);
    }
    let remedy = "give the pod a service account, or set --kubeconfig";
    Failure::new(what, error, remedy)
}

/// That a kubeconfig cannot be parsed, if that is among the causes. Its own error shows the lines beside
/// the mistake, where tokens and keys are.
fn malformed(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(KubeconfigError::Parse(error)) = error.downcast_ref() {
            let place = error.location().map(|place| {
                format!(" at line {}, column {}", place.line(), place.column())
            });
            let place = place.unwrap_or_default();
            return Some(format!("the kubeconfig is malformed{place}"));
        }
        cause = error.source();
    }
    None
}

/// A client of the cluster that a kubeconfig names, or else of the usual one.
async fn client(kubeconfig: Option<&Path>) -> Result<Client, Failure> {
    let mut config = match kubeconfig {
        None => Config::infer().await.map_err(|error| failed(&error))?,
        Some(path) => {
            let kubeconfig =
                Kubeconfig::read_from(path).map_err(|error| failed(&error))?;
            let options = KubeConfigOptions::default();
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .map_err(|error| failed(&error))?
        }
    };
    // The callers decide what is retried, and when.
    config.default_retry = false;
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(USER)));
    Client::try_from(config).map_err(|error| failed(&error))
}
