//! All requests over one connection, watches over one each.

use std::time::Duration;

use http::Request;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use tower::timeout::TimeoutLayer;
use tower::{BoxError, ServiceBuilder, service_fn};

use super::CONNECT_TIMEOUT;
use crate::metrics::is_watch;

/// How often a server that sends nothing is asked whether it is still there, and how long it may
/// take to say so.
const PING: Duration = Duration::from_secs(15);

/// A client whose requests share a connection.
///
/// A connection costs as much memory as twenty machines, and a handshake as much time as making
/// one: too much for each of the requests that are under way at an edge. A watch keeps its own,
/// so that one which falls silent is told from one which has nothing to say.
///
/// Sends watches through `watches`, and everything else over one connection, where the server
/// that `config` names speaks HTTP/2; else over as many as it takes. An answer has to begin
/// within `limit`.
///
/// # Errors
/// The certificate, the key or the token of `config` cannot be used.
pub(super) fn share(
    watches: Client,
    config: &Config,
    limit: Duration,
) -> Result<Client, kube::Error> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    let builder = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    let builder = match server_name(config) {
        Some(name) => {
            builder.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => builder,
    };
    let mut connector =
        TimeoutConnector::new(builder.enable_all_versions().wrap_connector(http));
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_write_timeout(Some(limit));
    let client = legacy::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING)
        .build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(TimeoutLayer::new(limit))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    let namespace = watches.default_namespace().to_owned();
    let requests = Client::new(service, namespace.clone());
    // Ready at any time: sending waits for its turn.
    let lines = service_fn(move |request: Request<Body>| {
        let line = if is_watch(request.uri()) {
            &watches
        } else {
            &requests
        };
        let line = line.clone();
        async move { line.send(request).await }
    });
    Ok(Client::new(lines, namespace))
}

/// What the server's certificate is made out to, where that is not its address.
fn server_name(config: &Config) -> Option<rustls::pki_types::ServerName<'static>> {
    let name = config.tls_server_name.clone()?;
    // One that is none has been refused by the client for watches.
    name.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use fivespot_https::{Limits, Server};
    use http::{Response, Version};
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::net::TcpListener;

    use super::*;

    type Heard = Arc<Mutex<Vec<(String, Version)>>>;

    /// A server that speaks these protocols, a client of it, and what the server has heard.
    async fn server(protocols: &[&[u8]]) -> (Client, Heard) {
        let own =
            rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = own.cert.der().clone();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Server {
            listener,
            tls: Arc::new(tls),
            limits: Limits {
                connections: 8,
                streams: 8,
                farewell: Duration::ZERO,
            },
        };
        let heard = Heard::default();
        let noted = heard.clone();
        let respond = move |request: Request<hyper::body::Incoming>| {
            let said = (request.uri().path().to_owned(), request.version());
            noted.lock().unwrap().push(said);
            async { Response::new(http_body_util::Full::new(bytes::Bytes::from("{}"))) }
        };
        tokio::spawn(server.serve(respond, std::future::pending()));
        let address = format!("https://localhost:{port}").parse().unwrap();
        let mut config = Config::new(address);
        config.root_cert = Some(vec![certificate.to_vec()]);
        (super::super::client(config).unwrap(), heard)
    }

    async fn get(client: &Client, path: &str) {
        let request = Request::get(path).body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap();
    }

    #[tokio::test]
    async fn requests_share_a_line_and_a_watch_has_its_own() {
        let (client, heard) = server(&[b"h2", b"http/1.1"]).await;
        get(&client, "/request").await;
        get(&client, "/watch?watch=true").await;
        let expected = [
            ("/request".to_owned(), Version::HTTP_2),
            ("/watch".to_owned(), Version::HTTP_11),
        ];
        assert_eq!(*heard.lock().unwrap(), expected);
    }

    #[tokio::test]
    async fn a_server_that_knows_no_shared_lines_is_talked_to_all_the_same() {
        let (client, heard) = server(&[b"http/1.1"]).await;
        get(&client, "/request").await;
        let expected = [("/request".to_owned(), Version::HTTP_11)];
        assert_eq!(*heard.lock().unwrap(), expected);
    }
}
