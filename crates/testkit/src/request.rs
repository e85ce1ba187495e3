//! Requests as JSON values.

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
    client.request(request).await
}

/// Creates or updates an object as `kubectl apply --server-side` does.
pub(crate) async fn apply(client: &Client, object: &Value) -> Result<Value, kube::Error> {
    let path = format!("{}?fieldManager=test&force=true", path_of(object));
    send(client, Method::PATCH, &path, (Form::Apply, object)).await
}
