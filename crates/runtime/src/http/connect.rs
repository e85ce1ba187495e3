//! Creates clients of a server, over few connections.

mod pool;
mod resolve;

use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::Client;
use kube::client::ClientBuilder;

use super::client::RESPONSE_TIMEOUT;
use resolve::Resolver;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The options of a client, in addition to kube's own configuration.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The User-Agent: the name of the client in the audit log of an API server.
    pub agent: &'static str,
    /// The error for a server with a name that resolves to loopback and link-local addresses
    /// only; `None` if such a server may be dialled.
    pub local_refusal: Option<&'static str>,
}

/// Creates a client that connects within 5 s and does not retry. An
/// [`ApiClient`](super::ApiClient) bounds the responses. No request is sent here.
///
/// # Errors
/// The certificate, the key or the token of `config` cannot be used.
pub fn client(
    mut config: kube::Config,
    connection: Connection,
) -> Result<Client, kube::Error> {
    let agent = HeaderValue::from_static(connection.agent);
    config.headers.push((USER_AGENT, agent));
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.write_timeout = Some(RESPONSE_TIMEOUT);
    // An eviction that a disruption budget rejects gets a 429; the caller decides when to retry.
    config.default_retry = false;
    if config.proxy_url.is_some() {
        return Ok(ClientBuilder::try_from(config)?.build());
    }
    pool::client(&config, Resolver::new(connection.local_refusal))
}
