//! PodTopologyLabels: labels pods with the zone and the region of their node.

use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin};
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;
use crate::store::Key;

/// The plugin.
#[derive(Debug)]
pub(super) struct PodTopologyLabels;

const LABELS: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

impl Plugin for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    fn description(&self) -> &'static str {
        "Copies the labels `topology.kubernetes.io/zone` and \
         `topology.kubernetes.io/region` of a node to the pods that are bound to it or \
         created on it."
    }

    fn is_on_by_default(&self, kube: KubeVersion) -> bool {
        kube.is_at_least(35)
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let pods = GroupResource::new("", "pods");
        if attributes.operation() != Operation::Create
            || attributes.resource().storage != pods
        {
            return Ok(());
        }
        let Some(object) = object else {
            return Ok(());
        };
        let node = match attributes.subresource() {
            "" => object["spec"]["nodeName"].as_str(),
            "binding" if object["target"]["kind"] == "Node" => {
                object["target"]["name"].as_str()
            }
            _ => None,
        };
        let nodes = cluster.buckets.nodes;
        let node = node.and_then(|it| cluster.get(nodes, &Key::new("", it)));
        // A node that does not exist is not an error.
        let labels = node.map(|it| &it["metadata"]["labels"]);
        for name in LABELS {
            if let Some(value) = labels.and_then(|it| it.get(name)) {
                let own = meta::field(meta::edit(object), "labels");
                own.insert(name.to_owned(), value.clone());
            }
        }
        Ok(())
    }
}
