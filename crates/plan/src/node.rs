//! What is read of the Node and of the pods on it.

use fivespot_api::name;
use k8s_openapi::api::core::v1 as core;

/// What is read of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Uid; a Node of another uid is another Node.
    pub uid: String,
    /// The opaque version that guards a write.
    pub resource_version: String,
    /// The provider's identifier of the machine.
    pub provider_id: Option<String>,
    /// Whether it is cordoned, by whomever.
    pub is_unschedulable: bool,
    /// Whether it reports Ready; false also where that is unknown.
    pub is_ready: bool,
    /// The value of our cordon marker, if the Node bears one.
    pub cordon_marker: Option<String>,
    /// Every taint, ours and others', in the order of the Node.
    pub taints: Vec<Taint>,
    /// Our record of the taints that are ours, as it is written on the Node.
    pub applied_taints: Option<String>,
}

/// A taint as it stands on a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Key; together with the effect it says which taint it is.
    pub key: String,
    /// Value, empty if there is none.
    pub value: String,
    /// Effect, in the API server's word.
    pub effect: String,
    /// When it was put there, RFC 3339, as far as whoever put it there has said so.
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
    /// Takes what is needed; what is absent reads as empty.
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
        }
    }
}

/// What is read of a pod on the Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid; the precondition of its eviction.
    pub uid: String,
    /// Whether a DaemonSet controls it: it would be back at once.
    pub is_of_daemon_set: bool,
    /// Whether it mirrors a static pod of the kubelet, which no API call can remove.
    pub is_mirror: bool,
    /// Whether it has succeeded or failed.
    pub is_finished: bool,
    /// Whether it is already on its way out.
    pub is_deleting: bool,
}

impl From<&core::Pod> for Pod {
    /// Takes what is needed; what is absent reads as empty.
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
