//! The uid and the resourceVersion in a written object, which are preconditions of the write.

use serde_json::Value;

use crate::meta;
use crate::resource::Resource;
use crate::status::{Reason, Status};

/// 409 for an object with another uid than the stored one.
pub(super) fn check_uid(
    resource: &Resource,
    object: &Value,
    previous: &str,
) -> Result<(), Status> {
    let Some(why) = uid_mismatch(object, previous) else {
        return Ok(());
    };
    let key = storage_key(resource, object);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: {why}"
    );
    Err(Status::conflict(resource, meta::name(object), &why))
}

/// The error of an object with another uid than `had`; `None` if its uid is absent or equal.
pub(super) fn uid_mismatch(object: &Value, previous: &str) -> Option<String> {
    let uid = meta::uid(object);
    let is_other = !uid.is_empty() && uid != previous;
    is_other.then(|| {
        format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {previous}"
        )
    })
}

/// The number of a resourceVersion; 0 if it is empty.
///
/// # Errors
/// 500, as in Kubernetes, for a version that is not a number.
pub(super) fn version_number(version: &str) -> Result<u64, Status> {
    if version.is_empty() {
        return Ok(0);
    }
    version.parse().map_err(|_| {
        let message = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        Status::new(500, Reason::Unknown, message)
    })
}

/// The etcd key of an object in Kubernetes, which error messages contain.
fn storage_key(resource: &Resource, object: &Value) -> String {
    let group = if resource.custom { &resource.group } else { "" };
    let place = [
        "/registry",
        group,
        &resource.plural,
        meta::namespace(object),
        meta::name(object),
    ];
    let value = place.into_iter().filter(|it| !it.is_empty());
    value.collect::<Vec<_>>().join("/")
}
