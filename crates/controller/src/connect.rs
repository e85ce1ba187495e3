//! Makes a client of an accepted kubeconfig.

use fivespot_runtime::http::Connection;
use kube::Client;

use crate::observe::kubeconfig::Access;

/// The user agent of the operator in the audit log of an API server.
const AGENT: &str = concat!("5spot/", env!("CARGO_PKG_VERSION"));

/// Makes clients for workload clusters.
///
/// The [`Access`] has already passed
/// [`kubeconfig::Access::parse`](crate::kubeconfig::Access::parse), so an implementation may only
/// choose *how* to reach the server, e.g. without a socket.
pub trait Connect: Send + Sync {
    /// A client for the server that `access` names. Makes no request.
    ///
    /// # Errors
    /// The certificate, the key or the token cannot be used.
    fn connect(&self, access: &Access) -> Result<Client, kube::Error>;
}

/// Connects to the server over the network, within 5 s. The client does not retry.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkConnect;

impl Connect for NetworkConnect {
    fn connect(&self, access: &Access) -> Result<Client, kube::Error> {
        let mut config = kube::Config::new(access.server().clone());
        config.root_cert = Some(access.authorities().to_vec());
        config.tls_server_name = access.server_name().map(str::to_owned);
        config.auth_info = access.auth_info();
        let refusal = "the server's name resolves to a loopback or link-local address; the \
                       operator allows one with --allow-loopback-workload-server";
        let connection = Connection {
            agent: AGENT,
            local_refusal: (!access.allows_local()).then_some(refusal),
        };
        fivespot_runtime::http::client(config, connection)
    }
}

/// A client that connects within 5 s and does not retry. Its user agent is `5spot/<version>`. Makes
/// no request.
///
/// # Errors
/// The certificate, the key or the token of `config` cannot be used.
pub fn client(config: kube::Config) -> Result<Client, kube::Error> {
    // The operator's own cluster may have any address.
    let connection = Connection {
        agent: AGENT,
        local_refusal: None,
    };
    fivespot_runtime::http::client(config, connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::kubeconfig::Allowed;

    #[tokio::test]
    async fn an_accepted_kubeconfig_makes_a_client() {
        let kubeconfig = crate::observe::kubeconfig::tests::kubeconfig().to_string();
        let access = Access::parse(kubeconfig.as_bytes(), Allowed::default()).unwrap();
        assert!(NetworkConnect.connect(&access).is_ok());
    }
}
