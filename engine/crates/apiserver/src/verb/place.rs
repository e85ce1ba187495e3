//! The name and the namespace of an object, which are those of the path.

use serde_json::Value;

use crate::meta;
use crate::route::Target;
use crate::status::Status;

/// Sets an object's namespace to that of the path.
///
/// # Errors
/// 400 if the object has another namespace.
pub(super) fn set_namespace(target: &Target, object: &mut Value) -> Result<(), Status> {
    let value = meta::namespace(object);
    if !target.resource.namespaced {
        meta::clear(object, "namespace");
    } else if value.is_empty() {
        meta::set(object, "namespace", target.namespace.as_str());
    } else if value != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the \
             request",
        ));
    }
    Ok(())
}

/// 400 for an object without a name.
pub(super) fn nameless(target: &Target) -> Status {
    Status::bad_request(format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        target.name
    ))
}

/// Checks that the name and namespace of an object match the path.
///
/// # Errors
/// 400 if they do not.
pub(super) fn check_place(target: &Target, object: &mut Value) -> Result<(), Status> {
    set_namespace(target, object)?;
    let value = meta::name(object);
    if value.is_empty() {
        return Err(nameless(target));
    } else if value != target.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({value}) does not match the name on the URL ({})",
            target.name
        )));
    }
    Ok(())
}
