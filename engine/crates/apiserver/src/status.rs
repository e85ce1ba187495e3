//! Errors as Kubernetes' `Status` objects.

use std::fmt;

use indexmap::IndexSet;
use kubemu_admission::FieldError;
use serde_json::{Map, Value, json};

use crate::resource::{GroupResource, Resource};

/// The reason why a request failed, sent as a `v1` `Status` object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// The machine-readable reason.
    pub reason: Reason,
    /// The human-readable message.
    pub message: String,
    /// Details of the error.
    pub details: Option<Box<Details>>,
    /// For an expired list: the token to continue with the current state.
    pub continue_token: Option<Box<str>>,
    /// The `Warning` headers of the response.
    pub warnings: Vec<String>,
}

/// The `details` of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Name of the object; empty for none.
    pub name: String,
    /// Its group; empty for none.
    pub group: String,
    /// Its resource or kind, whichever Kubernetes sets; empty for none.
    pub kind: String,
    /// Its uid; empty for none.
    pub uid: String,
    /// One entry for each error.
    pub causes: Vec<Cause>,
    /// Seconds to wait before a retry; 0 for none.
    pub retry_after_seconds: u32,
}

/// One error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The type of the error, such as `FieldValueInvalid`.
    pub reason: String,
    /// The error message.
    pub message: String,
    /// Path of the field; empty for none.
    pub field: String,
}

/// The reasons of Kubernetes' API (k8s.io/apimachinery/pkg/apis/meta/v1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names of Kubernetes")]
pub enum Reason {
    Unknown,
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    Invalid,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    ServiceUnavailable,
}

impl Reason {
    /// The reason in the `Status` object; empty for an unknown reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::Expired => "Expired",
            Self::Invalid => "Invalid",
            Self::Timeout => "Timeout",
            Self::TooManyRequests => "TooManyRequests",
            Self::BadRequest => "BadRequest",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::InternalError => "InternalError",
            Self::ServiceUnavailable => "ServiceUnavailable",
        }
    }

    pub(crate) fn parse(word: &str) -> Self {
        const ALL: [Reason; 17] = [
            Reason::Unauthorized,
            Reason::Forbidden,
            Reason::NotFound,
            Reason::AlreadyExists,
            Reason::Conflict,
            Reason::Gone,
            Reason::Expired,
            Reason::Invalid,
            Reason::Timeout,
            Reason::TooManyRequests,
            Reason::BadRequest,
            Reason::MethodNotAllowed,
            Reason::NotAcceptable,
            Reason::RequestEntityTooLarge,
            Reason::UnsupportedMediaType,
            Reason::InternalError,
            Reason::ServiceUnavailable,
        ];
        ALL.into_iter()
            .find(|it| it.as_str() == word)
            .unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Status {
    /// An error without details.
    pub fn new(code: u16, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            warnings: Vec::new(),
        }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: resource.group.clone(),
            kind: resource.plural.clone(),
            ..Details::default()
        }));
        self
    }

    /// Sets the details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400: the request is invalid.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, Reason::BadRequest, message)
    }

    /// 404: the object does not exist.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(404, Reason::NotFound, message).about(resource, name)
    }

    /// 404: nothing is served at that path, in the form for a path that looks like a resource.
    pub fn no_such_resource() -> Self {
        Self::new(
            404,
            Reason::NotFound,
            "the server could not find the requested resource",
        )
        .with_details(Details::default())
    }

    /// 409: an object with the name exists.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, Reason::AlreadyExists, message).about(resource, name)
    }

    /// 409: the object is not in the state that the request requires; `why` follows a colon.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let what = resource.qualified();
        let message =
            format!("Operation cannot be fulfilled on {what} \"{name}\": {why}");
        Self::new(409, Reason::Conflict, message).about(resource, name)
    }

    /// 409 as [`Status::conflict`], with the kind and the group in which it is stored in place of the
    /// resource: Kubernetes returns this form if the storage checks preconditions.
    pub fn conflict_of_kind(resource: &Resource, name: &str, why: &str) -> Self {
        let group = &resource.storage.group;
        let kind = GroupResource::new(group, &resource.kind);
        let message =
            format!("Operation cannot be fulfilled on {kind} \"{name}\": {why}");
        let mut conflict =
            Self::new(409, Reason::Conflict, message).about(resource, name);
        if let Some(details) = &mut conflict.details {
            details.kind.clone_from(&resource.kind);
            details.group.clone_from(group);
        }
        conflict
    }

    /// 409: the object was modified concurrently.
    pub fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest \
                   version and try again";
        Self::conflict(resource, name, why)
    }

    /// 403: forbidden; `why` follows a colon.
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let what = resource.qualified();
        let message = if name.is_empty() {
            format!("{what} is forbidden: {why}")
        } else {
            format!("{what} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, Reason::Forbidden, message).about(resource, name)
    }

    /// 422: the object is invalid; one cause for each error.
    ///
    /// The message joins the causes like Kubernetes' aggregate: more than one in brackets,
    /// duplicates left out.
    pub fn invalid(resource: &Resource, name: &str, causes: Vec<Cause>) -> Self {
        let texts: IndexSet<String> = causes
            .iter()
            .map(|cause| match cause.field.as_str() {
                "" => cause.message.clone(),
                field => format!("{field}: {}", cause.message),
            })
            .collect();
        let joined = texts.iter().map(String::as_str).collect::<Vec<_>>();
        let joined = match joined.as_slice() {
            [only] => (*only).to_owned(),
            [] => String::new(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!(
            "{} \"{name}\" is invalid: {joined}",
            resource.qualified_kind()
        );
        Self::new(422, Reason::Invalid, message).with_details(Details {
            name: name.to_owned(),
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            causes,
            ..Details::default()
        })
    }

    /// 405: the verb is not supported here.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, Reason::MethodNotAllowed, message).with_details(Details::default())
    }

    /// 410: `message` contains the expired version.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, Reason::Expired, message)
    }

    /// 410 with the message for a watch or a list from a compacted version.
    pub fn too_old(requested: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {requested} ({oldest})"))
    }

    /// 415: unsupported media type of the body.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let list = accepted.join(", ");
        let message = format!(
            "the body of the request was in an unknown format - accepted media types \
             include: {list}"
        );
        Self::new(415, Reason::UnsupportedMediaType, message)
    }

    /// 406: the client accepts none of the offered media types.
    pub fn not_acceptable(offered: &[&str]) -> Self {
        let list = offered.join(", ");
        let message = format!("only the following media types are accepted: {list}");
        Self::new(406, Reason::NotAcceptable, message)
    }

    /// 413: the body exceeds the limit.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, Reason::RequestEntityTooLarge, message)
    }

    /// 504: the request took longer than it may.
    pub(crate) fn timed_out() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        Self::new(504, Reason::Timeout, message)
    }

    /// 401: missing or invalid credentials.
    pub fn unauthorized() -> Self {
        Self::new(401, Reason::Unauthorized, "Unauthorized")
    }

    /// 500: `why` follows a colon.
    pub fn internal(why: impl fmt::Display) -> Self {
        let cause = Cause {
            message: why.to_string(),
            ..Cause::default()
        };
        Self::new(
            500,
            Reason::InternalError,
            format!("Internal error occurred: {why}"),
        )
        .with_details(Details {
            causes: vec![cause],
            ..Details::default()
        })
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        });
        if let Some(continue_token) = &self.continue_token {
            status["metadata"]["continue"] = (&**continue_token).into();
        }
        if self.reason != Reason::Unknown {
            status["reason"] = self.reason.as_str().into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status["code"] = self.code.into();
        status
    }

    /// Parses a `Status` object; `code` is used if the object has none.
    pub fn from_value(value: &Value, code: u16) -> Self {
        let text = |key: &str| value[key].as_str().unwrap_or_default();
        Self {
            code: value["code"]
                .as_u64()
                .and_then(|it| u16::try_from(it).ok())
                .unwrap_or(code),
            reason: Reason::parse(text("reason")),
            message: text("message").to_owned(),
            details: value
                .get("details")
                .map(|it| Box::new(Details::from_value(it))),
            continue_token: value["metadata"]["continue"].as_str().map(Box::from),
            warnings: Vec::new(),
        }
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut all = Map::new();
        let texts = [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ];
        for (key, text) in texts {
            if !text.is_empty() {
                all.insert(key.to_owned(), text.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_value).collect();
            all.insert("causes".to_owned(), Value::Array(causes));
        }
        if self.retry_after_seconds > 0 {
            all.insert(
                "retryAfterSeconds".to_owned(),
                self.retry_after_seconds.into(),
            );
        }
        Value::Object(all)
    }

    fn from_value(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let causes = value["causes"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        Self {
            name: text("name"),
            group: text("group"),
            kind: text("kind"),
            uid: text("uid"),
            causes: causes.iter().map(Cause::from_value).collect(),
            retry_after_seconds: value["retryAfterSeconds"]
                .as_u64()
                .and_then(|it| u32::try_from(it).ok())
                .unwrap_or_default(),
        }
    }
}

impl Cause {
    /// Combines reason, field and message.
    pub fn new(
        reason: &str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
            field: field.into(),
        }
    }

    fn to_value(&self) -> Value {
        let mut all = Map::new();
        let texts = [
            ("reason", &self.reason),
            ("message", &self.message),
            ("field", &self.field),
        ];
        for (key, text) in texts {
            if !text.is_empty() {
                all.insert(key.to_owned(), text.as_str().into());
            }
        }
        Value::Object(all)
    }

    fn from_value(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Self {
            reason: text("reason"),
            message: text("message"),
            field: text("field"),
        }
    }
}

impl From<kubemu_admission::field::Cause> for Cause {
    fn from(cause: kubemu_admission::field::Cause) -> Self {
        Self {
            reason: cause.reason.unwrap_or_default(),
            message: cause.message,
            field: cause.field.unwrap_or_default(),
        }
    }
}

/// 422 with these errors.
pub(crate) fn invalid(resource: &Resource, name: &str, errors: &[FieldError]) -> Status {
    let causes = errors.iter().map(|it| Cause::from(it.cause()));
    Status::invalid(resource, name, causes.collect())
}
