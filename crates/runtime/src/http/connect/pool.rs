//! Connection pools: requests share a few connections, and watches share others. Measured in
//! `internals/decisions/0020-own-work-queue.md`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Uri};
use http_body_util::BodyExt as _;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use rustls::pki_types::ServerName;
use tower::{BoxError, ServiceBuilder, service_fn};

use super::resolve::Resolver;
use super::{CONNECT_TIMEOUT, RESPONSE_TIMEOUT};

/// How often a silent server is pinged, and how long it may take to respond.
const PING: Duration = Duration::from_secs(15);

/// How many bytes of a response are received before they are read: large responses take turns.
const STREAM_WINDOW: u32 = 128 << 10;

/// The same for all responses on a connection: so many that those which wait for their turn do
/// not block the one that is being read.
const CONNECTION_WINDOW: u32 = 32 << 20;

/// How many watches share a connection: as many as every server with HTTP/2 allows.
const WATCHES_PER_CONNECTION: usize = 100;

/// How many requests share a connection before another one is opened. A server in Go reads and
/// writes the frames of a connection one after another, each with a switch between goroutines.
/// When it is busy, that takes longer than the requests.
const REQUESTS_PER_CONNECTION: usize = 16;

/// How many connections there are at most for requests.
const MAX_REQUEST_CONNECTIONS: usize = 8;

/// A client whose requests share a few connections, and whose watches share others.
///
/// A connection costs as much memory as twenty machines, and a handshake as much time as the
/// creation of one. That is too much for each of the requests that are under way at an edge, and
/// for each of the watches of pods when thousands of machines leave together. A silent watch is
/// given up by its reader, even if responses to others arrive on its connection.
///
/// If the server that `config` names does not support HTTP/2, there are as many connections as
/// needed. Names are resolved by `resolver`.
///
/// # Errors
/// The certificate, the key or the token of `config` cannot be used.
pub(super) fn client(config: &Config, resolver: Resolver) -> Result<Client, kube::Error> {
    let mut http = HttpConnector::new_with_resolver(resolver);
    http.enforce_http(false);
    http.set_nodelay(true);
    let builder = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    let builder = match server_name(config)? {
        Some(name) => {
            builder.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => builder,
    };
    let mut connector =
        TimeoutConnector::new(builder.enable_all_versions().wrap_connector(http));
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_write_timeout(Some(RESPONSE_TIMEOUT));
    let dial = move || {
        legacy::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PING)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .build::<_, Body>(connector.clone())
    };
    let requests = Arc::new(Connections::for_requests(dial.clone()));
    let watches = Arc::new(Connections::for_watches(dial));
    // Always ready: sending waits for its turn.
    let send = service_fn(move |request: Request<Body>| {
        let (connection, slot) = if is_watch(request.uri()) {
            watches.acquire()
        } else {
            requests.acquire()
        };
        async move {
            let response = connection.request(request).await?;
            let hold_slot = move |frame| keep_slot(&slot, frame);
            Ok::<_, legacy::Error>(response.map(|body| body.map_frame(hold_slot)))
        }
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(send);
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// Whether the response is a stream that lasts until it is closed.
fn is_watch(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query
        .split('&')
        .any(|pair| pair == "watch=true" || pair == "watch=1")
}

/// A request's or a watch's share of a connection. It is released when the last clone is dropped.
type Slot = Arc<()>;

/// Returns `frame`. A body with frames that pass through here holds the slot until all of it is
/// read.
fn keep_slot<T>(_: &Slot, frame: T) -> T {
    frame
}

/// Connections, each with so many slots.
struct Connections<T, D> {
    dial: D,
    slots_per_connection: usize,
    /// How many there are at most, each of which stays open; `None` if one is added whenever all
    /// are full, and closed when it is unused.
    max: Option<usize>,
    open: Mutex<Vec<(T, Slot)>>,
}

impl<T: Clone, D: Fn() -> T> Connections<T, D> {
    /// For requests: an open connection is kept, because a handshake costs as much as several
    /// requests.
    fn for_requests(dial: D) -> Self {
        Self {
            dial,
            slots_per_connection: REQUESTS_PER_CONNECTION,
            max: Some(MAX_REQUEST_CONNECTIONS),
            open: Mutex::default(),
        }
    }

    /// For watches: an unused connection is closed.
    fn for_watches(dial: D) -> Self {
        Self {
            dial,
            slots_per_connection: WATCHES_PER_CONNECTION,
            max: None,
            open: Mutex::default(),
        }
    }

    /// The first connection with a free slot; a new one if there is none; the one with the fewest
    /// requests if there may be no more.
    fn acquire(&self) -> (T, Slot) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if self.max.is_none() {
            open.retain(|(_, slots)| Arc::strong_count(slots) > 1);
        }
        let is_free = |(_, slots): &&(T, Slot)| {
            Arc::strong_count(slots) <= self.slots_per_connection
        };
        if let Some(free) = open.iter().find(is_free) {
            return free.clone();
        }
        let is_full = self.max.is_some_and(|max| open.len() >= max);
        let fewest = open
            .iter()
            .min_by_key(|(_, slots)| Arc::strong_count(slots));
        if let Some(fewest) = fewest.filter(|_| is_full) {
            return fewest.clone();
        }
        let added = ((self.dial)(), Slot::default());
        open.push(added.clone());
        added
    }
}

/// The name in the server's certificate, if that is not its address.
fn server_name(config: &Config) -> Result<Option<ServerName<'static>>, kube::Error> {
    let Some(name) = config.tls_server_name.clone() else {
        return Ok(None);
    };
    let name = ServerName::try_from(name);
    name.map(Some)
        .map_err(|error| kube::Error::Service(error.into()))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Response, Version};
    use kubemu_https::{Lifetimes, Limits, Server};
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::net::TcpListener;

    use super::*;

    /// The path, the protocol and the User-Agent of each request.
    type ReceivedRequests = Arc<Mutex<Vec<(String, Version, String)>>>;

    /// A server that supports these protocols, a client of it, and the requests that it has
    /// received.
    async fn server(protocols: &[&[u8]]) -> (Client, ReceivedRequests) {
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
                lifetimes: Lifetimes {
                    idle: Duration::from_mins(1),
                    request: None,
                },
                shutdown_timeout: Duration::ZERO,
            },
        };
        let requests = ReceivedRequests::default();
        let recorded = requests.clone();
        let respond = move |request: Request<hyper::body::Incoming>| {
            let agent = request.headers().get("user-agent");
            let agent = agent.map_or("", |it| it.to_str().unwrap()).to_owned();
            let received = (request.uri().path().to_owned(), request.version(), agent);
            recorded.lock().unwrap().push(received);
            async { Response::new(http_body_util::Full::new(bytes::Bytes::from("{}"))) }
        };
        tokio::spawn(server.serve(respond, std::future::pending()));
        let address = format!("https://localhost:{port}").parse().unwrap();
        let mut config = Config::new(address);
        config.root_cert = Some(vec![certificate.to_vec()]);
        let connection = super::super::Connection {
            agent: AGENT,
            local_refusal: None,
        };
        (super::super::client(config, connection).unwrap(), requests)
    }

    /// The User-Agent, which identifies the client in audit logs.
    const AGENT: &str = "test/1";

    async fn get(client: &Client, path: &str) {
        let request = Request::get(path).body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap();
    }

    #[tokio::test]
    async fn requests_and_watches_use_http_2_if_the_server_supports_it() {
        let (client, requests) = server(&[b"h2", b"http/1.1"]).await;
        get(&client, "/request").await;
        get(&client, "/watch?watch=true").await;
        let expected = [
            ("/request".to_owned(), Version::HTTP_2, AGENT.to_owned()),
            ("/watch".to_owned(), Version::HTTP_2, AGENT.to_owned()),
        ];
        assert_eq!(*requests.lock().unwrap(), expected);
    }

    #[tokio::test]
    async fn a_server_without_http_2_is_supported() {
        let (client, requests) = server(&[b"http/1.1"]).await;
        get(&client, "/request").await;
        get(&client, "/watch?watch=true").await;
        let expected = [
            ("/request".to_owned(), Version::HTTP_11, AGENT.to_owned()),
            ("/watch".to_owned(), Version::HTTP_11, AGENT.to_owned()),
        ];
        assert_eq!(*requests.lock().unwrap(), expected);
    }

    #[test]
    fn a_watch_opens_a_connection_if_all_are_full_and_unused_ones_are_closed() {
        let dialled = AtomicUsize::new(0);
        let watches =
            Connections::for_watches(|| dialled.fetch_add(1, Ordering::Relaxed));
        let mut first: Vec<_> = (0..WATCHES_PER_CONNECTION)
            .map(|_| watches.acquire())
            .collect();
        assert!(first.iter().all(|(connection, _)| *connection == 0));
        let second = watches.acquire();
        assert_eq!(second.0, 1);
        first.pop();
        assert_eq!(watches.acquire().0, 0, "a slot has become free");
        drop(first);
        assert_eq!(
            watches.acquire().0,
            1,
            "the first connection has been closed"
        );
        drop(second);
        assert_eq!(watches.acquire().0, 2);
    }

    #[test]
    fn requests_fill_the_connections_in_order_and_then_use_the_least_loaded() {
        let dialled = AtomicUsize::new(0);
        let requests =
            Connections::for_requests(|| dialled.fetch_add(1, Ordering::Relaxed));
        drop(requests.acquire());
        let mut all: Vec<_> = (0..MAX_REQUEST_CONNECTIONS * REQUESTS_PER_CONNECTION)
            .map(|_| requests.acquire())
            .collect();
        for (place, (connection, _)) in all.iter().enumerate() {
            assert_eq!(*connection, place / REQUESTS_PER_CONNECTION);
        }
        all.remove(3 * REQUESTS_PER_CONNECTION);
        all.remove(3 * REQUESTS_PER_CONNECTION);
        let more = [requests.acquire().0, requests.acquire().0];
        assert_eq!(more, [3, 3], "slots have become free");
        let full = requests.acquire();
        assert_eq!(dialled.load(Ordering::Relaxed), MAX_REQUEST_CONNECTIONS);
        drop((all, full));
        assert_eq!(requests.acquire().0, 0, "connections are kept");
    }
}
