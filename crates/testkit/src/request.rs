//! Requests as JSON values.

use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::Value;

use crate::path_of;

/// The type of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// An object, or the options of a deletion.
    Json,
    /// A merge patch.
    Merge,
    /// An object for server-side apply.
    Apply,
}

impl Form {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Merge => "application/merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// Sends a request; `null` means no body.
#[expect(clippy::expect_used, reason = "a panic fails the test")]
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    (form, body): (Form, &Value),
) -> Result<Value, kube::Error> {
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", form.content_type())
        .body(body)
        .expect("a request");
    put_through(client, request).await
}

/// The table of the objects at `path`, as `kubectl get` asks for it.
#[expect(clippy::expect_used, reason = "a panic fails the test")]
pub(crate) async fn table(client: &Client, path: &str) -> Result<Value, kube::Error> {
    let request = Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .expect("a request");
    put_through(client, request).await
}

/// Sends a request. A read that the server puts off, as it does for a second after a CRD has
/// changed, is sent again when the server says, at most ten times, as client-go does.
async fn put_through(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<Value, kube::Error> {
    for _ in 0..10 {
        let response = client.request(request.clone()).await;
        match &response {
            Err(kube::Error::Api(status))
                if status.code == 429 && request.method() == Method::GET =>
            {
                let details = status.details.as_ref();
                let seconds = details.map_or(0, |details| details.retry_after_seconds);
                tokio::time::sleep(Duration::from_secs(seconds.into())).await;
            }
            _ => return response,
        }
    }
    client.request(request).await
}

/// Creates or updates an object as `kubectl apply --server-side` does.
pub(crate) async fn apply(client: &Client, object: &Value) -> Result<Value, kube::Error> {
    let path = format!("{}?fieldManager=test&force=true", path_of(object));
    send(client, Method::PATCH, &path, (Form::Apply, object)).await
}
