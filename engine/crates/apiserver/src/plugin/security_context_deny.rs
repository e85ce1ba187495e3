//! SecurityContextDeny: rejects pods that set users, groups or SELinux options
//! (plugin/pkg/admission/securitycontext/scdeny in Kubernetes 1.29).

use serde_json::Value;

use super::{Attributes, Plugin, Removal, pod};
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct SecurityContextDeny;

impl Plugin for SecurityContextDeny {
    fn name(&self) -> &'static str {
        "SecurityContextDeny"
    }

    fn description(&self) -> &'static str {
        "Rejects pods that set `supplementalGroups`, `seLinuxOptions`, `runAsUser` or \
         `fsGroup`."
    }

    fn removal(&self) -> Option<Removal> {
        Some(Removal {
            release: "1.30",
            instead: "PodSecurity",
        })
    }

    fn validate(
        &self,
        _cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| attributes.is_about("", "pods")) else {
            return Ok(());
        };
        let own = &pod["spec"]["securityContext"];
        for (field, path) in [
            (
                "supplementalGroups",
                "pod.Spec.SecurityContext.SupplementalGroups",
            ),
            ("seLinuxOptions", "pod.Spec.SecurityContext.SELinuxOptions"),
            ("runAsUser", "pod.Spec.SecurityContext.RunAsUser"),
            ("fsGroup", "pod.Spec.SecurityContext.FSGroup"),
        ] {
            if !own[field].is_null() {
                return Err(attributes.forbidden(&format!("{path} is forbidden")));
            }
        }
        for (_, container) in pod::containers(&pod["spec"]) {
            for (field, path) in [
                ("seLinuxOptions", "SecurityContext.SELinuxOptions"),
                ("runAsUser", "SecurityContext.RunAsUser"),
            ] {
                if !container["securityContext"][field].is_null() {
                    return Err(attributes.forbidden(&format!("{path} is forbidden")));
                }
            }
        }
        Ok(())
    }
}
