//! GET of one object.

use crate::answer::Answer;
use crate::route::Target;
use crate::state::{State, shown};
use crate::status::Status;
use crate::store::{Key, Object};

/// The object itself, whichever subresource was named.
pub(super) fn get(state: &mut State, target: &Target) -> Result<Answer, Status> {
    let object = existing(state, target)?;
    Ok(Answer::object(
        &target.resource,
        shown(&target.resource, &object),
    ))
}

/// The object that a request is about, as it is kept.
///
/// # Errors
/// 404 when it is not there.
pub(super) fn existing(state: &mut State, target: &Target) -> Result<Object, Status> {
    let shelf = state.shelf(&target.resource);
    let key = Key::new(&target.namespace, &target.name);
    let found = state.get(shelf, &key).cloned();
    found.ok_or_else(|| Status::not_found(&target.resource, &target.name))
}
