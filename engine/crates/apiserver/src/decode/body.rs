//! Decodes a request body to JSON, from JSON, YAML or protobuf.

use serde_json::Value;

use crate::call::{Call, Payload};
use crate::json_type::go_kind;
use crate::meta;
use crate::protobuf;
use crate::status::Status;
use crate::strict::{self, Duplicate};
use crate::syntax;

/// Media types of whole objects.
const OBJECTS: [&str; 3] = ["application/json", "application/yaml", protobuf::MEDIA];

/// A decoded body.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) value: Value,
    /// The strict decoding errors for duplicate keys.
    pub(crate) repeated: Repeated,
}

/// The strict decoding errors for duplicate keys.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    /// Those that come before all errors for unknown fields.
    pub(super) first: Vec<String>,
    /// Those of keys whose place among the unknown fields is known.
    pub(super) placed: Vec<Duplicate>,
}

impl Repeated {
    /// The errors without the place of their keys: those for unknown fields come after them.
    pub(crate) fn into_first(self) -> Vec<String> {
        let placed = self.placed.iter().map(Duplicate::to_string);
        self.first.into_iter().chain(placed).collect()
    }
}

impl From<Vec<String>> for Repeated {
    fn from(first: Vec<String>) -> Self {
        Self {
            first,
            placed: Vec::new(),
        }
    }
}

impl Body {
    fn plain(value: Value) -> Self {
        Self {
            value,
            repeated: Repeated::default(),
        }
    }
}

/// A body that could not be decoded.
#[derive(Debug)]
pub(crate) struct DecodeError {
    /// The message of Kubernetes' decoder.
    pub(crate) why: String,
}

impl DecodeError {
    /// 400 with only the decoder's message.
    pub(crate) fn bare(self) -> Status {
        Status::bad_request(self.why)
    }

    /// 400 for a body that should be an object of `kind`.
    pub(super) fn of_kind(self, kind: &str, call: &Call) -> Status {
        let summary = match &call.body {
            Payload::Json(value) => summary(&meta::json(value)),
            Payload::Bytes(bytes) => summary(bytes),
        };
        let why = self.why;
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
        ))
    }
}

/// The beginning of a body, as Kubernetes quotes it.
fn summary(body: &[u8]) -> String {
    const LIMIT: usize = 30;
    let (start, more) = match body.get(..LIMIT) {
        Some(start) if body.len() > LIMIT => (start, " ..."),
        _ => (body, ""),
    };
    match start {
        [] => "<empty>".to_owned(),
        [b'{', ..] => format!("{}{more}", String::from_utf8_lossy(start)),
        _ => {
            let digits = start.iter().map(|it| format!("{it:02x}"));
            format!("{}{more}", digits.collect::<String>())
        }
    }
}

/// Decodes the body of a request that sends a whole object of `kind`.
///
/// # Errors
/// 415 for an unsupported media type, 400 for a body that does not have its media type's
/// format.
pub(crate) fn object(call: &Call, kind: &str) -> Result<Body, Status> {
    let read = unchecked(call)?.and_then(|body| {
        if body.value.is_object() {
            return Ok(body);
        }
        let why = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go \
             value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
             Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            go_kind(&body.value)
        );
        Err(DecodeError { why })
    });
    read.map_err(|it| it.of_kind(kind, call))
}

/// Same as [`object`], where the error's kind is not determined yet.
///
/// # Errors
/// 415 for an unsupported media type.
pub(crate) fn unchecked(call: &Call) -> Result<Result<Body, DecodeError>, Status> {
    let media = call.media_type();
    if !media.is_empty() && !OBJECTS.contains(&media.as_str()) {
        return Err(Status::unsupported_media_type(&OBJECTS));
    }
    let prefixed = |why: String| {
        if media.ends_with("yaml") {
            why
        } else {
            format!("couldn't get version/kind; json parse error: {why}")
        }
    };
    Ok(value(call).map_err(|it| DecodeError {
        why: prefixed(it.why),
    }))
}

/// Decodes a JSON body, or a YAML body if it is not JSON.
///
/// # Errors
/// The body is neither.
pub(crate) fn value(call: &Call) -> Result<Body, DecodeError> {
    let bytes = match &call.body {
        Payload::Json(value) => return Ok(Body::plain(value.clone())),
        Payload::Bytes(bytes) => bytes,
    };
    if call.media_type() == protobuf::MEDIA {
        let read = protobuf::read(bytes);
        return read.map(Body::plain).map_err(|error| DecodeError {
            why: error.to_string(),
        });
    }
    match strict::read(bytes) {
        Ok((value, placed)) => Ok(Body {
            value,
            repeated: Repeated {
                first: Vec::new(),
                placed,
            },
        }),
        Err(_) if call.media_type().ends_with("yaml") => yaml(bytes),
        Err(error) => Err(DecodeError {
            // A body that Go can decode but our parser cannot gets our parser's message.
            why: syntax::error(bytes).unwrap_or_else(|| error.to_string()),
        }),
    }
}

fn yaml(bytes: &[u8]) -> Result<Body, DecodeError> {
    use serde_saphyr::DuplicateKeyPolicy;

    let refuse = |error: &dyn std::fmt::Display| DecodeError {
        why: format!("error decoding YAML: {error}"),
    };
    let text = std::str::from_utf8(bytes).map_err(|error| refuse(&error))?;
    let error = match serde_saphyr::from_str::<Value>(text) {
        Ok(value) => return Ok(Body::plain(value)),
        Err(error) => error,
    };
    let serde_saphyr::Error::DuplicateMappingKey { key, location } =
        error.without_snippet()
    else {
        return Err(refuse(&error));
    };
    let key = key.as_deref().unwrap_or_default();
    let line = location.line();
    let repeated =
        format!("yaml: unmarshal errors:\n  line {line}: key {key:?} already set in map");
    let lenient = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
    };
    let value = serde_saphyr::from_str_with_options::<Value>(text, lenient);
    Ok(Body {
        value: value.map_err(|error| refuse(&error))?,
        repeated: vec![repeated].into(),
    })
}

/// 400: a body that is not an object has no kind.
pub(crate) fn not_an_object(body: &Value) -> Status {
    let text: String = body.to_string().chars().take(1000).collect();
    Status::bad_request(format!("Object 'Kind' is missing in '{text}'"))
}
