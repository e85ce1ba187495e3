//! PodResizeValidator: a pod is resized only if its node has the CPU and the memory
//! (plugin/pkg/admission/podresize).

use kubemu_admission::{KubeVersion, Quantity};
use serde_json::Value;

use super::pod_resources::{self, Amounts};
use super::{Attributes, Plugin, pod};
use crate::kind::resource_name;
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct PodResizeValidator;

/// The label with the operating system of a node.
const OPERATING_SYSTEM: &str = "kubernetes.io/os";

impl Plugin for PodResizeValidator {
    fn name(&self) -> &'static str {
        "PodResizeValidator"
    }

    fn description(&self) -> &'static str {
        "Rejects a resize of a pod whose node does not exist, is not a Linux node, or does not \
         have the requested CPU and memory."
    }

    fn is_on_by_default(&self, kube: KubeVersion) -> bool {
        kube.is_at_least(36)
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let is_pod = attributes.resource().storage == GroupResource::new("", "pods");
        let (Some(object), Some(old)) = (object, attributes.old_object()) else {
            return Ok(());
        };
        let name = pod::text(&object["spec"], "nodeName");
        if !is_pod || attributes.subresource() != "resize" || name.is_empty() {
            return Ok(());
        }
        if meta::generation(object) == meta::generation(old) {
            return Ok(());
        }
        let nodes = GroupResource::new("", "nodes");
        let Some(node) = cluster.object(&nodes, "", name) else {
            return Err(attributes.forbidden(&format!("node \"{name}\" not found")));
        };
        let system = node["metadata"]["labels"][OPERATING_SYSTEM].as_str();
        if let Some(system) = system.filter(|it| *it != "linux") {
            let why = format!(
                "pod resize is only supported on linux nodes, node \"{name}\" is \"{system}\""
            );
            return Err(attributes.forbidden(&why));
        }
        let requested = pod_resources::total(&object["spec"], "requests", cluster.kube);
        let missing = missing(&requested, &node["status"]["allocatable"]);
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join("; ");
        let why = format!("node didn't have enough allocatable resources: {missing}");
        Err(attributes.forbidden(&why))
    }
}

/// What a pod requests beyond what its node has: CPU in thousandths, memory in bytes.
fn missing(requested: &Amounts, allocatable: &Value) -> Vec<String> {
    let parts = [
        ("cpu", Quantity::milli_value as fn(&Quantity) -> i64),
        ("memory", Quantity::value),
    ];
    let missing = parts.into_iter().filter_map(|(resource, number)| {
        let requested = requested.get(resource)?;
        let has = resource_name::quantity(&allocatable[resource]);
        let has = has.unwrap_or_else(|| Quantity::count(0));
        (*requested > has).then(|| {
            let (requested, has) = (number(requested), number(&has));
            format!("{resource}, requested: {requested}, allocatable: {has}")
        })
    });
    missing.collect()
}
