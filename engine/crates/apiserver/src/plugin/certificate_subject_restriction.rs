//! CertificateSubjectRestriction: rejects certificate requests for the group `system:masters`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, signer};
use crate::identity::signing_request::SigningRequest;
use crate::state::State;
use crate::status::Status;
use crate::user::MASTERS;

/// The signer of client certificates for the API server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// The plugin.
#[derive(Debug)]
pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn description(&self) -> &'static str {
        "Rejects CertificateSigningRequests to `kubernetes.io/kube-apiserver-client` for \
         the group `system:masters`."
    }

    fn validate(
        &self,
        _cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let requested = attributes.operation() == Operation::Create
            && signer::is_subresource_request(attributes, "");
        let (Some(object), true) = (object, requested) else {
            return Ok(());
        };
        let spec = &object["spec"];
        if spec["signerName"] != CLIENT_SIGNER {
            return Ok(());
        }
        let text = spec["request"].as_str().unwrap_or_default();
        let request = STANDARD.decode(text).unwrap_or_default();
        let request = SigningRequest::read(&request).map_err(|why| {
            attributes.forbidden(&format!("failed to parse CSR: {why}"))
        })?;
        if request.organizations.iter().any(|it| it == MASTERS) {
            return Err(attributes.forbidden(&format!(
                "use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
            )));
        }
        Ok(())
    }
}
