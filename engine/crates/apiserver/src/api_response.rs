//! The response to a request, before it is encoded in the negotiated media type.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::note::Notes;
use crate::resource::Resource;
use crate::status::Status;
use crate::store::{Change, Object};
use crate::watch::Watch;

/// A complete response.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) code: u16,
    pub(crate) content: Content,
    /// The write whose object is the content, if there was one.
    pub(crate) change: Option<Arc<Change>>,
    /// For `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// The audit annotations of admission.
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The content of a response.
#[derive(Debug)]
pub(crate) enum Content {
    /// One object of a resource.
    Object(Arc<Resource>, Object),
    /// A value that is not an object of a served resource, such as a `Status`.
    Plain(Value),
    /// A list of objects.
    List(List),
    /// A finished document.
    Document { content_type: String, body: Bytes },
    /// A stream of events.
    Watch(Box<Watch>),
}

/// Objects of a resource as of one resourceVersion.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) resource: Arc<Resource>,
    /// 0 if the objects have none.
    pub(crate) version: u64,
    /// The continue token of the rest of the list; empty if there is no rest.
    pub(crate) continue_token: String,
    /// The number of remaining objects, if it is known.
    pub(crate) remaining: Option<usize>,
    pub(crate) items: Vec<Object>,
}

impl List {
    /// The `ListMeta` of the response.
    pub(crate) fn metadata(&self) -> Value {
        let mut all = Map::new();
        if !self.continue_token.is_empty() {
            all.insert("continue".to_owned(), self.continue_token.as_str().into());
        }
        if let Some(remaining) = self.remaining {
            all.insert("remainingItemCount".to_owned(), remaining.into());
        }
        if self.version != 0 {
            let version = self.version.to_string();
            all.insert("resourceVersion".to_owned(), version.into());
        }
        Value::Object(all)
    }
}

impl ApiResponse {
    pub(crate) fn new(code: u16, content: Content) -> Self {
        Self {
            code,
            content,
            change: None,
            warnings: Vec::new(),
            annotations: BTreeMap::new(),
        }
    }

    /// 200 with an object.
    pub(crate) fn object(resource: &Arc<Resource>, object: Object) -> Self {
        Self::new(200, Content::Object(resource.clone(), object))
    }

    /// A response of plain text.
    pub(crate) fn text(code: u16, text: &str) -> Self {
        let content_type = "text/plain; charset=utf-8".to_owned();
        let body = Bytes::copy_from_slice(text.as_bytes());
        Self::new(code, Content::Document { content_type, body })
    }

    /// 404 for a path that is not served.
    pub(crate) fn not_found() -> Self {
        Self::text(404, "404 page not found\n")
    }

    /// A `Status` of success.
    pub(crate) fn success(code: u16, details: Value) -> Self {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        });
        if !details.is_null() {
            status["details"] = details;
        }
        if code != 200 {
            status["code"] = code.into();
        }
        Self::new(code, Content::Plain(status))
    }

    /// The response with the warnings and audit annotations of the admission plugins.
    pub(crate) fn admitted(mut self, notes: Notes) -> Self {
        self.warnings.extend(notes.warnings);
        self.annotations.extend(notes.annotations);
        self
    }
}

impl From<Status> for ApiResponse {
    fn from(status: Status) -> Self {
        let mut response = Self::new(status.code, Content::Plain(status.to_value()));
        response.warnings = status.warnings;
        response
    }
}
