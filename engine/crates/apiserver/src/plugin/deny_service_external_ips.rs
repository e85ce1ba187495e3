//! DenyServiceExternalIPs: rejects new external IPs of Services.

use kubemu_admission::KubeVersion;
use serde_json::Value;

use super::{Attributes, Plugin, pod};
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct DenyServiceExternalIps;

impl Plugin for DenyServiceExternalIps {
    fn name(&self) -> &'static str {
        "DenyServiceExternalIPs"
    }

    fn description(&self) -> &'static str {
        "Rejects Services with external IPs that they did not have before."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn validate(
        &self,
        _cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let Some(service) = object.filter(|_| attributes.is_about("", "services")) else {
            return Ok(());
        };
        let previous = attributes.old_object();
        let previous = previous.map(|it| pod::list(&it["spec"], "externalIPs"));
        let previous = previous.unwrap_or_default();
        let mut requested = pod::list(&service["spec"], "externalIPs").iter();
        if requested.all(|it| previous.contains(it)) {
            return Ok(());
        }
        let why = "Use of external IPs is denied by admission control";
        Err(attributes.forbidden(why))
    }
}
