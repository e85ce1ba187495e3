//! One request, before it is routed.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::query::Query;
use crate::user::User;

/// A request as the verbs use it, from the HTTP service or the in-process client.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// The path, still encoded.
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) accept: String,
    pub(crate) content_type: String,
    /// The `User-Agent` header.
    pub(crate) agent: String,
    pub(crate) user: User,
    /// The user that impersonates `user`, if any.
    pub(crate) impersonator: Option<User>,
    pub(crate) body: Payload,
    /// Whether a virtual clock has to wait for this caller: it waits for callers in the
    /// process and not for those behind a socket.
    pub(crate) holds_clock: bool,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// As received over the network; may be empty.
    Bytes(Bytes),
    /// Passed within the process.
    Json(Value),
}

impl Call {
    /// The field manager of this request: the `fieldManager` parameter, or the first word of
    /// the user agent.
    pub(crate) fn manager(&self) -> String {
        if !self.query.field_manager.is_empty() {
            return self.query.field_manager.clone();
        }
        let word = self.agent.split('/').next().unwrap_or_default();
        let name: String = word
            .chars()
            .filter(|it| !it.is_control())
            .take(128)
            .collect();
        if name.is_empty() {
            "unknown".to_owned()
        } else {
            name
        }
    }

    /// The media type of the body without its parameters; empty if not specified.
    pub(crate) fn media_type(&self) -> String {
        let word = self.content_type.split(';').next().unwrap_or_default();
        word.trim().to_ascii_lowercase()
    }
}
