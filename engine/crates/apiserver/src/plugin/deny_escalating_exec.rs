//! DenyEscalatingExec: rejects connections to pods with more privileges than a container
//! (plugin/pkg/admission/exec in Kubernetes 1.20).

use std::sync::Arc;

use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, Removal, pod};
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct DenyEscalatingExec;

/// The release that removed DenyEscalatingExec and DenyExecOnPrivileged.
pub(super) const REMOVAL: Removal = Removal {
    release: "1.21",
    instead: "PodSecurity, or a ValidatingAdmissionPolicy for CONNECT of pods/exec",
};

impl Plugin for DenyEscalatingExec {
    fn name(&self) -> &'static str {
        "DenyEscalatingExec"
    }

    fn description(&self) -> &'static str {
        "Rejects `exec` and `attach` for pods with privileged containers, and for pods \
         in the host's PID or IPC namespace."
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
        let Some(pod) = connected(cluster, attributes)? else {
            return Ok(());
        };
        for (field, words) in [
            ("hostPID", "a container using host pid"),
            ("hostIPC", "a container using host ipc"),
        ] {
            if pod["spec"][field] == true {
                return Err(denied(attributes, words));
            }
        }
        check_privileged(attributes, &pod)
    }
}

/// The pod of an `exec` or `attach` request; `None` for other requests.
///
/// # Errors
/// 403 if the pod does not exist.
pub(super) fn connected(
    cluster: &State,
    attributes: &Attributes<'_>,
) -> Result<Option<Arc<Value>>, Status> {
    let pods = GroupResource::new("", "pods");
    let is_connection = attributes.operation() == Operation::Connect
        && attributes.resource().storage == pods
        && matches!(attributes.subresource(), "exec" | "attach");
    if !is_connection {
        return Ok(None);
    }
    let name = attributes.name();
    let found = cluster.object(&pods, attributes.namespace(), name);
    let why = || attributes.forbidden(&format!("pods {name:?} not found"));
    found.ok_or_else(why).map(Some)
}

/// Rejects the connection to a pod with a privileged container.
///
/// # Errors
/// 403.
pub(super) fn check_privileged(
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<(), Status> {
    let mut all = pod::containers(&pod["spec"]);
    if all.any(|(_, it)| it["securityContext"]["privileged"] == true) {
        return Err(denied(attributes, "a privileged container"));
    }
    Ok(())
}

fn denied(attributes: &Attributes<'_>, what: &str) -> Status {
    attributes.forbidden(&format!("cannot exec into or attach to {what}"))
}
