//! One request, read but not yet understood.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::query::Query;
use crate::user::User;

/// A request as the verbs see it, whichever way it came.
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
    /// Who has asked to be taken for `user`, if that is somebody else.
    pub(crate) impersonator: Option<User>,
    pub(crate) body: Payload,
    /// Whether a virtual clock has to wait for this caller: it does for those in the
    /// process and not for those behind a socket.
    pub(crate) holds_clock: bool,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    /// As it came over a wire; may be empty.
    Bytes(Bytes),
    /// Handed over within the process.
    Json(Value),
}

impl Call {
    /// The name under which fields written by this request are recorded: the
    /// `fieldManager` parameter, or the first word of the user agent.
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

    /// The media type of the body without its parameters; empty when not said.
    pub(crate) fn media_type(&self) -> String {
        let word = self.content_type.split(';').next().unwrap_or_default();
        word.trim().to_ascii_lowercase()
    }
}
