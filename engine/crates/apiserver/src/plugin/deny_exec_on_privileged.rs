//! DenyExecOnPrivileged: rejects connections to privileged containers (plugin/pkg/admission/exec in
//! Kubernetes 1.20).

use serde_json::Value;

use super::deny_escalating_exec::{REMOVAL, check_privileged, connected};
use super::{Attributes, Plugin, Removal};
use crate::state::State;
use crate::status::Status;

/// The plugin, a part of DenyEscalatingExec.
#[derive(Debug)]
pub(super) struct DenyExecOnPrivileged;

impl Plugin for DenyExecOnPrivileged {
    fn name(&self) -> &'static str {
        "DenyExecOnPrivileged"
    }

    fn description(&self) -> &'static str {
        "Rejects `exec` and `attach` for pods with privileged containers. \
         DenyEscalatingExec does this and more."
    }

    fn removal(&self) -> Option<Removal> {
        Some(REMOVAL)
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        _object: Option<&Value>,
    ) -> Result<(), Status> {
        match connected(cluster, attributes)? {
            Some(pod) => check_privileged(attributes, &pod),
            None => Ok(()),
        }
    }
}
