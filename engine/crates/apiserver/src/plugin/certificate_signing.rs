//! CertificateSigning: only users who may sign requests of a signer set certificates.

use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, signer};
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn description(&self) -> &'static str {
        "Rejects a certificate or a condition in the status of a \
         CertificateSigningRequest by users who may not `sign` for its signer."
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let requested = attributes.operation() == Operation::Update
            && signer::is_subresource_request(attributes, "status");
        let (Some(old), Some(object), true) =
            (attributes.old_object(), object, requested)
        else {
            return Ok(());
        };
        let (old_status, status) = (&old["status"], &object["status"]);
        let mut written = ["certificate", "conditions"].iter();
        if written.all(|it| status[it] == old_status[it]) {
            return Ok(());
        }
        signer::authorize(cluster, attributes, "sign", old)
    }
}
