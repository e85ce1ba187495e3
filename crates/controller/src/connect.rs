//! Making a client of a kubeconfig that has been accepted.

mod answer;
mod lines;
mod resolve;

use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::Client;
use kube::client::ClientBuilder;

use crate::kubeconfig::Access;
use crate::pieces::LARGEST_OBJECT;
use answer::Bounds;
use resolve::Resolver;

/// Who the operator is in the audit log of an API server.
const AGENT: &str = concat!("5spot/", env!("CARGO_PKG_VERSION"));
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may take to answer; a watch begins at once and then runs without this bound.
/// One that falls silent is given up five seconds after the server should have ended it, which is
/// after 290.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How large an answer may be, in bytes, and each event of a watch: as large as one object. A page
/// of a list may be larger; it is read object by object.
const LARGEST_ANSWER: usize = LARGEST_OBJECT;
/// What every answer is held to.
const BOUNDS: Bounds = Bounds {
    time: RESPONSE_TIMEOUT,
    bytes: LARGEST_ANSWER,
};

/// Makes clients for workload clusters.
///
/// What it is given has already passed [`kubeconfig::Access::parse`](crate::kubeconfig::Access::parse),
/// so an implementation may only choose *how* to reach the server, e.g. without a socket.
pub trait Connect: Send + Sync {
    /// A client for the server that `access` names. Makes no request.
    ///
    /// # Errors
    /// The certificate, the key or the token cannot be used.
    fn connect(&self, access: &Access) -> Result<Client, kube::Error>;
}

/// Dials the server: 5 s to connect, 30 s until an answer is complete, which has at most 4 MiB unless
/// it is a page of a list, no retries of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dial;

impl Connect for Dial {
    fn connect(&self, access: &Access) -> Result<Client, kube::Error> {
        let mut config = kube::Config::new(access.server().clone());
        config.root_cert = Some(access.authorities().to_vec());
        config.tls_server_name = access.server_name().map(str::to_owned);
        config.auth_info = access.auth_info();
        within(config, BOUNDS, access.allows_local())
    }
}

/// A client that hangs on no server that has fallen silent: 5 s to connect, 30 s until an answer is
/// complete, which has at most 4 MiB unless it is a page of a list, no retries of its own. It names itself `5spot/<version>` to the
/// server. Makes no request.
///
/// # Errors
/// The certificate, the key or the token of `config` cannot be used.
pub fn client(config: kube::Config) -> Result<Client, kube::Error> {
    // Its own cluster may be anywhere.
    within(config, BOUNDS, true)
}

fn within(
    mut config: kube::Config,
    bounds: Bounds,
    allows_local: bool,
) -> Result<Client, kube::Error> {
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(AGENT)));
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.write_timeout = Some(bounds.time);
    // An eviction that a disruption budget refuses is answered 429; the planner decides when
    // to ask again.
    config.default_retry = false;
    if config.proxy_url.is_some() {
        let client = ClientBuilder::try_from(config)?;
        return Ok(client.with_layer(&answer::within(bounds)).build());
    }
    lines::share(&config, bounds, Resolver::new(allows_local))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubeconfig::Allowed;

    #[tokio::test]
    async fn a_server_that_never_answers_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let bounds = Bounds {
            time: Duration::from_millis(50),
            bytes: usize::MAX,
        };
        let client = within(config, bounds, true).unwrap();
        // It is connected to, and says nothing.
        let answer = client.apiserver_version().await;
        assert!(matches!(answer, Err(kube::Error::Service(_))), "{answer:?}");
    }

    #[tokio::test]
    async fn an_accepted_kubeconfig_makes_a_client() {
        let kubeconfig = crate::kubeconfig::tests::kubeconfig().to_string();
        let access = Access::parse(kubeconfig.as_bytes(), Allowed::default()).unwrap();
        assert!(Dial.connect(&access).is_ok());
    }
}
