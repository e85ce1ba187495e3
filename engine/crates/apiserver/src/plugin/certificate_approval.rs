//! CertificateApproval: only users who may approve requests of a signer approve certificate
//! requests.

use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, signer};
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn description(&self) -> &'static str {
        "Rejects the approval or denial of a CertificateSigningRequest by users who may \
         not `approve` for its signer."
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        _object: Option<&Value>,
    ) -> Result<(), Status> {
        let old = attributes.old_object();
        let requested = attributes.operation() == Operation::Update
            && signer::is_subresource_request(attributes, "approval");
        match old {
            Some(old) if requested => {
                signer::authorize(cluster, attributes, "approve", old)
            }
            _ => Ok(()),
        }
    }
}
