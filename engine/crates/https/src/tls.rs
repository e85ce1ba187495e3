//! HTTP/1 and HTTP/2 over TLS.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::certificate::ClientCertificates;
use crate::connection_slot::{ActiveRequest, ConnectionSlot, ConnectionSlots, Lifetimes};
use crate::listen::accept;

/// How long a client may take for its handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take for the head of a request. An idle connection that is kept for a
/// further HTTP/1 request is closed after it, too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an HTTP/2 client is pinged, and how long it may take to respond.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How many bytes a client may send before they are read.
const WINDOW: u32 = 128 * 1024;
/// How many bytes of an HTTP/1 connection are held that have not been read.
const MAX_BUFFERED_BYTES: usize = 128 * 1024;

/// The limits for clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections there are at a time. For one more, the one that has been idle for
    /// longest is closed, of the address with the most; one more waits while none may be closed.
    pub connections: usize,
    /// How many requests one HTTP/2 client may have under way; more wait.
    pub streams: u32,
    /// How long connections may last.
    pub lifetimes: Lifetimes,
    /// How long requests that are under way may take when the server stops.
    pub shutdown_timeout: Duration,
}

/// The address of the client, among the extensions of each of its requests. Never an IPv4 address
/// in the form of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// A server that is about to start.
#[derive(Debug)]
pub struct Server {
    /// The socket for clients.
    pub listener: TcpListener,
    /// The TLS configuration. It should name `h2` and `http/1.1` as its protocols.
    pub tls: Arc<ServerConfig>,
    /// The limits for clients.
    pub limits: Limits,
}

impl Server {
    /// Calls `respond` for every request, until `stop` is ready. Then it accepts no new ones,
    /// waits for those that are under way, and cuts off those that take longer than the shutdown_timeout.
    ///
    /// Cannot fail: an error of a client's connection ends only that connection.
    pub async fn serve<R, A, B>(self, respond: R, stop: impl Future<Output = ()>)
    where
        R: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let acceptor = TlsAcceptor::from(self.tls);
        let slots = ConnectionSlots::new(self.limits.connections, self.limits.lifetimes);
        let (stopping, stopped) = watch::channel(());
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let (stream, peer) = tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = accept(&self.listener) => accepted,
            };
            let slot = tokio::select! {
                () = &mut stop => break,
                slot = slots.take(peer.ip()) => slot,
            };
            let client = Client {
                peer: Peer(peer.ip().to_canonical()),
                acceptor: acceptor.clone(),
                streams: self.limits.streams,
                stopped: stopped.clone(),
                slot: Arc::new(slot),
            };
            connections.spawn(client.serve(stream, respond.clone()));
            // Serves what has been accepted before more is accepted.
            tokio::task::yield_now().await;
        }
        drop(self.listener);
        // There may be no receiver left.
        let _ = stopping.send(());
        let ended = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(self.limits.shutdown_timeout, ended).await;
        connections.shutdown().await;
    }
}

/// The state that serves one client.
struct Client {
    peer: Peer,
    acceptor: TlsAcceptor,
    streams: u32,
    stopped: watch::Receiver<()>,
    slot: Arc<ConnectionSlot>,
}

impl Client {
    /// Serves the client until it disconnects, or its slot is given to another one.
    async fn serve<R, A, B>(self, stream: TcpStream, respond: R)
    where
        R: Fn(Request<Incoming>) -> A + Send,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let slot = self.slot.clone();
        tokio::select! {
            () = slot.evicted() => tracing::debug!("a connection was closed for a new one"),
            () = self.serve_connection(stream, respond) => {}
        }
    }

    async fn serve_connection<R, A, B>(mut self, stream: TcpStream, respond: R)
    where
        R: Fn(Request<Incoming>) -> A + Send,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        // Responses and events are small, and must not wait for more data.
        let _ = stream.set_nodelay(true);
        let handshake = timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream)).await;
        let Ok(Ok(stream)) = handshake else {
            tracing::debug!("TLS handshake failed");
            return;
        };
        let slot = self.slot.clone();
        let certificates = ClientCertificates::of(stream.get_ref().1);
        let peer = self.peer;
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            if let Some(certificates) = &certificates {
                request.extensions_mut().insert(certificates.clone());
            }
            let active_request = slot.begin();
            let response = respond(request);
            async move {
                let response = response.await;
                Ok::<_, Infallible>(
                    response.map(|body| TrackedBody::new(body, active_request)),
                )
            }
        });
        let builder = self.builder();
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.slot.overdue() => {
                // A request that is just arriving gets a response, or is retried on another
                // connection.
                connection.as_mut().graceful_shutdown();
                let Ok(ended) = timeout(HANDSHAKE_TIMEOUT, connection).await else {
                    return;
                };
                ended
            }
            _ = self.stopped.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection failed");
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_BUFFERED_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.streams)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_EVERY);
        builder
    }
}

/// The body of a response. Its request is under way until the client has received the body.
struct TrackedBody<B> {
    body: Pin<Box<B>>,
    _active_request: ActiveRequest,
}

impl<B> TrackedBody<B> {
    fn new(body: B, active_request: ActiveRequest) -> Self {
        Self {
            body: Box::pin(body),
            _active_request: active_request,
        }
    }
}

impl<B: Body> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.body.as_mut().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
