//! What the two plugins that call webhooks have in common (plugin/webhook in k8s.io/apiserver).

mod review;
mod source;

use std::sync::Arc;
use std::time::Duration;

use fivespot_admission::policy::{Invocation, Request, World as _};
use serde_json::Value;

use super::Attributes;
use super::admission_request::with_request;
use super::validating_admission_policy::Environment;
use crate::conversion::ReviewCall;
use crate::state::State;
use crate::status::Status;
use crate::webhook_client::Endpoint;
pub(super) use review::Reply;
use review::Review;
pub(crate) use source::{Hook, WebhookSource};

/// What a webhook has said of a request.
pub(super) enum Outcome {
    /// It is not called for the request.
    Uncalled,
    /// It has not been asked yet: the request is given up and performed anew with its answer.
    Unanswered,
    /// It could not be called, or has not answered as it should.
    Failed(String),
    /// It was asked in the shape of this `apiVersion`.
    Answered(Box<Reply>, String),
}

impl Outcome {
    /// The refusal of a request about which a webhook could not be asked.
    pub(super) fn failure(hook: &Hook, why: &str) -> Status {
        Status::internal(format!("failed calling webhook {:?}: {why}", hook.name))
    }
}

/// The refusal of a request that is performed anew, which nobody sees.
pub(super) fn unanswered() -> Status {
    Status::internal("an admission webhook has not been asked yet")
}

/// Asks one webhook about a request.
///
/// # Errors
/// 403 where its match conditions fail, 400 for a dry run that it does not support, 500 for an
/// object that cannot be converted.
pub(super) fn ask(
    cluster: &State,
    attributes: &Attributes<'_>,
    hook: &Hook,
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
        return Ok(Outcome::Uncalled);
    };
    let endpoint = match Endpoint::of(cluster, &hook.client) {
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
    let answer = cluster.webhook_calls.lock().review(call);
    Ok(match answer {
        None => Outcome::Unanswered,
        Some(Err(why)) => Outcome::Failed(format!("failed to call webhook: {why}")),
        Some(Ok(answer)) => match Reply::read(&answer, &review.uid, hook) {
            Ok(reply) => Outcome::Answered(Box::new(reply), api_version),
            Err(why) => {
                let why = format!("received invalid webhook response: {why}");
                Outcome::Failed(why)
            }
        },
    })
}

/// What a webhook is sent, and the `apiVersion` of the objects in it.
///
/// # Errors
/// 500 for an object that cannot be converted.
fn review(
    cluster: &State,
    request: &Request<'_>,
    invocation: &Invocation<'_>,
    hook: &Hook,
) -> Result<(Review, String), Status> {
    let world = Environment(cluster);
    let shown = |object: Option<&Value>| match object {
        None => Ok(Value::Null),
        Some(object) if invocation.kind == request.kind => Ok(object.clone()),
        Some(object) => world
            .converted(object, invocation.kind)
            .map_err(Status::internal),
    };
    let objects = [shown(request.object)?, shown(request.old_object)?];
    let review = Review::new(request, invocation, objects, hook);
    Ok((review, invocation.kind.api_version()))
}
