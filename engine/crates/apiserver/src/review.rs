//! Reviews: objects that are posted, evaluated and not stored.

use std::sync::Arc;

use serde_json::Value;

use crate::api_response::{ApiResponse, Content};
use crate::apply::{self, Writer};
use crate::authorization;
use crate::call::Call;
use crate::decode;
use crate::identity;
use crate::meta;
use crate::resource::Resource;
use crate::route::Target;
use crate::state::State;
use crate::status::Status;
use crate::verb;

/// Whether objects of the kind are only posted: reviews and bindings.
pub(crate) fn is_posted(resource: &Resource) -> bool {
    is_review(resource) || is_binding(resource)
}

/// Whether the kind is `Binding`, which assigns a pod to a node and is not stored.
pub(crate) fn is_binding(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.kind == "Binding"
}

/// Whether the kind is a review, which is evaluated and not stored.
pub(crate) fn is_review(resource: &Resource) -> bool {
    matches!(
        resource.group.as_str(),
        "authorization.k8s.io" | "authentication.k8s.io"
    )
}

/// Responds to an access or authentication review with the review and its status.
///
/// # Errors
/// 400 and 422 for an invalid review.
pub(crate) fn reply(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let (mut review, warnings) = decode::sent(&state.definitions, call, resource)?;
    verb::clear_system_fields(&mut review);
    verb::set_namespace(target, &mut review)?;
    meta::fields(&mut review).shift_remove("status");
    track(state, call, target, &mut review);
    if resource.group == "authorization.k8s.io" {
        authorization::reply(state, call, target, &mut review)?;
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
