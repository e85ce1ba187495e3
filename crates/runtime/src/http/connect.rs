//! Creates clients of a server: bounded in time and in size, over few connections.

mod bounds;
mod pool;
mod resolve;

use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::Client;
use kube::client::ClientBuilder;

use super::chunks::MAX_OBJECT_BYTES;
use bounds::Bounds;
use resolve::Resolver;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may take to respond. A watch must begin within it, and then runs without
/// this bound. A silent watch is given up five seconds after the server should have ended it,
/// which is after 290 s.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The bounds of every response: each event of a watch, too, is at most as large as one object. A
/// page of a list may be larger; it is read object by object.
const BOUNDS: Bounds = Bounds {
    time: RESPONSE_TIMEOUT,
    bytes: MAX_OBJECT_BYTES,
};

/// The options of a client, in addition to kube's own configuration.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The User-Agent: the name of the client in the audit log of an API server.
    pub agent: &'static str,
    /// The error for a server with a name that resolves to loopback and link-local addresses
    /// only; `None` if such a server may be dialled.
    pub local_refusal: Option<&'static str>,
}

/// Creates a client that does not wait forever for a silent server: 5 s to connect, 30 s until a
/// response is complete. A response has at most 4 MiB unless it is a page of a list. The client
/// does not retry. No request is sent here.
///
/// # Errors
/// The certificate, the key or the token of `config` cannot be used.
pub fn client(
    config: kube::Config,
    connection: Connection,
) -> Result<Client, kube::Error> {
    client_with_bounds(config, BOUNDS, connection)
}

fn client_with_bounds(
    mut config: kube::Config,
    bounds: Bounds,
    connection: Connection,
) -> Result<Client, kube::Error> {
    let agent = HeaderValue::from_static(connection.agent);
    config.headers.push((USER_AGENT, agent));
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.write_timeout = Some(bounds.time);
    // An eviction that a disruption budget rejects gets a 429; the caller decides when to retry.
    config.default_retry = false;
    if config.proxy_url.is_some() {
        let client = ClientBuilder::try_from(config)?;
        return Ok(client.with_layer(&bounds::layer(bounds)).build());
    }
    pool::client(&config, bounds, Resolver::new(connection.local_refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_to_a_silent_server_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let bounds = Bounds {
            time: Duration::from_millis(50),
            bytes: usize::MAX,
        };
        let connection = Connection {
            agent: "test",
            local_refusal: None,
        };
        let client = client_with_bounds(config, bounds, connection).unwrap();
        // The server accepts the connection and sends nothing.
        let response = client.apiserver_version().await;
        assert!(
            matches!(response, Err(kube::Error::Service(_))),
            "{response:?}"
        );
    }
}
