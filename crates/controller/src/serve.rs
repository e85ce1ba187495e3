//! The metrics and health ports: HTTP/1 without TLS, GET and HEAD alone.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::instrument::{Answer, Detail};

/// How many connections are served at a time; more wait.
const MOST_CONNECTIONS: usize = 64;
/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers everybody who connects to `listener`, until dropped. `answer` is given the path, and
/// whether the query asks for `verbose`.
pub async fn serve(
    listener: TcpListener,
    answer: impl Fn(&str, Detail) -> Answer + Clone + Send + 'static,
) -> Infallible {
    let places = std::sync::Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let place = places.clone().acquire_owned().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, say: others have to end first.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let answer = answer.clone();
        tokio::spawn(async move {
            let _place = place;
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                let response = respond(&request, &answer);
                async move { Ok::<_, Infallible>(response) }
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }
}

fn respond<B>(
    request: &Request<B>,
    answer: &impl Fn(&str, Detail) -> Answer,
) -> Response<Full<Bytes>> {
    let is_verbose = request
        .uri()
        .query()
        .unwrap_or_default()
        .split('&')
        .any(|pair| pair.split('=').next() == Some("verbose"));
    let detail = if is_verbose {
        Detail::Verbose
    } else {
        Detail::Brief
    };
    let answer = match *request.method() {
        Method::GET | Method::HEAD => answer(request.uri().path(), detail),
        _ => Answer {
            code: 405,
            content: "text/plain; charset=utf-8",
            body: "only GET is answered\n".to_owned(),
        },
    };
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() =
        StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content = header::HeaderValue::from_static(answer.content);
    response.headers_mut().insert(header::CONTENT_TYPE, content);
    response
}
