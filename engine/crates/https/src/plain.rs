//! HTTP/1 without TLS, for probes and metrics. Every client gets a response, whatever other
//! connections are open.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::connection_slot::{ConnectionSlot, ConnectionSlots, Lifetimes};
use crate::listen::accept;

/// How many connections there are at a time; the oldest silent one is closed for a new one.
const MAX_CONNECTIONS: usize = 64;
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// How long connections may last.
const LIFETIMES: Lifetimes = Lifetimes {
    idle: HEAD_TIMEOUT,
    request: Some(Duration::from_secs(10)),
};
/// How much of a request is held: only its head is needed.
const MAX_BYTES: usize = 16 * 1024;

/// An HTTP/1 server that is about to start.
#[derive(Debug)]
pub struct Plain {
    /// The socket for clients.
    pub listener: TcpListener,
}

impl Plain {
    /// Calls `respond` for every request, until dropped. `respond` gets the address of the
    /// client.
    pub async fn serve<R>(self, respond: R) -> Infallible
    where
        R: Fn(&Request<Incoming>, SocketAddr) -> Response<Full<Bytes>>
            + Clone
            + Send
            + 'static,
    {
        let slots = ConnectionSlots::new(MAX_CONNECTIONS, LIFETIMES);
        loop {
            let (stream, peer) = accept(&self.listener).await;
            let slot = slots.take(peer.ip()).await;
            let respond = respond.clone();
            tokio::spawn(async move {
                let respond = move |request: &_| respond(request, peer);
                tokio::select! {
                    () = slot.evicted() => {}
                    () = slot.overdue() => {}
                    () = serve_connection(stream, &slot, respond) => {}
                }
            });
            // Serves what has been accepted before more is accepted.
            tokio::task::yield_now().await;
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    slot: &ConnectionSlot,
    respond: impl Fn(&Request<Incoming>) -> Response<Full<Bytes>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let _active_request = slot.begin();
        let response = respond(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection failed");
    }
}
