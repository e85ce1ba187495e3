//! Serving the webhook: TLS, limits, graceful shutdown.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fivespot_api::RESOURCES;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use kubemu_https::{Lifetimes, Limits, Peer, Server};
use tokio::net::TcpListener;

use crate::authorization::{self, Authorization, Subject};
use crate::body::{BodyError, BodyReader, Reservation};
use crate::certificate::Certificate;
use crate::turn::Lane;
use crate::validator::{ReviewResponse, Validator, Verdict};

/// The maximum size of a request body, in bytes: two objects of the 3 MiB that an API server
/// accepts, and the review around them.
pub const MAX_BYTES: usize = 7 << 20;
/// The size of a review that never waits for larger ones, in bytes: an object and its old state, of
/// which each is far larger than those of people.
const SMALL_BYTES: usize = 64 << 10;
/// Time limit for receiving a request body; more than API servers wait for a response.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The limits for API servers. They retry on a new connection if one has ended.
const LIMITS: Limits = Limits {
    connections: 256,
    streams: 64,
    lifetimes: Lifetimes {
        idle: Duration::from_mins(1),
        request: Some(Duration::from_secs(20)),
    },
    shutdown_timeout: Duration::from_secs(10),
};

/// Called for every request that got a response.
pub trait ReviewObserver: Send + Sync {
    /// `verdict` is the decision, `took` its duration without the reading of the request.
    fn reviewed(&self, verdict: Verdict, took: Duration);
}

/// What answers reviews.
#[derive(Clone)]
pub struct Reviewer {
    /// Decides by the rules.
    pub validator: Arc<Validator>,
    /// Who is asked whether a user may write the target of a ScheduledCapacity. Without it, no
    /// ScheduledCapacity is admitted.
    pub targets: Option<Authorization>,
    /// Who is asked whether a user may use the class of a ScheduledMachine. Without it, no machine
    /// is admitted that names one.
    pub classes: Option<Authorization>,
    /// Is told each verdict.
    pub observer: Arc<dyn ReviewObserver>,
}

/// Observes nothing.
impl ReviewObserver for () {
    fn reviewed(&self, _: Verdict, _: Duration) {}
}

/// Serves API servers over TLS until `stop` ends; then waits up to ten seconds for requests
/// in progress.
///
/// While `certificate` is empty, no handshake succeeds.
///
/// # Errors
/// The TLS library rejects its own defaults, which is not known to happen.
pub async fn serve(
    listener: TcpListener,
    certificate: &Certificate,
    reviewer: Reviewer,
    stop: impl Future<Output = ()>,
) -> Result<(), rustls::Error> {
    let handler = Arc::new(Handler {
        reviewer,
        reader: BodyReader::default(),
        small: Lane::default(),
        large: Lane::default(),
    });
    let server = Server {
        listener,
        tls: Arc::new(certificate.tls()?),
        limits: LIMITS,
    };
    let respond = move |request| {
        let handler = handler.clone();
        async move { handler.respond(request).await }
    };
    server.serve(respond, stop).await;
    Ok(())
}

/// Handles requests.
struct Handler {
    reviewer: Reviewer,
    reader: BodyReader,
    /// Small reviews, one at a time.
    small: Lane,
    /// Large reviews, one at a time beside a small one.
    large: Lane,
}

/// Why there is no review.
type Refusal = (StatusCode, &'static str);

const OVERLOADED: Refusal = (
    StatusCode::SERVICE_UNAVAILABLE,
    "too many concurrent requests; retry",
);

impl Handler {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
        let review = async {
            let (body, reservation) = self.body(peer, request).await?;
            self.review(peer, body, &reservation).await
        };
        match review.await {
            Ok(review) => http_response(review),
            Err((code, why)) => {
                let observer = &self.reviewer.observer;
                observer.reviewed(Verdict::Malformed, Duration::ZERO);
                response(code, "text/plain; charset=utf-8", format!("{why}\n"))
            }
        }
    }

    /// Reviews the body when it is the turn of its address, outside the threads that serve
    /// connections.
    async fn review(
        &self,
        peer: IpAddr,
        body: Bytes,
        reservation: &Reservation<'_>,
    ) -> Result<ReviewResponse, Refusal> {
        let lane = if body.len() <= SMALL_BYTES {
            &self.small
        } else {
            &self.large
        };
        let turn = tokio::select! {
            biased;
            () = reservation.evicted() => return Err(OVERLOADED),
            turn = lane.turn(peer) => turn,
        };
        if !reservation.pin() {
            return Err(OVERLOADED);
        }
        let begun = std::time::Instant::now();
        let (reviewer, text) = (self.reviewer.clone(), body.clone());
        let reviewing = tokio::task::spawn_blocking(move || {
            // The turn lasts as long as the work does, also if the client has gone.
            let _turn = turn;
            let reviewed = reviewer.validator.examine(&text);
            if reviewed.unasked.is_none() {
                let verdict = reviewed.response.verdict;
                reviewer.observer.reviewed(verdict, begun.elapsed());
            }
            reviewed
        });
        let failed = (StatusCode::INTERNAL_SERVER_ERROR, "the review failed");
        let reviewed = reviewing.await.map_err(|_| failed)?;
        let Some(subject) = reviewed.unasked else {
            return Ok(reviewed.response);
        };
        // The turn is over: nothing else waits for what the API server is asked.
        let authorization = match subject {
            Subject::Target => self.reviewer.targets.as_ref(),
            Subject::Class | Subject::ClassOfSet => self.reviewer.classes.as_ref(),
        };
        let refusal = authorization::refusal(subject, authorization, body).await;
        let response = refusal.unwrap_or(reviewed.response);
        let observer = &self.reviewer.observer;
        observer.reviewed(response.verdict, begun.elapsed());
        Ok(response)
    }

    /// Reads the body, after checking path, method and media type.
    async fn body(
        &self,
        peer: IpAddr,
        request: Request<Incoming>,
    ) -> Result<(Bytes, Reservation<'_>), Refusal> {
        let path = request.uri().path();
        if !RESOURCES
            .iter()
            .any(|resource| resource.webhook_path == path)
        {
            return Err((StatusCode::NOT_FOUND, "no kind has this path"));
        }
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "only POST is allowed"));
        }
        let media = request.headers().get(header::CONTENT_TYPE);
        let media = media.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim();
        if !media.eq_ignore_ascii_case("application/json") {
            let why = "only application/json is accepted";
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        let too_large = (StatusCode::PAYLOAD_TOO_LARGE, "the body exceeds 7 MiB");
        let least = request.body().size_hint().lower();
        if usize::try_from(least).is_ok_and(|least| least > MAX_BYTES) {
            return Err(too_large);
        }
        let reading = self.reader.read(peer, request.into_body(), MAX_BYTES);
        let Ok(read) = tokio::time::timeout(BODY_TIMEOUT, reading).await else {
            return Err((StatusCode::REQUEST_TIMEOUT, "the body took too long"));
        };
        read.map_err(|error| match error {
            BodyError::TooLarge => too_large,
            BodyError::Broken => (StatusCode::BAD_REQUEST, "the body ended early"),
            BodyError::Evicted => OVERLOADED,
        })
    }
}

fn http_response(review: ReviewResponse) -> Response<Full<Bytes>> {
    let code =
        StatusCode::from_u16(review.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media = match review.verdict {
        Verdict::Malformed => "text/plain; charset=utf-8",
        Verdict::Admitted | Verdict::Refused => "application/json",
    };
    response(code, media, review.body)
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
