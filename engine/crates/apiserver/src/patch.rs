//! The patch formats: applies a patch to an object.

mod json;
mod refusal;
mod restore;
mod strategic;

use std::collections::HashMap;

use serde_json::Value;

use crate::decode;
use crate::json_type::go_kind;
use crate::openapi::go_text;
use crate::openapi::shape::Shape;
use crate::prune::prune;
use crate::resource::Resource;
use crate::status::{Details, Reason, Status};

/// A patch format that depends only on the object; server-side apply is in
/// [`apply`](crate::apply).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// JSON patch (RFC 6902): a list of operations.
    Json,
    /// JSON merge patch (RFC 7386): an object that is merged into another.
    Merge,
    /// Strategic merge patch: merges lists by key; only for built-in kinds.
    Strategic,
}

/// The patch media types that `resource` supports, including server-side apply.
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

/// `object` after `patch`, which is in the format `kind`.
///
/// # Errors
/// Same as [`json`], [`merge`] and [`strategic`].
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

/// 400 for a patch that is not JSON, with the reason `why`.
pub(crate) fn undecodable(kind: Kind, why: &str) -> Status {
    Status::bad_request(match kind {
        Kind::Json | Kind::Merge => format!("error decoding patch: {why}"),
        Kind::Strategic => why.to_owned(),
    })
}

/// 422 for a patch whose result cannot be decoded as an object of its kind.
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

/// The decoding error if the result of a patch of a custom object has no kind.
pub(crate) fn missing_kind(patched: &Value) -> Option<String> {
    let kind = &patched["kind"];
    let is_missing = kind.is_null() || kind == "";
    is_missing.then(|| {
        let text = go_text::sorted(patched);
        format!("Object 'Kind' is missing in '{text}'")
    })
}

/// The decoding error if `object`, the result of `patch`, is not of the built-in kind.
pub(crate) fn type_error(
    kind: Kind,
    resource: &Resource,
    (old, patch): (&Value, &Value),
    object: &mut Value,
) -> Option<String> {
    if kind != Kind::Strategic {
        let why = decode::decode(resource, object).err()?;
        // Kubernetes decodes the text of the result, whose order decides which error is the first.
        let result = patched(kind, resource, old, patch).ok()?;
        let text = refusal::text((kind, resource), patch, (old, &result));
        let written = text.and_then(|it| serde_json::from_str::<Value>(&it).ok());
        let first = written.and_then(|mut it| decode::decode(resource, &mut it).err());
        return Some(first.unwrap_or(why));
    }
    let wrong = restored_type_error(resource, object);
    restore::truncate_numbers(Shape::of(resource), object);
    // A strategic merge patch does not check the kind of the object.
    decode::set_type_meta(resource, object);
    wrong
}

/// Sorts the errors about unknown fields of an object, the result of `patch`, by their places in the
/// text that Kubernetes decodes, or by their own text if it decodes none. Other errors stay before
/// them.
pub(crate) fn sort_unknown_fields(
    kind: Kind,
    resource: &Resource,
    (old, patch): (&Value, &Value),
    errors: &mut [String],
) {
    if errors.len() < 2 || resource.custom {
        return;
    }
    if kind == Kind::Strategic {
        errors.sort_by_cached_key(|it| it.starts_with("unknown ").then(|| it.clone()));
        return;
    }
    let result = patched(kind, resource, old, patch).ok();
    let text = result.and_then(|it| refusal::text((kind, resource), patch, (old, &it)));
    let written = text.and_then(|it| serde_json::from_str::<Value>(&it).ok());
    if let Some(mut written) = written {
        let sorted = prune(resource, &mut written, &[]).into_iter();
        let places: HashMap<String, usize> = sorted.zip(0..).collect();
        errors.sort_by_key(|error| places.get(error));
    }
}

/// The conversion error if an object that is merged field by field is not of its built-in
/// kind.
pub(crate) fn restored_type_error(resource: &Resource, object: &Value) -> Option<String> {
    restore::error(Shape::of(resource), object)
}

/// Truncates the numbers of a merged object to the bits of their fields.
pub(crate) fn truncate_numbers(resource: &Resource, object: &mut Value) {
    restore::truncate_numbers(Shape::of(resource), object);
}

/// `object` after the operations of a JSON patch, in order.
///
/// # Errors
/// 400 for a body that is not a JSON patch, 413 for more than 10,000 operations, 422 for an
/// operation that does not apply or copies that exceed 3 MiB in total.
pub fn json(object: &Value, operations: &Value) -> Result<Value, Status> {
    object_of(json::apply(object, operations)?)
}

/// `object` after the JSON patch operations of a MutatingAdmissionPolicy, in order; unchanged
/// if a `test` among them fails.
///
/// # Errors
/// The message of Kubernetes' library for an operation that does not apply.
pub(crate) fn apply_for_policy(
    object: &Value,
    operations: &Value,
) -> Result<Value, String> {
    json::apply_for_policy(object, operations)
}

/// `object` after the JSON patch operations of a webhook's response, in order.
///
/// # Errors
/// The message of Kubernetes' library for an operation that does not apply.
pub(crate) fn of_webhook(object: &Value, operations: &[Value]) -> Result<Value, String> {
    json::of_webhook(object, operations)
}

/// The operations of the patch in a webhook's response.
///
/// # Errors
/// The message of Go's decoder for a value that is not a list of objects.
pub(crate) fn operations_of_webhook(patch: &Value) -> Result<&[Value], String> {
    json::operations_of_webhook(patch)
}

/// `object` after a JSON merge patch.
///
/// # Errors
/// 400 for a body that is not a JSON object.
pub fn merge(object: &Value, patch: &Value) -> Result<Value, Status> {
    require_object(patch)?;
    let mut merged = object.clone();
    json_patch::merge(&mut merged, patch);
    Ok(merged)
}

/// `object` after a strategic merge patch.
///
/// # Errors
/// 400, 422 or 500 for a malformed patch, as in Kubernetes.
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

/// Rejects a patch that replaces the whole object with another JSON type.
fn object_of(patched: Value) -> Result<Value, Status> {
    if patched.is_object() {
        Ok(patched)
    } else {
        Err(rejected())
    }
}

/// 422 with Kubernetes' generic message for patches that do not apply.
fn rejected() -> Status {
    let message = "the server rejected our request due to an error in our request";
    Status::new(422, Reason::Invalid, message).with_details(Details::default())
}

#[cfg(test)]
mod tests;
