//! The webhook behind a socket: TLS, limits, an orderly end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fivespot_https::{Lifetimes, Limits, Server};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use tokio::net::TcpListener;

use crate::certificate::Certificate;
use crate::intake::{Held, Intake, Refusal};
use crate::judge::{Judge, Reply, Verdict};

/// Where the webhook configuration sends questions.
pub const PATH: &str = fivespot_api::name::WEBHOOK_PATH;
/// Most bytes of a question: two objects of the 3 MiB that an API server takes, and what is
/// around them.
pub const MOST_BYTES: usize = 7 << 20;
/// How long a question may take to arrive; more than API servers wait for an answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How much API servers may take. They ask again on a new connection where one has ended.
const LIMITS: Limits = Limits {
    connections: 256,
    streams: 64,
    lifetimes: Lifetimes {
        idle: Duration::from_mins(1),
        request: Some(Duration::from_secs(20)),
    },
    farewell: Duration::from_secs(10),
};

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
    let (judge, observer) = judging;
    let desk = Arc::new(Desk {
        judge,
        observer,
        intake: Intake::default(),
    });
    let server = Server {
        listener,
        tls: Arc::new(certificate.tls()?),
        limits: LIMITS,
    };
    let respond = move |request| {
        let desk = desk.clone();
        async move { desk.respond(request).await }
    };
    server.serve(respond, stop).await;
    Ok(())
}

/// Where questions are taken.
struct Desk {
    judge: Arc<Judge>,
    observer: Arc<dyn Observe>,
    intake: Intake,
}

impl Desk {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match self.question(request).await {
            Ok((body, _held)) => {
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
    ) -> Result<(Bytes, Held<'_>), (StatusCode, &'static str)> {
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
        let reading = self.intake.read(request.into_body(), MOST_BYTES);
        let Ok(read) = tokio::time::timeout(BODY_TIMEOUT, reading).await else {
            return Err((StatusCode::REQUEST_TIMEOUT, "the body took too long"));
        };
        read.map_err(|refusal| match refusal {
            Refusal::TooLarge => too_large,
            Refusal::Broken => (StatusCode::BAD_REQUEST, "the body ended early"),
            Refusal::Crowded => {
                let why = "other questions took the place of this one; ask again";
                (StatusCode::SERVICE_UNAVAILABLE, why)
            }
        })
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
