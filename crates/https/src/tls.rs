//! HTTP/1 and HTTP/2 over TLS.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
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
use crate::listen::accept;
use crate::place::{Lifetimes, Place, Places, UnderWay};

/// How long a client may take for its handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take for the head of a request. An idle connection that is kept for a
/// further HTTP/1 request ends with it too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to
/// say so.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How many bytes a client may send ahead of those that are taken.
const WINDOW: u32 = 128 * 1024;
/// How many bytes of an HTTP/1 connection are held that nobody has taken.
const MOST_HELD: usize = 128 * 1024;

/// How much clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections there are at a time. For one more, the one that has been idle for
    /// longest ends, of the address that has the most; one more waits while none may end.
    pub connections: usize,
    /// How many requests one HTTP/2 client may have under way; more wait.
    pub streams: u32,
    /// How long connections may last.
    pub lifetimes: Lifetimes,
    /// How long requests that are being answered have when the server stops.
    pub farewell: Duration,
}

/// A server that is about to begin.
#[derive(Debug)]
pub struct Server {
    /// Where clients come.
    pub listener: TcpListener,
    /// How they are shown who answers. Should name `h2` and `http/1.1` as its protocols.
    pub tls: Arc<ServerConfig>,
    /// How much they may take.
    pub limits: Limits,
}

impl Server {
    /// Has `respond` answer every request, until `stop` ends; then takes no new ones, waits for
    /// those that are being answered, and cuts off those that take longer than the farewell.
    ///
    /// Cannot fail: a client's connection that fails is the client's.
    pub async fn serve<R, A, B>(self, respond: R, stop: impl Future<Output = ()>)
    where
        R: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let acceptor = TlsAcceptor::from(self.tls);
        let places = Places::new(self.limits.connections, self.limits.lifetimes);
        let (stopping, stopped) = watch::channel(());
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            let (stream, peer) = tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = accept(&self.listener) => accepted,
            };
            let place = tokio::select! {
                () = &mut stop => break,
                place = places.take(peer.ip()) => place,
            };
            let client = Client {
                acceptor: acceptor.clone(),
                streams: self.limits.streams,
                stopped: stopped.clone(),
                place: Arc::new(place),
            };
            connections.spawn(client.serve(stream, respond.clone()));
            // What has been accepted is served before more is.
            tokio::task::yield_now().await;
        }
        drop(self.listener);
        // Nobody may be listening any more.
        let _ = stopping.send(());
        let ended = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(self.limits.farewell, ended).await;
        connections.shutdown().await;
    }
}

/// What one client is served with.
struct Client {
    acceptor: TlsAcceptor,
    streams: u32,
    stopped: watch::Receiver<()>,
    place: Arc<Place>,
}

impl Client {
    /// Serves it until it goes, or its place is another's.
    async fn serve<R, A, B>(self, stream: TcpStream, respond: R)
    where
        R: Fn(Request<Incoming>) -> A + Send,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let place = self.place.clone();
        tokio::select! {
            () = place.cut() => tracing::debug!("a connection was cut for a new one"),
            () = self.converse(stream, respond) => {}
        }
    }

    async fn converse<R, A, B>(mut self, stream: TcpStream, respond: R)
    where
        R: Fn(Request<Incoming>) -> A + Send,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        // Answers and events are small, and must not wait for more to come.
        let _ = stream.set_nodelay(true);
        let handshake = timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(stream)).await;
        let Ok(Ok(stream)) = handshake else {
            tracing::debug!("no TLS handshake");
            return;
        };
        let place = self.place.clone();
        let shown = ClientCertificates::of(stream.get_ref().1);
        let service = service_fn(move |mut request: Request<Incoming>| {
            if let Some(shown) = &shown {
                request.extensions_mut().insert(shown.clone());
            }
            let under_way = place.begin();
            let answer = respond(request);
            async move {
                let answer = answer.await;
                Ok::<_, Infallible>(answer.map(|body| Tracked::new(body, under_way)))
            }
        });
        let builder = self.builder();
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.place.overdue() => {
                // A request that is just coming is answered, or asked again elsewhere.
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
            tracing::debug!(%error, "a connection ended early");
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MOST_HELD);
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

/// The body of an answer, whose request is under way until the client has taken it.
struct Tracked<B> {
    body: Pin<Box<B>>,
    _under_way: UnderWay,
}

impl<B> Tracked<B> {
    fn new(body: B, under_way: UnderWay) -> Self {
        Self {
            body: Box::pin(body),
            _under_way: under_way,
        }
    }
}

impl<B: Body> Body for Tracked<B> {
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
