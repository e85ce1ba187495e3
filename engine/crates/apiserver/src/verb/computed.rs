//! GET of objects that the server computes.

use std::sync::Arc;

use serde_json::Value;

use super::list;
use crate::api_response::{ApiResponse, Content, List};
use crate::call::Call;
use crate::meta;
use crate::resource::Resource;
use crate::route::Target;
use crate::status::Status;

/// One of the objects, or those that the request selects. They have no versions, and one that the
/// request names is ignored, as are the bounds of a page.
///
/// # Errors
/// 400 for a selector that is malformed, 404 if none of the objects has the name.
pub(super) fn read(
    call: &Call,
    target: &Target,
    mut objects: Vec<Value>,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let filter = list::filter(call, target)?;
    objects.retain(|it| filter.matches(it));
    if target.name.is_empty() {
        return Ok(ApiResponse::new(
            200,
            Content::List(List {
                resource: resource.clone(),
                version: 0,
                continue_token: String::new(),
                remaining: None,
                items: objects.into_iter().map(Arc::new).collect(),
            }),
        ));
    }
    let found = objects.into_iter().find(|it| meta::name(it) == target.name);
    let object = found.ok_or_else(|| {
        // Kubernetes names the kind in the singular here.
        let mut one = Resource::clone(resource);
        one.plural.clone_from(&resource.singular);
        Status::not_found(&one, &target.name)
    })?;
    Ok(ApiResponse::object(resource, Arc::new(object)))
}
