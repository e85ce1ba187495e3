//! The patch formats: from an object and a patch to the patched object.

mod json;
mod strategic;

use serde_json::Value;

use crate::openapi::shape::Shape;
use crate::resource::Resource;
use crate::status::{Details, Reason, Status};

/// A format of patches, as its media type names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902, a list of operations.
    Json,
    /// RFC 7386, an object laid over another.
    Merge,
    /// Kubernetes' own, which merges lists by key; for built-in kinds alone.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// The format of a body for `resource` by its `Content-Type`, parameters ignored.
    ///
    /// # Errors
    /// 415 for any other media type, and for a strategic merge patch of a custom
    /// resource, naming those that are read.
    pub fn of(content_type: &str, resource: &Resource) -> Result<Self, Status> {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        let accepted = Self::accepted(resource);
        let found = accepted.iter().find(|it| it.media_type() == media);
        found.copied().ok_or_else(|| {
            let all: Vec<_> = accepted.iter().map(|it| it.media_type()).collect();
            Status::unsupported_media_type(&all)
        })
    }

    /// The formats that `resource` reads.
    pub fn accepted(resource: &Resource) -> &'static [Self] {
        if resource.custom {
            &[Self::Json, Self::Merge, Self::Apply]
        } else {
            &[Self::Json, Self::Merge, Self::Strategic, Self::Apply]
        }
    }

    /// The media type of a body in this format.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// `object` with the operations of a JSON patch carried out in order.
///
/// # Errors
/// 400 for a body that is no JSON patch, 413 for more than 10,000 operations, 422 for an
/// operation that does not apply or copies that add up to more than 3 MiB.
pub fn json(object: &Value, operations: &Value) -> Result<Value, Status> {
    object_of(json::apply(object, operations)?)
}

/// `object` with a JSON merge patch laid over it.
///
/// # Errors
/// 400 for a body that is no JSON object.
pub fn merge(object: &Value, patch: &Value) -> Result<Value, Status> {
    require_object(patch)?;
    let mut merged = object.clone();
    json_patch::merge(&mut merged, patch);
    Ok(merged)
}

/// `object` with a strategic merge patch laid over it.
///
/// # Errors
/// 400, 422 or 500 for a patch that is malformed, as Kubernetes answers it.
pub fn strategic(
    resource: &Resource,
    object: &Value,
    patch: &Value,
) -> Result<Value, Status> {
    require_object(patch)?;
    let merged = strategic::merge(object.clone(), patch.clone(), Shape::of(resource))
        .map_err(|error| error.to_status())?;
    object_of(merged)
}

fn require_object(patch: &Value) -> Result<(), Status> {
    if patch.is_object() {
        return Ok(());
    }
    let kind = kind_of(patch);
    Err(Status::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {kind} into Go value of type \
         map[string]interface {{}}"
    )))
}

/// A patch may turn the whole object into something else; that is refused.
fn object_of(patched: Value) -> Result<Value, Status> {
    if patched.is_object() {
        Ok(patched)
    } else {
        Err(rejected())
    }
}

/// 422 in the general words with which Kubernetes refuses patches that do not apply.
fn rejected() -> Status {
    let message = "the server rejected our request due to an error in our request";
    Status::new(422, Reason::Invalid, message).with_details(Details::default())
}

/// The JSON type in the words of Go's decoder.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;
