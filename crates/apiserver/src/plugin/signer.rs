//! What the plugins about certificates have in common: the requests that they are about, and who
//! may act for a signer (pkg/certauthorization in Kubernetes).

use serde_json::Value;

use super::Attributes;
use crate::authorization::{self, Action};
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;

const GROUP: &str = "certificates.k8s.io";

/// Whether a request is about a CertificateSigningRequest, or about a subresource of one.
pub(super) fn is_asked(attributes: &Attributes<'_>, subresource: &str) -> bool {
    let requests = GroupResource::new(GROUP, "certificatesigningrequests");
    attributes.subresource() == subresource && attributes.resource().storage == requests
}

/// Lets a user act (`approve`, `sign`) for the signer of the request `old`: who may do so for the
/// signer, or for all of its domain.
///
/// # Errors
/// 403 for anybody else.
pub(super) fn demand(
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
