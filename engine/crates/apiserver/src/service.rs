//! The server as a tower service, without a socket.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kubemu_clock::Busy;

use crate::api_response::{ApiResponse, Content};
use crate::body::Body;
use crate::call::{Call, Payload};
use crate::content_negotiation::{Form, WatchForm, Writer};
use crate::query::{MAX_TIMEOUT, Query};
use crate::server::Server;
use crate::status::Status;
use crate::user::User;
use crate::warning;

/// Maximum size of a request body, in bytes: 3 MiB, as in kube-apiserver.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A [`Server`] as a tower service of one user, for clients in the same process. A request
/// with a bearer token is authenticated as the token's service account.
///
/// A virtual clock is stopped from the call until the response's body has been read or
/// dropped; see [`Body`] for watches.
#[derive(Clone, Debug)]
pub struct InProcess {
    server: Server,
    user: User,
}

impl InProcess {
    pub(crate) fn new(server: Server, user: User) -> Self {
        Self { server, user }
    }
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future =
        Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let busy = self.server.clock().busy();
        let (server, user) = (self.server.clone(), self.user.clone());
        Box::pin(async move {
            let bearer = bearer_token(request.headers());
            let user = bearer.map_or(Ok(user), |token| server.authenticate(token));
            Ok(respond(&server, user, request, Some(busy)).await)
        })
    }
}

/// The token of an `Authorization: Bearer` header.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Decodes a request, handles it, and encodes the response. `user` is the result of the
/// authentication.
///
/// `busy` is present for callers in this process, for which a virtual clock waits.
pub(crate) async fn respond<B>(
    server: &Server,
    user: Result<User, Status>,
    request: Request<B>,
    busy: Option<Busy>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (head, body) = request.into_parts();
    let user = match check_timeout(server, &head).and(user) {
        Ok(user) => user,
        Err(refused) => return refuse(server, refused),
    };
    let mut encoder = ResponseEncoder {
        server,
        include: String::new(),
        form: Form::default(),
    };
    let other = match server.impersonated(&user, &head) {
        Ok(other) => other,
        Err(refused) => return encoder.encode(refused.into(), busy),
    };
    let mut call = call_without_body(&head, (user, other));
    let form = negotiate(server, &call);
    encoder.form = form.as_ref().map_or_else(|_| Form::default(), |it| *it);
    // Before the body is read: anybody on this machine can send one.
    if let Err(refused) = server.authorize(&call) {
        encoder.include = call.query.include_object;
        return encoder.encode(refused.into(), busy);
    }
    if let Err(refused) = form {
        return encoder.encode(refused.into(), busy);
    }
    call.holds_clock = busy.is_some();
    match read_body(&call, body).await {
        Ok(body) => call.body = Payload::Bytes(body),
        Err(refused) => {
            encoder.form = Form::default();
            return encoder.encode(refused.into(), busy);
        }
    }
    encoder.include.clone_from(&call.query.include_object);
    let reply = server.handle(&call).await.unwrap_or_else(ApiResponse::from);
    encoder.encode(reply, busy)
}

/// The body of a request; that of one that reads is ignored.
///
/// # Errors
/// 413 for more than [`BODY_LIMIT`], 400 for one that breaks off, and 504 for one over a socket that
/// is not complete within the timeout of the request.
async fn read_body<B>(call: &Call, body: B) -> Result<Bytes, Status>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    if matches!(call.method, Method::GET | Method::HEAD) {
        return Ok(Bytes::new());
    }
    let read = Limited::new(body, BODY_LIMIT).collect();
    let read = if call.holds_clock {
        // A caller in this process need not have a runtime with timers.
        read.await
    } else {
        // Only a request without an end may have another text.
        let timeout = call.query.timeout().unwrap_or(MAX_TIMEOUT);
        let read = tokio::time::timeout(timeout, read).await;
        read.map_err(|_| Status::timed_out())?
    };
    match read {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Status::too_large(BODY_LIMIT))
        }
        Err(error) => {
            let message = format!("the body could not be read: {error}");
            Err(Status::bad_request(message))
        }
    }
}

/// Checks the `timeout` parameter of a request that has an end.
///
/// # Errors
/// 400 for a text that is not a duration.
fn check_timeout(server: &Server, head: &http::request::Parts) -> Result<(), Status> {
    let query = Query::parse(head.uri.query().unwrap_or_default());
    match query.timeout() {
        Err(_) if server.is_endless(&head.method, head.uri.path(), query.watch) => Ok(()),
        result => result.map(|_| ()),
    }
}

/// An error response that does not depend on the content of the request.
fn refuse(server: &Server, why: Status) -> Response<Body> {
    let encoder = ResponseEncoder {
        server,
        include: String::new(),
        form: Form::default(),
    };
    encoder.encode(why.into(), None)
}

/// The format of the response.
///
/// # Errors
/// 406 if the server does not have the accepted formats.
fn negotiate(server: &Server, call: &Call) -> Result<Form, Status> {
    // Documents have their own formats and fall back to JSON.
    if !call.path.starts_with("/api/") && !call.path.starts_with("/apis/") {
        return Ok(Form::default());
    }
    let form = Form::negotiate(&call.accept, || server.has_table(&call.path));
    let form = form.map_err(|it| it.to_status(server.is_built_in(&call.path)))?;
    if form.yaml && call.query.watch {
        return Err(Status::not_acceptable(&["application/json"]));
    }
    Ok(form)
}

fn call_without_body(
    head: &http::request::Parts,
    (user, other): (User, Option<User>),
) -> Call {
    let text = |name: HeaderName| header(&head.headers, &name);
    let (user, impersonator) = match other {
        Some(other) => (other, Some(user)),
        None => (user, None),
    };
    Call {
        method: head.method.clone(),
        path: head.uri.path().to_owned(),
        query: Query::parse(head.uri.query().unwrap_or_default()),
        accept: text(ACCEPT),
        content_type: text(CONTENT_TYPE),
        agent: text(USER_AGENT),
        user,
        impersonator,
        body: Payload::Bytes(Bytes::new()),
        holds_clock: false,
    }
}

fn header(headers: &HeaderMap, name: &HeaderName) -> String {
    let all: Vec<&str> = headers
        .get_all(name)
        .iter()
        .filter_map(|it| it.to_str().ok())
        .collect();
    all.join(",")
}

/// Encodes the responses for one client.
struct ResponseEncoder<'a> {
    server: &'a Server,
    include: String,
    form: Form,
}

impl ResponseEncoder<'_> {
    fn encode(&self, reply: ApiResponse, busy: Option<Busy>) -> Response<Body> {
        let as_table =
            !matches!(reply.content, Content::Plain(_) | Content::Document { .. });
        let reply = match self.form.check(&self.include) {
            Err(refused) if as_table => ApiResponse::from(refused),
            _ => reply,
        };
        let clock = self.server.clock();
        let mut headers = HeaderMap::new();
        let kind = match &reply.content {
            Content::Document { content_type, .. } => content_type.as_str(),
            _ => self.form.content_type(),
        };
        put(&mut headers, CONTENT_TYPE, kind);
        // The date header shows the server's clock, even if it differs from the machine's
        // clock.
        let rfc2822 = jiff::fmt::rfc2822::DateTimePrinter::new();
        if let Ok(date) = rfc2822.timestamp_to_rfc9110_string(&clock.now()) {
            put(&mut headers, http::header::DATE, &date);
        }
        for value in warning::headers(&reply.warnings) {
            put(&mut headers, http::header::WARNING, &value);
        }
        put(
            &mut headers,
            http::header::CACHE_CONTROL,
            "no-cache, private",
        );
        let body = match reply.content {
            Content::Watch(watch) => {
                let form = WatchForm::new(self.form, &self.include, clock.clone());
                Body::watch(*watch, form)
            }
            content => {
                if let Content::Plain(status) = &content
                    && let Some(seconds) = status["details"]["retryAfterSeconds"].as_u64()
                {
                    put(
                        &mut headers,
                        http::header::RETRY_AFTER,
                        &seconds.to_string(),
                    );
                }
                let writer = Writer {
                    form: self.form,
                    include: &self.include,
                    clock,
                    change: reply.change.as_deref(),
                };
                Body::bytes(writer.text(&content), busy)
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(reply.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        *response.headers_mut() = headers;
        response
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
        headers.append(name, value);
    }
}
