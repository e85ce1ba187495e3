//! GET of one object.

use super::page;
use crate::api_response::ApiResponse;
use crate::call::Call;
use crate::route::Target;
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::{Key, Object};

/// Returns the object itself, also for a subresource.
///
/// # Errors
/// As in [`check_version`]; 404 if the object does not exist.
pub(super) fn get(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    check_version(state, call, target)?;
    let object = existing(state, target)?;
    Ok(ApiResponse::object(
        &target.resource,
        state.in_version_of(&target.resource, &object)?,
    ))
}

/// Checks the minimum resourceVersion of a read.
///
/// # Errors
/// 400 or 500 for a version that is not a number, 504 for a future one.
pub(super) fn check_version(
    state: &State,
    call: &Call,
    target: &Target,
) -> Result<(), Status> {
    let version = &call.query.version;
    match version.parse::<u64>() {
        Ok(requested) if requested > state.store.version() => {
            return Err(page::too_large(requested, state.store.version()));
        }
        Err(_) if !version.is_empty() => {
            let message = page::malformed(version);
            // The watch cache and the store return different errors.
            if !page::is_cached(&target.resource) {
                let message = format!("invalid resource version: {message}");
                return Err(Status::bad_request(message));
            }
            return Err(Status::new(500, Reason::Unknown, message));
        }
        _ => {}
    }
    Ok(())
}

/// The object of a request, in its storage version.
///
/// # Errors
/// 404 if the object does not exist.
pub(super) fn existing(state: &mut State, target: &Target) -> Result<Object, Status> {
    let bucket = state.bucket(&target.resource);
    let key = Key::new(&target.namespace, &target.name);
    let found = state.get(bucket, &key).cloned();
    found.ok_or_else(|| Status::not_found(&target.resource, &target.name))
}
