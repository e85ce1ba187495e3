//! Authentication reviews.

use serde_json::{Value, json};

use super::authentication::authenticate_token;
use super::claim::ISSUER;
use crate::call::Call;
use crate::route::Target;
use crate::state::State;
use crate::status::Status;

/// Responds to a review of `authentication.k8s.io` by filling in its status.
///
/// # Errors
/// 400 for a review without a token.
pub(crate) fn reply(
    state: &State,
    call: &Call,
    target: &Target,
    review: &mut Value,
) -> Result<(), Status> {
    if target.resource.kind == "SelfSubjectReview" {
        review["metadata"] = json!({"creationTimestamp": state.now()});
        review["status"] = json!({"userInfo": call.user.to_value()});
        return Ok(());
    }
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        let why = "token is required for TokenReview in authentication";
        return Err(Status::bad_request(why));
    }
    let requested = review["spec"]["audiences"].as_array().into_iter().flatten();
    let mut audiences: Vec<String> = requested
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    review["status"] = match authenticate_token(state, token, &audiences) {
        Ok(found) => json!({
            "authenticated": true,
            "user": found.user.to_value(),
            "audiences": found.audiences,
        }),
        Err(why) => json!({"user": {}, "error": why}),
    };
    Ok(())
}
