//! LimitPodHardAntiAffinityTopology: required pod anti-affinity may only use the topology of nodes.

use kubemu_admission::KubeVersion;
use serde_json::Value;

use super::{Attributes, Plugin, pod};
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct LimitPodHardAntiAffinityTopology;

const NODE: &str = "kubernetes.io/hostname";

impl Plugin for LimitPodHardAntiAffinityTopology {
    fn name(&self) -> &'static str {
        "LimitPodHardAntiAffinityTopology"
    }

    fn description(&self) -> &'static str {
        "Rejects pods with a required anti-affinity by a topology key other than \
         `kubernetes.io/hostname`."
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
        let Some(pod) = object.filter(|_| attributes.is_about("", "pods")) else {
            return Ok(());
        };
        let affinity = &pod["spec"]["affinity"]["podAntiAffinity"];
        let terms = "requiredDuringSchedulingIgnoredDuringExecution";
        let keys = pod::list(affinity, terms).iter();
        let mut keys = keys.map(|it| pod::text(it, "topologyKey"));
        let Some(other) = keys.find(|it| *it != NODE) else {
            return Ok(());
        };
        Err(attributes.forbidden(&format!(
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {other} but \
             only key {NODE} is allowed"
        )))
    }
}
