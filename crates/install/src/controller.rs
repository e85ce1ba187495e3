//! The operator: its namespace, its Deployments and the objects around them.

mod part;

use std::collections::BTreeSet;

use fivespot_api::{crd, name};
use serde_json::{Map, Value, json};

use crate::agent;
use crate::component::Component;
use crate::pod::{self, EPHEMERAL_STORAGE, NodeFeatures};
use crate::role::{NamespaceScope, Rights};
use crate::webhook;
pub(crate) use part::Part;

/// The ports on which API servers usually listen.
const API_SERVER_PORTS: [u16; 2] = [443, 6443];

/// The port on which a control plane of k0smotron listens, unless its `spec.service.apiPort` is
/// set.
const K0SMOTRON_PORT: u16 = 30443;

/// The name of the volume with time zones.
pub(crate) const ZONEINFO: &str = "zoneinfo";

/// Where that volume is mounted.
pub(crate) const ZONEINFO_DIR: &str = "/usr/share/zoneinfo";

/// The memory limit of a replica, in MiB.
pub const MEMORY_LIMIT_MIB: u32 = 256;

/// The first minor version whose API server enables admission policies by default.
pub const POLICIES_SINCE: u32 = 30;

/// The operator in one management cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its permissions and its namespace.
    pub rights: Rights,
    /// The image with `5spot-controller` as its entry point.
    pub image: String,
    /// The image of the agent, in the files beside `install.yaml`.
    pub agent_image: String,
    /// The image of the webhook, in the files beside `install.yaml`.
    pub webhook_image: String,
    /// Number of replicas; one is the leader, the others are on standby.
    pub replicas: u32,
    /// The oldest Kubernetes version that must accept the manifests, 1.`kube_minor`.
    pub kube_minor: u32,
    /// What its NetworkPolicy allows.
    pub network: Network,
    /// What its pods require of their nodes.
    pub node_features: NodeFeatures,
    /// The source of a volume with the time zones, as in the `volumes` of a pod but without a
    /// name. `None` for those of the image.
    pub zoneinfo: Option<Map<String, Value>>,
    /// For how long a reclaim stops a machine with an override, a duration such as `4h`. `None`
    /// if it disables the schedule.
    pub reclaim_override: Option<String>,
}

/// The traffic that the NetworkPolicies allow for the pods of the operator, in addition to DNS, and
/// of the webhook.
///
/// The default is sufficient for the default provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The ports of API servers to which they may connect.
    pub egress_ports: BTreeSet<u16>,
    /// The namespace from which their metrics may be read.
    pub metrics_namespace: String,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            egress_ports: API_SERVER_PORTS
                .into_iter()
                .chain([K0SMOTRON_PORT])
                .collect(),
            metrics_namespace: "monitoring".to_owned(),
        }
    }
}

impl Network {
    /// The ports of API servers, as in a NetworkPolicy.
    pub(crate) fn api_servers(&self) -> Vec<Value> {
        pod::tcp_ports(&self.egress_ports)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rights: Rights::default(),
            image: format!("5spot-controller:{}", env!("CARGO_PKG_VERSION")),
            agent_image: agent::Settings::default().image,
            webhook_image: webhook::Settings::default().image,
            replicas: 2,
            kube_minor: crd::SHIPPED_MINOR,
            network: Network::default(),
            node_features: NodeFeatures::default(),
            zoneinfo: None,
            reclaim_override: None,
        }
    }
}

impl Settings {
    /// The namespace, if it is the operator's own one. `None` for a namespace that may be shared:
    /// its owner creates it, and a `kubectl delete` of the manifests must not delete it.
    pub fn namespace(&self) -> Option<Value> {
        self.has_own_namespace().then(system_namespace)
    }

    /// Whether the namespace is the operator's own, as its name implies.
    fn has_own_namespace(&self) -> bool {
        self.rights.namespace == name::SYSTEM_NAMESPACE
    }

    /// Whether the API server supports admission policies.
    pub(crate) fn supports_policies(&self) -> bool {
        self.kube_minor >= POLICIES_SINCE
    }

    /// The Deployment of the operator.
    pub fn deployment(&self) -> Value {
        self.operator().deployment()
    }

    /// The operator: its machines, and capacities unless they have a controller of their own.
    pub(crate) fn operator(&self) -> Part<'_> {
        Part {
            settings: self,
            name: name::CONTROLLER,
            component: operator(&self.rights.namespace),
            metrics: "controller-metrics",
            arguments: self.arguments(),
        }
    }

    /// The controller of ScheduledCapacities, if it has an identity of its own.
    pub(crate) fn capacity_controller(&self) -> Part<'_> {
        Part {
            settings: self,
            name: name::CAPACITY_CONTROLLER,
            component: Component {
                labels: name::capacity_labels(),
                ..operator(&self.rights.namespace)
            },
            metrics: "capacity-metrics",
            arguments: self.capacity_arguments(),
        }
    }

    /// The arguments of `5spot-controller` with which the operator is started.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = self.common_arguments();
        if self.rights.is_capacity_apart() {
            words.push("--controllers=machines".to_owned());
        }
        if self.rights.is_workload_cluster {
            words.push("--node-access=management".to_owned());
        }
        if let Some(span) = &self.reclaim_override {
            words.push(format!("--reclaim-by-override={span}"));
        }
        words
    }

    /// The arguments of the controller of capacities.
    fn capacity_arguments(&self) -> Vec<String> {
        let mut words = self.common_arguments();
        words.push("--controllers=capacity".to_owned());
        words.push(format!("--lease-name={}", name::CAPACITY_LEASE));
        words
    }

    fn common_arguments(&self) -> Vec<String> {
        let mut words = vec!["--enable-leader-election".to_owned()];
        if let NamespaceScope::Only(namespaces) = &self.rights.namespaces {
            let named: Vec<&str> = namespaces.iter().map(String::as_str).collect();
            words.push(format!("--namespaces={}", named.join(",")));
        }
        if self.zoneinfo.is_some() {
            words.push(format!("--zoneinfo={ZONEINFO_DIR}"));
        }
        words
    }

    /// The NetworkPolicies. They allow DNS, API servers on the ports of [`Network`], and reads
    /// of the metrics from its namespace. They deny all other traffic of the operator's pods
    /// and, if the namespace is the operator's own, of all its pods. Probes come from the pod's
    /// own node, from which Kubernetes always allows traffic.
    ///
    /// Policies are additive: another one may allow more, such as an API server on another
    /// port.
    pub fn network_policies(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if self.has_own_namespace() {
            let nothing =
                json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
            let fields = json!({"spec": nothing});
            let component = operator(&self.rights.namespace);
            all.push(component.object("NetworkPolicy", "deny-all", fields));
        }
        all.extend(self.parts().iter().map(Part::allowed_traffic));
        all
    }

    /// What has a Deployment.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = vec![self.operator()];
        if self.rights.is_capacity_apart() {
            parts.push(self.capacity_controller());
        }
        parts
    }

    /// All objects above.
    pub fn workload(&self) -> Vec<Value> {
        let parts = self.parts();
        let mut all: Vec<Value> = parts.iter().flat_map(Part::objects).collect();
        all.extend(self.network_policies());
        all
    }
}

/// The namespace of the operator, and of the agents' configurations in a workload cluster. It
/// enforces the restricted Pod Security Standard.
pub fn system_namespace() -> Value {
    let mut labels = name::controller_labels();
    labels.remove("app.kubernetes.io/component");
    for mode in ["enforce", "audit", "warn"] {
        labels.insert(
            format!("pod-security.kubernetes.io/{mode}"),
            "restricted".to_owned(),
        );
    }
    let component = Component {
        namespace: String::new(),
        labels,
    };
    component.object("Namespace", name::SYSTEM_NAMESPACE, json!({}))
}

/// The operator in this namespace.
pub(crate) fn operator(namespace: &str) -> Component {
    Component {
        namespace: namespace.to_owned(),
        labels: name::controller_labels(),
    }
}

/// The resource requests and limits of a replica.
pub(crate) fn resources() -> Value {
    json!({
        "requests": {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": EPHEMERAL_STORAGE.0},
        "limits": {
            "cpu": "500m",
            "memory": format!("{MEMORY_LIMIT_MIB}Mi"),
            "ephemeral-storage": EPHEMERAL_STORAGE.1,
        },
    })
}
