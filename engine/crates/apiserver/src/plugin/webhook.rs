//! Calls of webhooks, which both webhook plugins share (plugin/webhook in k8s.io/apiserver).

mod review;
pub(crate) mod source;

use std::sync::Arc;
use std::time::Duration;

use kubemu_admission::policy::{Invocation, Request, Resolver as _};
use serde_json::Value;

use super::Attributes;
use super::admission_request::with_request;
use super::validating_admission_policy::Environment;
use crate::conversion::ReviewCall;
use crate::state::State;
use crate::status::Status;
use crate::webhook_client::Endpoint;
pub(super) use review::AdmissionResponse;
use review::Review;
use source::AdmissionWebhook;

/// The result of a webhook for a request.
pub(super) enum Outcome {
    /// The webhook does not match the request.
    NoMatch,
    /// The webhook has not been called yet: the request is abandoned, and performed again with the
    /// response.
    Pending,
    /// The call has failed, or the response is invalid.
    Failed(String),
    /// The response, and the `apiVersion` of the objects in the review.
    Response(Box<AdmissionResponse>, String),
}

impl Outcome {
    /// The error of a request if the call of a webhook has failed.
    pub(super) fn failure(hook: &AdmissionWebhook, why: &str) -> Status {
        Status::internal(format!("failed calling webhook {:?}: {why}", hook.name))
    }
}

/// The error of a request that is performed again; no client receives it.
pub(super) fn pending_error() -> Status {
    Status::internal("an admission webhook has not been called yet")
}

/// Calls a webhook for a request.
///
/// # Errors
/// 403 if its match conditions fail, 400 for a dry run that it does not support, 500 for an object
/// that cannot be converted.
pub(super) fn call(
    cluster: &State,
    attributes: &Attributes<'_>,
    hook: &AdmissionWebhook,
    object: Option<&Value>,
) -> Result<Outcome, Status> {
    let review = with_request(cluster, attributes, object, |request| {
        let matched = hook.matching.matches(request, &Environment(cluster));
        let matched = matched.map_err(|why| attributes.forbidden(&why))?;
        let Some(invocation) = matched else {
            return Ok(None);
        };
        if request.dry_run && !hook.supports_dry_run {
            let name = &hook.name;
            let message = format!("admission webhook {name:?} does not support dry run");
            return Err(Status::bad_request(message));
        }
        review(cluster, request, &invocation, hook).map(Some)
    })?;
    let Some((review, api_version)) = review else {
        return Ok(Outcome::NoMatch);
    };
    let endpoint = match Endpoint::of(&cluster.services(), &hook.client) {
        Ok(endpoint) => endpoint,
        Err(why) => {
            return Ok(Outcome::Failed(format!("could not get REST client: {why}")));
        }
    };
    let call = ReviewCall {
        endpoint,
        body: Arc::new(review.body),
        timeout: hook.timeout,
        backoff: Duration::ZERO,
    };
    let response = cluster.webhook_calls.lock().review(call);
    Ok(match response {
        None => Outcome::Pending,
        Some(Err(why)) => Outcome::Failed(format!("failed to call webhook: {why}")),
        Some(Ok(response)) => match AdmissionResponse::read(&response, &review.uid, hook)
        {
            Ok(response) => Outcome::Response(Box::new(response), api_version),
            Err(why) => {
                let why = format!("received invalid webhook response: {why}");
                Outcome::Failed(why)
            }
        },
    })
}

/// The review for a webhook, and the `apiVersion` of the objects in it.
///
/// # Errors
/// 500 for an object that cannot be converted.
fn review(
    cluster: &State,
    request: &Request<'_>,
    invocation: &Invocation<'_>,
    hook: &AdmissionWebhook,
) -> Result<(Review, String), Status> {
    let environment = Environment(cluster);
    let converted = |object: Option<&Value>| match object {
        None => Ok(Value::Null),
        Some(object) if invocation.kind == request.kind => Ok(object.clone()),
        Some(object) => environment
            .converted(object, invocation.kind)
            .map_err(Status::internal),
    };
    let objects = [converted(request.object)?, converted(request.old_object)?];
    let review = Review::new(request, invocation, objects, hook);
    Ok((review, invocation.kind.api_version()))
}
