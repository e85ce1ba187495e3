//! The metrics and health ports: only GET and HEAD. Remote clients get no details.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use tokio::net::TcpListener;

use crate::Plain;

/// The response to a probe or to a scrape of the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResponse {
    /// The HTTP status.
    pub code: u16,
    /// The media type.
    pub content: &'static str,
    /// The body.
    pub body: String,
}

/// How detailed a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Only whether the replica is ready.
    Brief,
    /// Every check with its problem, including names of objects and messages of servers.
    Verbose,
}

impl ProbeResponse {
    /// A response of plain text.
    pub fn text(code: u16, body: impl Into<String>) -> Self {
        Self {
            code,
            content: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    /// Metrics in the OpenMetrics text format.
    pub fn metrics(body: String) -> Self {
        Self {
            code: 200,
            content: "application/openmetrics-text; version=1.0.0; charset=utf-8",
            body,
        }
    }

    /// The response to an unknown path.
    pub fn not_found() -> Self {
        Self::text(404, "not found\n")
    }
}

/// Serves every connection to `listener`, until dropped. `answer` receives the path and the level
/// of detail: verbose only for a client on this host that requests `verbose`.
pub async fn serve_probes(
    listener: TcpListener,
    answer: impl Fn(&str, Detail) -> ProbeResponse + Clone + Send + 'static,
) -> Infallible {
    let respond =
        move |request: &Request<_>, peer: SocketAddr| respond(request, peer, &answer);
    Plain { listener }.serve(respond).await
}

fn respond<B>(
    request: &Request<B>,
    peer: SocketAddr,
    answer: &impl Fn(&str, Detail) -> ProbeResponse,
) -> Response<Full<Bytes>> {
    let query = request.uri().query().unwrap_or_default();
    let mut keys = query.split('&').map(|pair| pair.split('=').next());
    let is_verbose = keys.any(|key| key == Some("verbose"));
    let detail = if is_verbose && peer.ip().to_canonical().is_loopback() {
        Detail::Verbose
    } else {
        Detail::Brief
    };
    let answer = match *request.method() {
        Method::GET | Method::HEAD => answer(request.uri().path(), detail),
        _ => ProbeResponse::text(405, "only GET and HEAD are allowed\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() =
        StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content = header::HeaderValue::from_static(answer.content);
    response.headers_mut().insert(header::CONTENT_TYPE, content);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_returned_only_to_loopback_clients() {
        let asked = |uri: &str, peer: &str| {
            let request = Request::get(uri).body(()).unwrap();
            let peer = format!("{peer}:50000").parse().unwrap();
            let answer = |_: &str, detail| {
                let code = if detail == Detail::Verbose { 200 } else { 204 };
                ProbeResponse::text(code, "")
            };
            respond(&request, peer, &answer).status().as_u16()
        };
        for (uri, peer, is_detailed) in [
            ("/readyz?verbose", "127.0.0.1", true),
            ("/readyz?a=b&verbose=true", "[::1]", true),
            ("/readyz?verbose", "[::ffff:127.0.0.1]", true),
            ("/readyz", "127.0.0.1", false),
            ("/readyz?verbose", "10.0.0.1", false),
            ("/readyz?verbose", "[::ffff:10.0.0.1]", false),
        ] {
            assert_eq!(asked(uri, peer) == 200, is_detailed, "{uri} {peer}");
        }
    }
}
