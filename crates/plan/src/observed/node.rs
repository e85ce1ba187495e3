//! The fields that are read from the Node and from its pods.

use fivespot_api::{name, reclaim};
use fivespot_capi::{key, one_line};
use k8s_openapi::api::core::v1 as core;

/// The fields that are read from a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Uid; a Node with another uid is another Node.
    pub uid: String,
    /// The resourceVersion that guards a write.
    pub resource_version: String,
    /// The provider's identifier of the machine.
    pub provider_id: Option<String>,
    /// Whether it is cordoned, by any client.
    pub is_unschedulable: bool,
    /// Whether it reports Ready; false if that is unknown.
    pub is_ready: bool,
    /// The value of our cordon marker, if the Node has one.
    pub cordon_marker: Option<String>,
    /// All taints, ours and foreign ones, in the order of the Node.
    pub taints: Vec<Taint>,
    /// Our record of the taints that are ours, from the annotation on the Node.
    pub applied_taints: Option<String>,
    /// When the machine is no longer needed, from the last call's annotation on the Node.
    pub leaves_at: Option<String>,
    /// Why the host must be released, if the Node requests a reclaim: one line of at most 256
    /// characters, empty if no reason is given.
    pub reclaim: Option<String>,
    /// The Machine that Cluster API's annotations name.
    pub machine: NodeClaim,
    /// Whether it has a control-plane role, as a label or as a taint.
    pub is_control_plane: bool,
    /// Whether the Node has any annotation of a reclaim request.
    pub has_reclaim_annotations: bool,
    /// The value of the label that schedules the agent on the Node.
    pub agent_label: Option<String>,
    /// The agent's report, from the annotation on the Node.
    pub agent_report: Option<String>,
}

/// Cluster API's annotations on a Node, which name its Machine. Each may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeClaim {
    /// Name of the Cluster.
    pub cluster: Option<String>,
    /// Namespace of the Cluster and of the Machine.
    pub namespace: Option<String>,
    /// Name of the Machine.
    pub machine: Option<String>,
}

/// The keys of the control-plane role, the current and the former one.
const CONTROL_PLANE: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

fn is_control_plane(node: &core::Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    CONTROL_PLANE.iter().any(|key| {
        labels.is_some_and(|all| all.contains_key(*key))
            || taints.is_some_and(|all| all.iter().any(|taint| taint.key == *key))
    })
}

/// The fields that are read from the ConfigMap that configures the agent on the Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentConfig {
    /// Uid.
    pub uid: String,
    /// The resourceVersion that guards a write.
    pub resource_version: String,
    /// Whether it has our labels.
    pub is_ours: bool,
    /// The text of the configuration.
    pub text: Option<String>,
    /// The uid of the Node that owns it.
    pub node_uid: Option<String>,
}

impl From<&core::ConfigMap> for AgentConfig {
    /// Reads the fields that are needed; absent ones are empty.
    fn from(config: &core::ConfigMap) -> Self {
        let meta = &config.metadata;
        let labels = meta.labels.as_ref();
        let data = config.data.as_ref();
        let mut owners = meta.owner_references.iter().flatten();
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            is_ours: name::agent_labels()
                .iter()
                .all(|(key, value)| labels.and_then(|all| all.get(key)) == Some(value)),
            text: data.and_then(|data| data.get(name::RECLAIM_CONFIG_KEY).cloned()),
            node_uid: owners
                .find(|owner| owner.kind == "Node")
                .map(|owner| owner.uid.clone()),
        }
    }
}

/// A taint on a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Key; together with the effect it identifies the taint.
    pub key: String,
    /// Value, empty if there is none.
    pub value: String,
    /// Effect, as in the API.
    pub effect: String,
    /// When it was added, RFC 3339, if the client that added it has set that.
    pub time_added: Option<String>,
}

impl From<&core::Taint> for Taint {
    fn from(taint: &core::Taint) -> Self {
        Self {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: taint.effect.clone(),
            time_added: taint.time_added.as_ref().map(|time| time.0.to_string()),
        }
    }
}

impl From<&core::Node> for Node {
    /// Reads the fields that are needed; absent ones are empty.
    fn from(node: &core::Node) -> Self {
        let spec = node.spec.as_ref();
        let conditions = node
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_ref());
        let annotation = |key: &str| {
            let annotations = node.metadata.annotations.as_ref();
            annotations.and_then(|all| all.get(key).cloned())
        };
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            uid: node.metadata.uid.clone().unwrap_or_default(),
            resource_version: node.metadata.resource_version.clone().unwrap_or_default(),
            provider_id: spec.and_then(|spec| spec.provider_id.clone()),
            is_unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
            is_ready: conditions
                .into_iter()
                .flatten()
                .any(|found| found.type_ == "Ready" && found.status == "True"),
            cordon_marker: annotation(name::CORDONED_ANNOTATION),
            taints: spec
                .and_then(|spec| spec.taints.as_ref())
                .into_iter()
                .flatten()
                .map(Taint::from)
                .collect(),
            applied_taints: annotation(name::APPLIED_TAINTS_ANNOTATION),
            leaves_at: annotation(name::LEAVES_AT_ANNOTATION),
            reclaim: annotation(name::RECLAIM_REQUESTED_ANNOTATION)
                .filter(|value| value == reclaim::REQUESTED)
                .map(|_| annotation(name::RECLAIM_REASON_ANNOTATION))
                .map(|reason| one_line(&reason.unwrap_or_default())),
            machine: NodeClaim {
                cluster: annotation(key::CLUSTER_NAME),
                namespace: annotation(key::CLUSTER_NAMESPACE),
                machine: annotation(key::MACHINE),
            },
            is_control_plane: is_control_plane(node),
            has_reclaim_annotations: name::RECLAIM_REQUEST
                .iter()
                .any(|key| annotation(key).is_some()),
            agent_label: node
                .metadata
                .labels
                .as_ref()
                .and_then(|all| all.get(name::RECLAIM_AGENT_KEY).cloned()),
            agent_report: annotation(name::RECLAIM_AGENT_KEY),
        }
    }
}

/// The fields that are read from a pod on the Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid; the precondition of its eviction.
    pub uid: String,
    /// Whether a DaemonSet controls it, which would create it again at once.
    pub is_of_daemon_set: bool,
    /// Whether it mirrors a static pod of the kubelet, which no API call can remove.
    pub is_mirror: bool,
    /// Whether its phase is Succeeded or Failed.
    pub is_finished: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
}

impl Pod {
    /// Whether the Node counts as not drained because of it.
    pub fn has_to_leave(&self) -> bool {
        !self.is_of_daemon_set && !self.is_mirror && !self.is_finished
    }
}

impl From<&core::Pod> for Pod {
    /// Reads the fields that are needed; absent ones are empty.
    fn from(pod: &core::Pod) -> Self {
        let meta = &pod.metadata;
        let owners = meta.owner_references.iter().flatten();
        let annotations = meta.annotations.as_ref();
        let phase = pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            is_of_daemon_set: owners
                .filter(|owner| owner.controller == Some(true))
                .any(|owner| owner.kind == "DaemonSet"),
            is_mirror: annotations
                .is_some_and(|all| all.contains_key("kubernetes.io/config.mirror")),
            is_finished: matches!(phase, Some("Succeeded" | "Failed")),
            is_deleting: meta.deletion_timestamp.is_some(),
        }
    }
}
