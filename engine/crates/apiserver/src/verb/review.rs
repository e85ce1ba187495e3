//! POST of a review, which is evaluated and not stored.

use std::sync::Arc;

use serde_json::Value;

use super::place;
use crate::api_response::{ApiResponse, Content};
use crate::apply::{self, Writer};
use crate::authorization;
use crate::call::Call;
use crate::decode;
use crate::identity;
use crate::meta;
use crate::route::Target;
use crate::state::State;
use crate::status::Status;

/// Responds to an access or authentication review with the review and its status.
///
/// # Errors
/// 400 and 422 for an invalid review.
pub(super) fn reply(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let (mut review, warnings) = decode::sent(&state.definitions, call, resource)?;
    meta::clear_system_fields(&mut review);
    place::set_namespace(target, &mut review)?;
    meta::fields(&mut review).shift_remove("status");
    track(state, call, target, &mut review);
    if resource.group == "authorization.k8s.io" {
        authorization::reply(state.rights(), call, target, &mut review)?;
    } else {
        identity::reply(state, call, target, &mut review)?;
    }
    let content = Content::Object(resource.clone(), Arc::new(review));
    let mut response = ApiResponse::new(201, content);
    response.warnings = warnings;
    Ok(response)
}

/// Records the field manager, as for every created object.
fn track(state: &State, call: &Call, target: &Target, review: &mut Value) {
    let manager = call.manager();
    let writer = Writer {
        manager: &manager,
        subresource: "",
        now: state.clock.now(),
    };
    apply::tracked(&target.resource, None, review, &writer);
}
