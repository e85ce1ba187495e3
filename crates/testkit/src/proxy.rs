//! A proxy between an operator and its servers that passes, rejects, loses, delays, or crashes.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::{Body as _, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use jiff::SignedDuration;
use kube::client::Body;
use kubemu_apiserver::AuditEvent;
use kubemu_clock::{Busy, Clock, Sleep};
use serde_json::json;
use tokio::sync::Notify;
use tower::{BoxError, Service, ServiceExt as _};

use crate::traffic::audit_event;

/// A request of an operator, before it reaches a server.
#[derive(Clone, Debug)]
pub struct ProxiedRequest {
    /// The request; its code is 0 because there is no response yet.
    pub event: AuditEvent,
    /// Its body.
    pub body: Bytes,
    /// The query of its URI.
    pub query: String,
}

/// What happens to a request with one response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
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
pub enum WatchStart {
    /// As requested.
    Pass,
    /// It is rejected with this code.
    Refuse(u16),
    /// From another resourceVersion than the requested one.
    From(String),
}

/// What happens to an event of a watch, and to those after it.
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

/// Decides what happens to all traffic between an operator and its servers.
pub trait Proxy: Send + Sync {
    /// What happens to a request other than a watch. The default is to pass it.
    fn request<'a>(
        &'a self,
        request: &'a ProxiedRequest,
    ) -> Pin<Box<dyn Future<Output = RequestOutcome> + Send + 'a>> {
        let _ = request;
        Box::pin(std::future::ready(RequestOutcome::Pass))
    }

    /// Called when a request was served, even if the operator does not get the response. The
    /// default does nothing.
    fn served<'a>(
        &'a self,
        request: &'a ProxiedRequest,
        code: u16,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let _ = (request, code);
        Box::pin(std::future::ready(()))
    }

    /// The delay of the response to a request that was served. The default is zero.
    fn delay(&self, request: &ProxiedRequest) -> SignedDuration {
        let _ = request;
        SignedDuration::ZERO
    }

    /// Whether a delayed response arrives. The default is `true`.
    fn arrives(&self, request: &ProxiedRequest) -> bool {
        let _ = request;
        true
    }

    /// How a watch starts. The default is as requested.
    fn watch_start(&self, request: &ProxiedRequest) -> WatchStart {
        let _ = request;
        WatchStart::Pass
    }

    /// What happens to the next event of a watch, given its line. The default is to deliver it.
    fn event(&self, request: &ProxiedRequest, line: &[u8]) -> Delivery {
        let _ = (request, line);
        Delivery::Pass
    }
}

/// Simulates the crash of the operator behind a proxy. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct CrashSwitch(Arc<CrashState>);

#[derive(Debug, Default)]
struct CrashState {
    is_crashed: AtomicBool,
    crashed: Notify,
}

impl CrashSwitch {
    /// Crashes it: from now on it neither sends requests nor receives responses.
    pub fn crash(&self) {
        self.0.is_crashed.store(true, Ordering::Relaxed);
        self.0.crashed.notify_waiters();
    }

    /// Whether it has crashed.
    pub fn is_crashed(&self) -> bool {
        self.0.is_crashed.load(Ordering::Relaxed)
    }

    /// Completes when it has crashed.
    pub async fn crashed(&self) {
        while !self.is_crashed() {
            let crashed = self.0.crashed.notified();
            if !self.is_crashed() {
                crashed.await;
            }
        }
    }
}

/// The client's side of a proxy.
#[derive(Clone)]
pub(crate) struct ProxyService<S> {
    pub(crate) inner: S,
    pub(crate) user: &'static str,
    pub(crate) clock: Clock,
    pub(crate) proxy: Arc<dyn Proxy>,
    pub(crate) crash_switch: CrashSwitch,
}

impl<S> fmt::Debug for ProxyService<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ProxyService")
            .finish_non_exhaustive()
    }
}

/// The error for a client whose request was served and whose response is lost.
const LOST: &str = "the connection was reset before the answer came";

type ProxyResponse = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl<S, B> Service<Request<Body>> for ProxyService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = ProxyResponse;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<ProxyResponse, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let crash_switch = this.crash_switch.clone();
            if crash_switch.is_crashed() {
                return std::future::pending().await;
            }
            // A response is not kept after the crash, because it would hold a virtual clock.
            let response = Box::pin(this.forward(request)).await;
            if crash_switch.is_crashed() {
                drop(response);
                return std::future::pending().await;
            }
            response
        })
    }
}

impl<S, B> ProxyService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn forward(self, request: Request<Body>) -> Result<ProxyResponse, BoxError> {
        let (parts, body) = request.into_parts();
        let proxied = ProxiedRequest {
            event: AuditEvent {
                at: self.clock.now(),
                ..audit_event(self.user, &parts.method, &parts.uri)
            },
            body: body.collect().await?.to_bytes(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
        };
        let body = Body::from(proxied.body.to_vec());
        let mut request = Request::from_parts(parts, body);
        if proxied.event.verb == "watch" {
            match self.proxy.watch_start(&proxied) {
                WatchStart::Pass => {}
                WatchStart::Refuse(code) => return refusal(code, None),
                WatchStart::From(version) => {
                    *request.uri_mut() = at_version(request.uri(), &version)?;
                }
            }
            return self.watch(proxied, request).await;
        }
        let (proxy, crash_switch) = (self.proxy.clone(), self.crash_switch.clone());
        match proxy.request(&proxied).await {
            RequestOutcome::Pass => self.serve(&proxied, request).await,
            RequestOutcome::Refuse(code, seconds) => refusal(code, seconds),
            RequestOutcome::Reset => Err("the connection was reset".into()),
            RequestOutcome::Lose => {
                drop(self.serve(&proxied, request).await);
                Err(LOST.into())
            }
            RequestOutcome::CrashBefore => {
                crash_switch.crash();
                refusal(503, None)
            }
            RequestOutcome::CrashAfter => {
                let response = self.serve(&proxied, request).await;
                crash_switch.crash();
                response
            }
        }
    }

    async fn serve(
        self,
        proxied: &ProxiedRequest,
        request: Request<Body>,
    ) -> Result<ProxyResponse, BoxError> {
        let response = self.inner.oneshot(request).await.map_err(Into::into)?;
        self.proxy.served(proxied, response.status().as_u16()).await;
        let delay = self.proxy.delay(proxied);
        if delay.is_zero() {
            return Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()));
        }
        // The body of the embedded server's response holds a virtual clock while it exists.
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(Into::into)?.to_bytes();
        self.clock.sleep(delay).await;
        if !self.proxy.arrives(proxied) {
            return Err(LOST.into());
        }
        let body = Full::from(body).map_err(|never| match never {});
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }

    async fn watch(
        self,
        proxied: ProxiedRequest,
        request: Request<Body>,
    ) -> Result<ProxyResponse, BoxError> {
        let response = self.inner.oneshot(request).await.map_err(Into::into)?;
        self.proxy
            .served(&proxied, response.status().as_u16())
            .await;
        let events = |body: B| WatchBody {
            inner: Some(body.map_err(Into::into).boxed_unsync()),
            request: proxied,
            clock: self.clock,
            proxy: self.proxy,
            crash_switch: self.crash_switch,
            waiting: VecDeque::new(),
            due: None,
            busy: None,
        };
        Ok(response.map(|body| events(body).boxed_unsync()))
    }
}

/// The URI of a watch with another resourceVersion.
fn at_version(uri: &Uri, version: &str) -> Result<Uri, BoxError> {
    let words = uri.query().unwrap_or_default().split('&');
    let mut query: Vec<&str> = words
        .filter(|word| !word.starts_with("resourceVersion="))
        .collect();
    let version = format!("resourceVersion={version}");
    query.push(&version);
    Ok(format!("{}?{}", uri.path(), query.join("&")).parse()?)
}

fn refusal(code: u16, seconds: Option<u32>) -> Result<ProxyResponse, BoxError> {
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
struct WatchBody {
    inner: Option<UnsyncBoxBody<Bytes, BoxError>>,
    request: ProxiedRequest,
    clock: Clock,
    proxy: Arc<dyn Proxy>,
    crash_switch: CrashSwitch,
    /// Delayed events; the first one is delivered when `due` completes.
    waiting: VecDeque<(SignedDuration, Bytes)>,
    due: Option<Sleep>,
    /// The last delivered event is being processed.
    busy: Option<Busy>,
}

type PolledFrame = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

impl WatchBody {
    /// The server's next event; pending if there is none, or if it is delayed.
    fn poll_inner(&mut self, cx: &mut Context<'_>) -> PolledFrame {
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
            match self.proxy.event(&self.request, &line) {
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

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = &mut *self;
        this.busy = None;
        if this.crash_switch.is_crashed() {
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
            Poll::Ready(Some(frame)) => Poll::Ready(Some(frame)),
            _ => Poll::Pending,
        }
    }
}
