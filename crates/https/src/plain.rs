//! HTTP/1 without TLS, for probes and metrics: whoever connects is answered, whatever else is
//! connected.

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

use crate::listen::accept;
use crate::place::{Lifetimes, Place, Places};

/// How many connections there are at a time; the oldest that says nothing ends for a new one.
const MOST_CONNECTIONS: usize = 64;
/// How long a client may take to say what it wants.
const HEAD_TIMEOUT: Duration = Duration::from_secs(2);
/// How long connections may last.
const LIFETIMES: Lifetimes = Lifetimes {
    idle: HEAD_TIMEOUT,
    request: Some(Duration::from_secs(10)),
};
/// How much of a request is held: there is nothing to say beyond its head.
const MOST_BYTES: usize = 16 * 1024;

/// A server of HTTP/1 that is about to begin.
#[derive(Debug)]
pub struct Plain {
    /// Where clients come.
    pub listener: TcpListener,
}

impl Plain {
    /// Has `respond` answer every request, at once, until dropped. It is given who asks.
    pub async fn serve<R>(self, respond: R) -> Infallible
    where
        R: Fn(&Request<Incoming>, SocketAddr) -> Response<Full<Bytes>>
            + Clone
            + Send
            + 'static,
    {
        let places = Places::new(MOST_CONNECTIONS, LIFETIMES);
        loop {
            let (stream, peer) = accept(&self.listener).await;
            let place = places.take(peer.ip()).await;
            let respond = respond.clone();
            tokio::spawn(async move {
                let respond = move |request: &_| respond(request, peer);
                tokio::select! {
                    () = place.cut() => {}
                    () = place.overdue() => {}
                    () = converse(stream, &place, respond) => {}
                }
            });
            // What has been accepted is served before more is.
            tokio::task::yield_now().await;
        }
    }
}

async fn converse(
    stream: TcpStream,
    place: &Place,
    respond: impl Fn(&Request<Incoming>) -> Response<Full<Bytes>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let _under_way = place.begin();
        let response = respond(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MOST_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
