//! Helpers for the certificate plugins: the requests that they apply to, and the permission to act
//! for a signer (pkg/certauthorization in Kubernetes).

use serde_json::Value;

use super::Attributes;
use crate::authorization::{self, Action};
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;

const GROUP: &str = "certificates.k8s.io";

/// Whether a request is for this subresource of a CertificateSigningRequest.
pub(super) fn is_subresource_request(
    attributes: &Attributes<'_>,
    subresource: &str,
) -> bool {
    let requests = GroupResource::new(GROUP, "certificatesigningrequests");
    attributes.subresource() == subresource && attributes.resource().storage == requests
}

/// Checks that a user may act (`approve`, `sign`) for the signer of the request `old`, or for all
/// signers of its domain.
///
/// # Errors
/// 403 if the user may not.
pub(super) fn authorize(
    cluster: &State,
    attributes: &Attributes<'_>,
    verb: &str,
    old: &Value,
) -> Result<(), Status> {
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let domain = signer.split('/').next().unwrap_or_default();
    let mut names = [signer.to_owned(), format!("{domain}/*")].into_iter();
    let is_allowed = names.any(|name| {
        let action = Action {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Action::default()
        };
        authorization::decide(&cluster.rules, attributes.user(), &action).allowed
    });
    if is_allowed {
        return Ok(());
    }
    Err(attributes.forbidden(&format!(
        "user not permitted to {verb} requests with signerName {signer:?}"
    )))
}
