//! A proxy between an operator and its servers that passes, rejects, loses, delays, or crashes.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use fivespot_apiserver::AuditEvent;
use fivespot_clock::{Busy, Clock, Sleep};
use http::{Request, Response, Uri};
use http_body::{Body as _, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use jiff::SignedDuration;
use kube::client::Body;
use serde_json::json;
use tokio::sync::Notify;
use tower::{BoxError, Service, ServiceExt as _};

use crate::wire::asked;

/// A request of an operator, before it reaches a server.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The request; its code is 0 because there is no response yet.
    pub event: AuditEvent,
    /// Its body.
    pub body: Bytes,
    /// The query of its URI.
    pub query: String,
}

/// The fate of a request with one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is served.
    Pass,
    /// It is not served. The response has this code and, if given, `Retry-After` in seconds.
    Refuse(u16, Option<u32>),
    /// It is not served, and the connection breaks.
    Reset,
    /// It is served, and the connection breaks before the response arrives.
    Lose,
    /// The operator crashes before it is served.
    CrashBefore,
    /// The operator crashes after it was served, and does not get the response.
    CrashAfter,
}

/// How a watch starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// As requested.
    Pass,
    /// It is rejected with this code.
    Refuse(u16),
    /// From another resourceVersion than the requested one.
    From(String),
}

/// The fate of an event of a watch, and of those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is delivered.
    Pass,
    /// The watch ends instead.
    End,
    /// The connection breaks instead.
    Break,
    /// It is delivered later by this time on the operator's clock. Later events wait.
    Late(SignedDuration),
    /// It is delivered twice.
    Twice,
}

/// Decides the fate of all traffic between an operator and its servers.
pub trait Proxy: Send + Sync {
    /// The fate of a request other than a watch. The default is to pass it.
    fn request<'a>(
        &'a self,
        asked: &'a Asked,
    ) -> Pin<Box<dyn Future<Output = Fate> + Send + 'a>> {
        let _ = asked;
        Box::pin(std::future::ready(Fate::Pass))
    }

    /// Called when a request was served, even if the operator does not get the response. The
    /// default does nothing.
    fn served<'a>(
        &'a self,
        asked: &'a Asked,
        code: u16,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let _ = (asked, code);
        Box::pin(std::future::ready(()))
    }

    /// The delay of the response to a request that was served. The default is zero.
    fn delay(&self, asked: &Asked) -> SignedDuration {
        let _ = asked;
        SignedDuration::ZERO
    }

    /// Whether a delayed response arrives. The default is `true`.
    fn arrives(&self, asked: &Asked) -> bool {
        let _ = asked;
        true
    }

    /// How a watch starts. The default is as requested.
    fn opening(&self, asked: &Asked) -> Opening {
        let _ = asked;
        Opening::Pass
    }

    /// The fate of the next event of a watch, given its line. The default is to deliver it.
    fn event(&self, asked: &Asked, line: &[u8]) -> Delivery {
        let _ = (asked, line);
        Delivery::Pass
    }
}

/// Whether the operator behind a proxy is running. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Life(Arc<Pulse>);

#[derive(Debug, Default)]
struct Pulse {
    is_over: AtomicBool,
    ended: Notify,
}

impl Life {
    /// Ends it: from now on it neither sends requests nor receives responses.
    pub fn end(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
        self.0.ended.notify_waiters();
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }

    /// Completes when it is over.
    pub async fn ended(&self) {
        while !self.is_over() {
            let ended = self.0.ended.notified();
            if !self.is_over() {
                ended.await;
            }
        }
    }
}

/// The client's side of a proxy.
#[derive(Clone)]
pub(crate) struct Proxied<S> {
    pub(crate) inner: S,
    pub(crate) user: &'static str,
    pub(crate) clock: Clock,
    pub(crate) proxy: Arc<dyn Proxy>,
    pub(crate) life: Life,
}

impl<S> fmt::Debug for Proxied<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Proxied").finish_non_exhaustive()
    }
}

/// The error for a client whose request was served and whose response is lost.
const LOST: &str = "the connection was reset before the answer came";

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl<S, B> Service<Request<Body>> for Proxied<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let life = this.life.clone();
            if life.is_over() {
                return std::future::pending().await;
            }
            // A response is not kept after the end, because it would hold a virtual clock.
            let answer = Box::pin(this.carry(request)).await;
            if life.is_over() {
                drop(answer);
                return std::future::pending().await;
            }
            answer
        })
    }
}

impl<S, B> Proxied<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn carry(self, request: Request<Body>) -> Result<Answer, BoxError> {
        let (parts, body) = request.into_parts();
        let asked = Asked {
            event: AuditEvent {
                at: self.clock.now(),
                ..asked(self.user, &parts.method, &parts.uri)
            },
            body: body.collect().await?.to_bytes(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
        };
        let body = Body::from(asked.body.to_vec());
        let mut request = Request::from_parts(parts, body);
        if asked.event.verb == "watch" {
            match self.proxy.opening(&asked) {
                Opening::Pass => {}
                Opening::Refuse(code) => return refusal(code, None),
                Opening::From(version) => {
                    *request.uri_mut() = at_version(request.uri(), &version)?;
                }
            }
            return self.watch(asked, request).await;
        }
        let (proxy, life) = (self.proxy.clone(), self.life.clone());
        match proxy.request(&asked).await {
            Fate::Pass => self.serve(&asked, request).await,
            Fate::Refuse(code, seconds) => refusal(code, seconds),
            Fate::Reset => Err("the connection was reset".into()),
            Fate::Lose => {
                drop(self.serve(&asked, request).await);
                Err(LOST.into())
            }
            Fate::CrashBefore => {
                life.end();
                refusal(503, None)
            }
            Fate::CrashAfter => {
                let answer = self.serve(&asked, request).await;
                life.end();
                answer
            }
        }
    }

    async fn serve(
        self,
        asked: &Asked,
        request: Request<Body>,
    ) -> Result<Answer, BoxError> {
        let answer = self.inner.oneshot(request).await.map_err(Into::into)?;
        self.proxy.served(asked, answer.status().as_u16()).await;
        let delay = self.proxy.delay(asked);
        if delay.is_zero() {
            return Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()));
        }
        // The body of the embedded server's response holds a virtual clock while it exists.
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.map_err(Into::into)?.to_bytes();
        self.clock.sleep(delay).await;
        if !self.proxy.arrives(asked) {
            return Err(LOST.into());
        }
        let body = Full::from(body).map_err(|never| match never {});
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }

    async fn watch(
        self,
        asked: Asked,
        request: Request<Body>,
    ) -> Result<Answer, BoxError> {
        let answer = self.inner.oneshot(request).await.map_err(Into::into)?;
        self.proxy.served(&asked, answer.status().as_u16()).await;
        let events = |body: B| Events {
            inner: Some(body.map_err(Into::into).boxed_unsync()),
            asked,
            clock: self.clock,
            proxy: self.proxy,
            life: self.life,
            waiting: VecDeque::new(),
            due: None,
            busy: None,
        };
        Ok(answer.map(|body| events(body).boxed_unsync()))
    }
}

/// The URI of a watch with another resourceVersion.
fn at_version(uri: &Uri, version: &str) -> Result<Uri, BoxError> {
    let kept = uri.query().unwrap_or_default().split('&');
    let mut query: Vec<&str> = kept
        .filter(|word| !word.starts_with("resourceVersion="))
        .collect();
    let version = format!("resourceVersion={version}");
    query.push(&version);
    Ok(format!("{}?{}", uri.path(), query.join("&")).parse()?)
}

fn refusal(code: u16, seconds: Option<u32>) -> Result<Answer, BoxError> {
    let (reason, message) = match code {
        409 => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version",
        ),
        410 => ("Expired", "too old resource version"),
        429 => ("TooManyRequests", "too many requests, please try again"),
        503 => ("ServiceUnavailable", "the server is currently unable"),
        504 => ("Timeout", "the request did not complete in time"),
        _ => ("InternalError", "an error on the server"),
    };
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    let mut response = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    if let Some(seconds) = seconds {
        status["details"] = json!({ "retryAfterSeconds": seconds });
        response = response.header("retry-after", seconds);
    }
    let body = Full::from(status.to_string()).map_err(|never| match never {});
    Ok(response.body(body.boxed_unsync())?)
}

/// The body of a watch, whose events the proxy may delay.
struct Events {
    inner: Option<UnsyncBoxBody<Bytes, BoxError>>,
    asked: Asked,
    clock: Clock,
    proxy: Arc<dyn Proxy>,
    life: Life,
    /// Delayed events; the first one is delivered when `due` completes.
    waiting: VecDeque<(SignedDuration, Bytes)>,
    due: Option<Sleep>,
    /// The last delivered event is being processed.
    busy: Option<Busy>,
}

type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

impl Events {
    /// The server's next event; pending if there is none, or if it is delayed.
    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Polled {
        while let Some(inner) = &mut self.inner {
            let line = match Pin::new(inner).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(line) => line,
                    Err(_) => continue,
                },
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    self.inner = None;
                    break;
                }
                Poll::Pending => return Poll::Pending,
            };
            match self.proxy.event(&self.asked, &line) {
                Delivery::End => self.inner = None,
                Delivery::Break => {
                    self.inner = None;
                    return Poll::Ready(Some(Err("the connection was reset".into())));
                }
                Delivery::Late(span) => self.waiting.push_back((span, line)),
                Delivery::Twice if self.waiting.is_empty() => {
                    self.waiting.push_back((SignedDuration::ZERO, line.clone()));
                    return Poll::Ready(Some(Ok(Frame::data(line))));
                }
                _ if self.waiting.is_empty() => {
                    return Poll::Ready(Some(Ok(Frame::data(line))));
                }
                _ => self.waiting.push_back((SignedDuration::ZERO, line)),
            }
        }
        Poll::Ready(None)
    }

    /// The first delayed event, when it is due.
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let Some((span, _)) = self.waiting.front() else {
            return Poll::Pending;
        };
        let due = self.due.get_or_insert_with(|| self.clock.sleep(*span));
        match Pin::new(due).poll(cx) {
            Poll::Ready(()) => {
                self.due = None;
                self.busy = Some(self.clock.busy());
                let line = self.waiting.pop_front();
                Poll::Ready(line.map(|(_, line)| line).unwrap_or_default())
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        this.busy = None;
        if this.life.is_over() {
            this.inner = None;
            return Poll::Pending;
        }
        if this.waiting.is_empty() {
            match this.poll_inner(cx) {
                Poll::Ready(None) | Poll::Pending if !this.waiting.is_empty() => {}
                polled => return polled,
            }
        }
        if let Poll::Ready(line) = this.poll_waiting(cx) {
            return Poll::Ready(Some(Ok(Frame::data(line))));
        }
        // Events that arrive meanwhile are queued after it.
        match this.poll_inner(cx) {
            Poll::Ready(Some(answer)) => Poll::Ready(Some(answer)),
            _ => Poll::Pending,
        }
    }
}
