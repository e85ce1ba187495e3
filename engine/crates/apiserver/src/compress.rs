//! Compression of large responses, as Kubernetes does it: gzip, for clients that accept it.

use std::io::{self, Read as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderMap, HeaderValue, Response};

use crate::body::Body;

/// From how many bytes on a response is compressed (`defaultGzipThresholdBytes` of
/// k8s.io/apiserver).
const THRESHOLD: usize = 128 * 1024;

/// Whether the client accepts gzip: the header has the token without a weight, as a Kubernetes API
/// server reads it.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|it| it.to_str().ok());
    accepted.is_some_and(|all| all.split(',').any(|it| it.trim() == "gzip"))
}

/// The response with a compressed body, if the body is large enough. The events of a watch are sent
/// as they are.
pub(crate) fn compress(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    let body = match body.into_bytes(THRESHOLD) {
        Ok((bytes, busy)) => match gzip(&bytes) {
            Ok(compressed) => {
                head.headers
                    .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                head.headers
                    .append(VARY, HeaderValue::from_static("Accept-Encoding"));
                head.headers.remove(CONTENT_LENGTH);
                Body::bytes(compressed, busy)
            }
            Err(_) => Body::bytes(bytes, busy),
        },
        Err(body) => body,
    };
    Response::from_parts(head, body)
}

/// # Errors
/// None is known: both sides are in memory.
fn gzip(bytes: &[u8]) -> io::Result<Bytes> {
    let mut compressed = Vec::new();
    // The level of Kubernetes: more would cost more than the network saves.
    GzEncoder::new(bytes, Compression::new(1)).read_to_end(&mut compressed)?;
    Ok(compressed.into())
}
