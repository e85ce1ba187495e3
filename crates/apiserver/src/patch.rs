//! The patch formats: from an object and a patch to the patched object.

mod json;
mod refusal;
mod restore;
mod strategic;

use serde_json::Value;

use crate::decode::{self, go_kind};
use crate::openapi::shape::Shape;
use crate::resource::Resource;
use crate::status::{Details, Reason, Status};

/// A format of patches that need nothing but the object; server-side apply is in
/// [`apply`](crate::apply).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// RFC 6902, a list of operations.
    Json,
    /// RFC 7386, an object laid over another.
    Merge,
    /// Kubernetes' own, which merges lists by key; for built-in kinds alone.
    Strategic,
}

/// The media types of the patches that `resource` reads, server-side apply included.
pub fn media_types(resource: &Resource) -> &'static [&'static str] {
    if resource.custom {
        &[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ]
    } else {
        &[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        ]
    }
}

/// `object` with `patch`, which is in the format `kind`.
///
/// # Errors
/// As [`json`], [`merge`] and [`strategic`].
pub fn patched(
    kind: Kind,
    resource: &Resource,
    object: &Value,
    patch: &Value,
) -> Result<Value, Status> {
    match kind {
        Kind::Json => json(object, patch),
        Kind::Merge => merge(object, patch),
        Kind::Strategic => strategic(resource, object, patch),
    }
}

/// 400 of a patch that is no JSON, for the reason `why`.
pub(crate) fn undecodable(kind: Kind, why: &str) -> Status {
    Status::bad_request(match kind {
        Kind::Json | Kind::Merge => format!("error decoding patch: {why}"),
        Kind::Strategic => why.to_owned(),
    })
}

/// 422 of a patch whose outcome cannot be read as an object of its kind.
pub(crate) fn refused(
    kind: Kind,
    resource: &Resource,
    (old, patch): (&Value, &Value),
    why: &str,
) -> Status {
    match patched(kind, resource, old, patch) {
        Ok(patched) => refusal::status((kind, resource), patch, (old, &patched), why),
        Err(refused) => refused,
    }
}

/// Why the outcome of a patch cannot be read as an object of a built-in kind.
pub(crate) fn type_error(
    kind: Kind,
    resource: &Resource,
    patched: &mut Value,
) -> Option<String> {
    if kind != Kind::Strategic {
        return decode::decode(resource, patched).err();
    }
    let wrong = restored_type_error(resource, patched);
    restore::cut(Shape::of(resource), patched);
    // Of what kind the object is, is not looked at on this way.
    decode::set_type_meta(resource, patched);
    wrong
}

/// Why an object that is merged field by field cannot be had as one of a built-in kind.
pub(crate) fn restored_type_error(resource: &Resource, object: &Value) -> Option<String> {
    restore::error(Shape::of(resource), object)
}

/// Cuts the numbers of such an object to the bits that their fields have.
pub(crate) fn cut(resource: &Resource, object: &mut Value) {
    restore::cut(Shape::of(resource), object);
}

/// `object` with the operations of a JSON patch carried out in order.
///
/// # Errors
/// 400 for a body that is no JSON patch, 413 for more than 10,000 operations, 422 for an
/// operation that does not apply or copies that add up to more than 3 MiB.
pub fn json(object: &Value, operations: &Value) -> Result<Value, Status> {
    object_of(json::apply(object, operations)?)
}

/// `object` with the operations that a MutatingAdmissionPolicy has made carried out in order; the
/// same object where a `test` among them fails.
///
/// # Errors
/// Why an operation does not apply, in the words of Kubernetes' library.
pub(crate) fn carried_out(object: &Value, operations: &Value) -> Result<Value, String> {
    json::carried_out(object, operations)
}

/// `object` with the operations that a webhook has answered with carried out in order.
///
/// # Errors
/// Why an operation does not apply, in the words of Kubernetes' library.
pub(crate) fn of_webhook(object: &Value, operations: &[Value]) -> Result<Value, String> {
    json::of_webhook(object, operations)
}

/// The operations of a patch that a webhook has answered with.
///
/// # Errors
/// What Go's decoder says of anything else than a list of objects.
pub(crate) fn operations_of_webhook(patch: &Value) -> Result<&[Value], String> {
    json::operations_of_webhook(patch)
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
    let kind = go_kind(patch);
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

#[cfg(test)]
mod tests;
