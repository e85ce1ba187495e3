//! Making a client of a kubeconfig that has been accepted.

mod answer;
mod lines;

use std::time::Duration;

use kube::Client;
use kube::client::ClientBuilder;

use crate::kubeconfig::Access;
use answer::Bounds;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may take to answer; a watch begins at once and then runs without this bound.
/// One that falls silent is given up five seconds after the server should have ended it, which is
/// after 290.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How large an answer of a workload cluster may be, in bytes: whoever can write a Secret chooses
/// who answers. A page of a hundred Nodes, and the pods of one, are a tenth of it.
const LARGEST_ANSWER: usize = 32 << 20;

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

/// Dials the server: 5 s to connect, 30 s until an answer is complete, which has at most 32 MiB, no
/// retries of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dial;

impl Connect for Dial {
    fn connect(&self, access: &Access) -> Result<Client, kube::Error> {
        let mut config = kube::Config::new(access.server().clone());
        config.root_cert = Some(access.authorities().to_vec());
        config.tls_server_name = access.server_name().map(str::to_owned);
        config.auth_info = access.auth_info();
        within(
            config,
            Bounds {
                time: RESPONSE_TIMEOUT,
                bytes: LARGEST_ANSWER,
            },
        )
    }
}

/// A client that hangs on no server that has fallen silent: 5 s to connect, 30 s until an answer is
/// complete, however large it is, no retries of its own. Makes no request.
///
/// # Errors
/// The certificate, the key or the token of `config` cannot be used.
pub fn client(config: kube::Config) -> Result<Client, kube::Error> {
    let bounds = Bounds {
        time: RESPONSE_TIMEOUT,
        bytes: usize::MAX,
    };
    within(config, bounds)
}

fn within(mut config: kube::Config, bounds: Bounds) -> Result<Client, kube::Error> {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.write_timeout = Some(bounds.time);
    // An eviction that a disruption budget refuses is answered 429; the planner decides when
    // to ask again.
    config.default_retry = false;
    if config.proxy_url.is_some() {
        let client = ClientBuilder::try_from(config)?;
        return Ok(client.with_layer(&answer::within(bounds)).build());
    }
    lines::share(&config, bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_never_answers_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let bounds = Bounds {
            time: Duration::from_millis(50),
            bytes: usize::MAX,
        };
        let client = within(config, bounds).unwrap();
        // It is connected to, and says nothing.
        let answer = client.apiserver_version().await;
        assert!(matches!(answer, Err(kube::Error::Service(_))), "{answer:?}");
    }

    #[tokio::test]
    async fn an_accepted_kubeconfig_makes_a_client() {
        let kubeconfig = crate::kubeconfig::tests::kubeconfig().to_string();
        let access = Access::parse(kubeconfig.as_bytes()).unwrap();
        assert!(Dial.connect(&access).is_ok());
    }
}
