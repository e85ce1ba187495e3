//! Reads responses: bounded, and with messages repeated only if they are Kubernetes' own.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use futures::FutureExt as _;
use http::header::RETRY_AFTER;
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::core::Status;
use kube::core::response::StatusDetails;
use serde::Deserialize;
use thiserror::Error;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::http::MAX_OBJECT_BYTES;

/// How long a response may take, from the request to its last byte.
pub(in crate::http) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A response larger than this, in bytes, is read while few others of that size are.
const LARGE_BYTES: usize = 64 << 10;

/// How many large responses are read at a time.
pub(super) const MAX_CONCURRENT_LARGE: usize = 2;

/// How much of a refusal is read, in bytes: a larger one is not that of an API server.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Why the rest of a response is not read.
#[derive(Debug, Error)]
enum BoundExceeded {
    /// It takes too long.
    #[error("the server did not complete its response within {} s", RESPONSE_TIMEOUT.as_secs())]
    Time,
    /// It is too large.
    #[error("the server's response is larger than {MAX_OBJECT_BYTES} bytes")]
    Bytes,
}

impl From<BoundExceeded> for kube::Error {
    fn from(why: BoundExceeded) -> Self {
        Self::Service(Box::new(why))
    }
}

/// When a response must be complete.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// That of a request that is sent now.
    pub(super) fn of_request() -> Self {
        Self(Instant::now() + RESPONSE_TIMEOUT)
    }

    /// The output of `reading`.
    ///
    /// # Errors
    /// There is none at the deadline.
    pub(super) fn bound<T>(
        self,
        reading: impl Future<Output = kube::Result<T>>,
    ) -> impl Future<Output = kube::Result<T>> {
        // Not async: that would keep `reading` twice, and thousands wait at the same time.
        let late = |_| Err(BoundExceeded::Time.into());
        timeout_at(self.0, reading).map(move |read| read.unwrap_or_else(late))
    }
}

/// A complete response. While a large one is held, other large ones wait.
pub(super) struct CompleteResponse<'a> {
    pub(super) bytes: Vec<u8>,
    _permit: Option<SemaphorePermit<'a>>,
}

/// Reads a response to its end.
///
/// # Errors
/// It is cut off, or is larger than one object may be.
pub(super) async fn read_to_end(
    response: Response<Body>,
    permits: &Semaphore,
) -> kube::Result<CompleteResponse<'_>> {
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    let mut permit = None;
    while let Some(chunk) = next_chunk(&mut body).await? {
        let length = bytes.len() + chunk.len();
        if length > MAX_OBJECT_BYTES {
            return Err(BoundExceeded::Bytes.into());
        }
        if permit.is_none() && length > LARGE_BYTES {
            // The semaphore is never closed.
            permit = permits.acquire().await.ok();
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(CompleteResponse {
        bytes,
        _permit: permit,
    })
}

/// The next chunk of a response; `None` at its end.
///
/// # Errors
/// It is cut off.
pub(super) async fn next_chunk(body: &mut Body) -> kube::Result<Option<bytes::Bytes>> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Whether a watch with this error has ended, rather than failed: servers and proxies close
/// connections without an orderly end.
pub(super) fn is_end_of_watch(error: &kube::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::UnexpectedEof)
            || error.to_string().contains("unexpected EOF during chunk")
        {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The error of a response that refuses a request.
pub(super) async fn read_error(
    response: Response<Body>,
    deadline: Deadline,
) -> kube::Error {
    let code = response.status();
    let after = response.headers().get(RETRY_AFTER);
    let after = after.and_then(|after| after.to_str().ok()?.parse().ok());
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while bytes.len() <= MAX_ERROR_BYTES {
        match deadline.bound(next_chunk(&mut body)).await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => break,
            // The status code has arrived in any case.
            Err(_) => bytes.clear(),
        }
        if bytes.is_empty() {
            break;
        }
    }
    let mut status = status(code, &bytes);
    if let Some(seconds) = after {
        retry_after(&mut status, seconds);
    }
    kube::Error::Api(Box::new(status))
}

/// Puts the header `Retry-After` where a Status has the same: priority and fairness sends only the
/// header.
fn retry_after(status: &mut Status, seconds: u32) {
    let details = status.details.get_or_insert_with(|| StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    });
    if details.retry_after_seconds == 0 {
        details.retry_after_seconds = seconds;
    }
}

/// The refusal of an API server, or only the code: the text of another server is not trusted, and
/// is not repeated.
fn status(code: StatusCode, body: &[u8]) -> Status {
    let status = parse_status(body).unwrap_or_else(|| Status::failure("", ""));
    status.with_code(code.as_u16())
}

/// The Status in a text; `None` if it is not one of Kubernetes, or is too large for one.
pub(super) fn parse_status(text: &[u8]) -> Option<Status> {
    if text.len() > MAX_ERROR_BYTES {
        return None;
    }
    let of = serde_json::from_slice::<TypeMeta>(text).ok()?;
    if of.kind != "Status" || of.api_version != "v1" {
        return None;
    }
    serde_json::from_slice(text).ok()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    kind: String,
    api_version: String,
}

/// The error for a response that cannot be parsed. Its text is not repeated.
pub(super) fn parse_error(error: &serde_json::Error) -> kube::Error {
    kube::Error::Service(Box::new(ParseError {
        line: error.line(),
        column: error.column(),
    }))
}

#[derive(Debug)]
struct ParseError {
    line: usize,
    column: usize,
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column } = self;
        write!(
            formatter,
            "the server's response cannot be parsed (line {line}, column {column})"
        )
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(body: &[u8]) -> (u16, String) {
        let status = status(StatusCode::INTERNAL_SERVER_ERROR, body);
        (status.code, status.message)
    }

    #[test]
    fn a_message_is_repeated_only_if_it_is_that_of_an_api_server() {
        let refusal =
            json!({"kind": "Status", "apiVersion": "v1", "message": "no", "code": 3});
        assert_eq!(
            message(refusal.to_string().as_bytes()),
            (500, "no".to_owned())
        );
        for other in [
            "<html>INTERNAL ADMIN PAGE db_password=hunter2</html>".to_owned(),
            json!({"message": "hunter2"}).to_string(),
            json!({"kind": "Status", "message": "hunter2"}).to_string(),
            json!({"kind": "Secret", "apiVersion": "v1", "message": "hunter2"})
                .to_string(),
            String::new(),
        ] {
            assert_eq!(message(other.as_bytes()), (500, String::new()), "{other}");
        }
    }

    #[tokio::test]
    async fn no_more_of_a_refusal_is_held_than_an_api_server_sends() {
        let long =
            json!({"kind": "Status", "apiVersion": "v1", "message": "x".repeat(1 << 20)});
        let response = Response::builder().status(500);
        let response = response
            .body(Body::from(long.to_string().into_bytes()))
            .unwrap();
        let error = read_error(response, Deadline::of_request()).await;
        let kube::Error::Api(status) = error else {
            panic!("a refusal");
        };
        assert_eq!((status.code, &*status.message), (500, ""));
    }
}
