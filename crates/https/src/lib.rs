//! An HTTPS server behind a socket: TLS, limits, an orderly end. What is answered is its
//! caller's.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// How long a client may take for its handshake, and for the head of a request. An idle
/// connection that is kept for a further HTTP/1 request ends with it too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to
/// say so.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long nothing is accepted after that failed: too many open files pass when others close.
const RESPITE: Duration = Duration::from_millis(100);

/// How much clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections there are at a time; more wait to be accepted.
    pub connections: usize,
    /// How many requests one HTTP/2 client may have under way; more wait.
    pub streams: u32,
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
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let (stopping, stopped) = watch::channel(());
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                (place, stream) = accept(&self.listener, &places) => {
                    let client = Client {
                        acceptor: acceptor.clone(),
                        streams: self.limits.streams,
                        stopped: stopped.clone(),
                    };
                    let respond = respond.clone();
                    connections.spawn(async move {
                        client.serve(stream, respond).await;
                        drop(place);
                    });
                }
            }
        }
        drop(self.listener);
        // Nobody may be listening any more.
        let _ = stopping.send(());
        let ended = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(self.limits.farewell, ended).await;
        connections.shutdown().await;
    }
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (Option<OwnedSemaphorePermit>, TcpStream) {
    // The semaphore is never closed.
    let place = places.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (place, stream),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(RESPITE).await;
            }
        }
    }
}

/// What one client is served with.
struct Client {
    acceptor: TlsAcceptor,
    streams: u32,
    stopped: watch::Receiver<()>,
}

impl Client {
    async fn serve<R, A, B>(mut self, stream: TcpStream, respond: R)
    where
        R: Fn(Request<Incoming>) -> A + Send,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        // Answers and events are small, and must not wait for more to come.
        let _ = stream.set_nodelay(true);
        let handshake = timeout(HEAD_TIMEOUT, self.acceptor.accept(stream)).await;
        let Ok(Ok(stream)) = handshake else {
            tracing::debug!("no TLS handshake");
            return;
        };
        let service = service_fn(move |request| {
            let answer = respond(request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.streams)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_EVERY);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            _ = self.stopped.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}
