//! The webhook behind a socket: TLS, limits, an orderly end.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::certificate::Certificate;
use crate::judge::{Judge, Reply, Verdict};

/// Where the webhook configuration sends questions.
pub const PATH: &str = fivespot_api::name::WEBHOOK_PATH;
/// Most bytes of a question: two objects of the 3 MiB that an API server takes, and what is
/// around them.
pub const MOST_BYTES: usize = 7 << 20;
/// How long a client may take for its handshake, and for the head of a request. An idle
/// connection that is kept for a further HTTP/1 request ends with it too.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a question may take to arrive; more than API servers wait for an answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to
/// say so.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How many connections there are at a time; more wait to be accepted.
const MOST_CONNECTIONS: usize = 256;
/// How many questions are read at a time; more wait.
const MOST_QUESTIONS: usize = 16;
/// How many questions one HTTP/2 client may have under way.
const MOST_STREAMS: u32 = 64;
/// How long questions that are being answered have when the webhook stops.
const FAREWELL: Duration = Duration::from_secs(10);

/// Told of every question that was answered.
pub trait Observe: Send + Sync {
    /// `verdict` is what was decided, `took` how long that was, reading excepted.
    fn answered(&self, verdict: Verdict, took: Duration);
}

/// Observes nothing.
impl Observe for () {
    fn answered(&self, _: Verdict, _: Duration) {}
}

/// Serves API servers over TLS until `stop` ends; then waits up to ten seconds for questions
/// that are being answered.
///
/// While `certificate` is empty, no handshake succeeds.
///
/// # Errors
/// The TLS library refuses its own defaults, which is not known to happen.
pub async fn serve(
    listener: TcpListener,
    certificate: &Certificate,
    judging: (Arc<Judge>, Arc<dyn Observe>),
    stop: impl Future<Output = ()>,
) -> Result<(), rustls::Error> {
    let acceptor = TlsAcceptor::from(Arc::new(certificate.tls()?));
    let (judge, observer) = judging;
    let desk = Arc::new(Desk {
        judge,
        observer,
        places: Semaphore::new(MOST_QUESTIONS),
    });
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let (stopping, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            (place, stream) = accept(&listener, &places) => {
                let (acceptor, desk) = (acceptor.clone(), desk.clone());
                let stopped = stopped.clone();
                connections.spawn(async move {
                    connection(stream, acceptor, desk, stopped).await;
                    drop(place);
                });
            }
        }
    }
    drop(listener);
    // Nobody may be listening any more.
    let _ = stopping.send(());
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FAREWELL, ended).await;
    connections.shutdown().await;
    Ok(())
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
            // The connection that failed is the client's; too many open files pass when
            // others close.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    desk: Arc<Desk>,
    mut stopped: watch::Receiver<()>,
) {
    // Answers are small and must not wait for more to come.
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await;
    let Ok(Ok(stream)) = handshake else {
        tracing::debug!("no TLS handshake");
        return;
    };
    let service = service_fn(move |request| {
        let desk = desk.clone();
        async move { Ok::<_, Infallible>(desk.respond(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "a connection ended early");
    }
}

/// Where questions are taken.
struct Desk {
    judge: Arc<Judge>,
    observer: Arc<dyn Observe>,
    places: Semaphore,
}

impl Desk {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match self.question(request).await {
            Ok(body) => {
                let begun = std::time::Instant::now();
                let reply = self.judge.answer(&body);
                self.observer.answered(reply.verdict, begun.elapsed());
                answered(reply)
            }
            Err((code, why)) => {
                self.observer.answered(Verdict::Malformed, Duration::ZERO);
                response(code, "text/plain; charset=utf-8", format!("{why}\n"))
            }
        }
    }

    /// The body, if it is one that can be a question.
    async fn question(
        &self,
        request: Request<Incoming>,
    ) -> Result<Bytes, (StatusCode, &'static str)> {
        if request.uri().path() != PATH {
            return Err((StatusCode::NOT_FOUND, "only /validate is served"));
        }
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "only POST is answered"));
        }
        let media = request.headers().get(header::CONTENT_TYPE);
        let media = media.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim();
        if !media.eq_ignore_ascii_case("application/json") {
            let why = "only application/json is read";
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let too_large = (StatusCode::PAYLOAD_TOO_LARGE, "the body is beyond 7 MiB");
        let least = request.body().size_hint().lower();
        if usize::try_from(least).is_ok_and(|least| least > MOST_BYTES) {
            return Err(too_large);
        }
        // The semaphore is never closed.
        let _place = self.places.acquire().await;
        let reading = Limited::new(request.into_body(), MOST_BYTES).collect();
        match tokio::time::timeout(BODY_TIMEOUT, reading).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large),
            Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body ended early")),
            Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        }
    }
}

fn answered(reply: Reply) -> Response<Full<Bytes>> {
    let code =
        StatusCode::from_u16(reply.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media = match reply.verdict {
        Verdict::Malformed => "text/plain; charset=utf-8",
        Verdict::Admitted | Verdict::Refused => "application/json",
    };
    response(code, media, reply.body)
}

fn response(
    code: StatusCode,
    media: &'static str,
    body: String,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    let media = header::HeaderValue::from_static(media);
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}
