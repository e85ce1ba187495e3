//! What the programs that measure have in common: requests as they are, without a type for each
//! kind.

use std::error::Error;

use http::{Method, Request};
use kube::Client;
use serde_json::Value;

/// Sends one request with a body of this content type, and returns what the server answers.
///
/// # Errors
/// The server refuses it, cannot be reached, or answers something else than JSON.
pub async fn send(
    client: &Client,
    (method, content): (Method, &str),
    path: &str,
    body: &Value,
) -> Result<Value, Box<dyn Error>> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content)
        .body(body.to_string().into_bytes())?;
    Ok(client.request(request).await?)
}
