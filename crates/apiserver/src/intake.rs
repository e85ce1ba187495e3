//! From a request body to the object that the server works on.

use std::sync::Arc;

use fivespot_admission::crd::Crd;
use serde_json::Value;

use crate::call::{Call, Payload};
use crate::meta;
use crate::openapi;
use crate::protobuf;
use crate::prune;
use crate::query::FieldValidation;
use crate::resource::Resource;
use crate::state::State;
use crate::status::{Cause, Status};
use crate::strict;

/// Media types of whole objects.
const OBJECTS: [&str; 3] = ["application/json", "application/yaml", protobuf::MEDIA];

/// What a body said.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) value: Value,
    /// Paths of keys that were said twice.
    pub(crate) repeated: Vec<String>,
}

/// Reads the body of a request that sends a whole object.
///
/// # Errors
/// 415 for a form that is not read, 400 for a text that is not what its form says.
pub(crate) fn object(call: &Call) -> Result<Body, Status> {
    let media = call.media_type();
    if !media.is_empty() && !OBJECTS.contains(&media.as_str()) {
        return Err(Status::unsupported_media_type(&OBJECTS));
    }
    value(call)
}

/// Reads a body of JSON, or of YAML where that is not JSON.
///
/// # Errors
/// 400 when it is neither.
pub(crate) fn value(call: &Call) -> Result<Body, Status> {
    let bytes = match &call.body {
        Payload::Json(value) => {
            return Ok(Body {
                value: value.clone(),
                repeated: Vec::new(),
            });
        }
        Payload::Bytes(bytes) => bytes,
    };
    if call.media_type() == protobuf::MEDIA {
        let value = protobuf::read(bytes)
            .map_err(|error| Status::bad_request(error.to_string()))?;
        return Ok(Body {
            value,
            repeated: Vec::new(),
        });
    }
    match strict::read(bytes) {
        Ok((value, repeated)) => Ok(Body { value, repeated }),
        Err(error) if call.media_type().ends_with("yaml") => yaml(bytes, &error),
        Err(error) => {
            let message = format!(
                "the object provided is unrecognized (must be of type Object): couldn't get \
                 version/kind; json parse error: {error}"
            );
            Err(Status::bad_request(message))
        }
    }
}

fn yaml(bytes: &[u8], json: &serde_json::Error) -> Result<Body, Status> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Status::bad_request(format!("error decoding YAML: {json}")))?;
    match serde_saphyr::from_str::<Value>(text) {
        Ok(value) => Ok(Body {
            value,
            repeated: Vec::new(),
        }),
        Err(error) => Err(Status::bad_request(format!("error decoding YAML: {error}"))),
    }
}

/// 400: a body that is no object has no kind.
pub(crate) fn not_an_object(body: &Value) -> Status {
    let text: String = body.to_string().chars().take(1000).collect();
    Status::bad_request(format!("Object 'Kind' is missing in '{text}'"))
}

/// Checks that an object is of the kind that the path is about. A built-in kind may be
/// left unsaid; it is then filled in.
///
/// # Errors
/// 400 in Kubernetes' words.
pub(crate) fn check_kind(resource: &Resource, object: &mut Value) -> Result<(), Status> {
    let shown = |object: &Value| {
        let text = object.to_string();
        text.chars().take(1000).collect::<String>()
    };
    if !object.is_object() {
        return Err(not_an_object(object));
    }
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if resource.custom && kind.is_empty() {
        let message = format!("Object 'Kind' is missing in '{}'", shown(object));
        return Err(Status::bad_request(message));
    }
    let expected = resource.api_version();
    if !version.is_empty() && version != expected {
        let message = format!(
            "the API version in the data ({version}) does not match the expected API \
             version ({expected})"
        );
        return Err(Status::bad_request(message));
    }
    if !kind.is_empty() && kind != resource.kind {
        let cause = Cause::new(
            "FieldValueInvalid",
            "kind",
            format!("Invalid value: {kind:?}: must be {}", resource.kind),
        );
        return Err(Status::invalid(resource, meta::name(object), vec![cause]));
    }
    let fields = meta::fields(object);
    fields.shift_remove("apiVersion");
    fields.shift_remove("kind");
    fields.shift_insert(0, "apiVersion".to_owned(), expected.into());
    fields.shift_insert(1, "kind".to_owned(), resource.kind.as_str().into());
    Ok(())
}

/// Removes fields that the kind does not have and fills in its defaults; says what was
/// unknown or repeated as the request wishes. Returns the warnings.
///
/// # Errors
/// 400 under strict field validation.
pub(crate) fn settle(
    state: &State,
    resource: &Resource,
    object: &mut Value,
    asked: (FieldValidation, &[String]),
) -> Result<Vec<String>, Status> {
    let (validation, repeated) = asked;
    let unknown = match definition(state, resource) {
        Some(definition) => {
            let version = definition.served(&resource.version);
            version.map(|it| it.decode(object)).unwrap_or_default()
        }
        None => built_in(resource, object)?,
    };
    let mut found: Vec<String> = repeated
        .iter()
        .map(|it| format!("duplicate field \"{it}\""))
        .collect();
    found.extend(unknown.iter().map(|it| format!("unknown field \"{it}\"")));
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(found),
        FieldValidation::Strict if found.is_empty() => Ok(found),
        FieldValidation::Strict => {
            let kind = &resource.kind;
            Err(Status::bad_request(format!(
                "{kind} in version \"{}\" cannot be handled as a {kind}: strict decoding \
                 error: {}",
                resource.version,
                found.join(", "),
            )))
        }
    }
}

/// Checks the types in an object of a built-in kind and removes what the kind does not
/// have; returns the paths of that.
fn built_in(resource: &Resource, object: &mut Value) -> Result<Vec<String>, Status> {
    if let Some(why) = openapi::type_error(resource, object) {
        let kind = &resource.kind;
        return Err(Status::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {kind}: {why}",
            resource.version,
        )));
    }
    Ok(prune::prune(resource, object))
}

/// The compiled definition of a custom resource.
pub(crate) fn definition(state: &State, resource: &Resource) -> Option<Arc<Crd>> {
    state.definitions.get(&resource.storage).cloned()
}
