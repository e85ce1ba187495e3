//! The operator: its namespace, its Deployment and the objects around it.

use std::collections::BTreeSet;

use fivespot_api::{crd, name};
use serde_json::{Map, Value, json};

use crate::agent;
use crate::pod::{self, EPHEMERAL_STORAGE, HEALTH_PORT, METRICS_PORT, NodeFeatures};
use crate::role::{NamespaceScope, Rights, metadata};
use crate::webhook;

/// The ports on which API servers usually listen.
const API_SERVER_PORTS: [u16; 2] = [443, 6443];

/// The port on which a control plane of k0smotron listens, unless its `spec.service.apiPort` is
/// set.
const K0SMOTRON_PORT: u16 = 30443;

const NETWORK_POLICY: (&str, &str) = ("networking.k8s.io/v1", "NetworkPolicy");

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
        }
    }
}

impl Settings {
    fn object(&self, (version, kind): (&str, &str), name: &str) -> Value {
        json!({
            "apiVersion": version,
            "kind": kind,
            "metadata": metadata(name, Some(&self.rights.namespace)),
        })
    }

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

    /// The ServiceAccount to which the roles are bound. Its token is mounted only if a pod
    /// requests it.
    pub fn service_account(&self) -> Value {
        let mut account = self.object(("v1", "ServiceAccount"), name::CONTROLLER);
        account["automountServiceAccountToken"] = false.into();
        account
    }

    /// The Deployment of the operator.
    pub fn deployment(&self) -> Value {
        let mut deployment = self.object(("apps/v1", "Deployment"), name::CONTROLLER);
        let identity = (name::CONTROLLER, &name::controller_labels());
        deployment["spec"] = pod::deployment(
            identity,
            self.replicas,
            self.node_features,
            self.container(),
        );
        if let Some(source) = &self.zoneinfo {
            let pod = &mut deployment["spec"]["template"]["spec"];
            let mut volume = source.clone();
            volume.insert("name".to_owned(), ZONEINFO.into());
            pod["volumes"] = json!([volume]);
            pod["containers"][0]["volumeMounts"] = json!([{
                "name": ZONEINFO,
                "mountPath": ZONEINFO_DIR,
                "readOnly": true,
            }]);
        }
        deployment
    }

    fn container(&self) -> Value {
        json!({
            "name": "controller",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "args": self.arguments(),
            "env": [
                pod::env_from_field("POD_NAME", "metadata.name"),
                pod::env_from_field("POD_NAMESPACE", "metadata.namespace"),
            ],
            "ports": [
                {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
                {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            ],
            "livenessProbe": pod::probe("/healthz", 3),
            "readinessProbe": pod::probe("/readyz", 2),
            "resources": resources(),
            "securityContext": pod::container_security_context(),
        })
    }

    /// The arguments of `5spot-controller` with which the operator is started.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec!["--enable-leader-election".to_owned()];
        if let NamespaceScope::Only(namespaces) = &self.rights.namespaces {
            let named: Vec<&str> = namespaces.iter().map(String::as_str).collect();
            words.push(format!("--namespaces={}", named.join(",")));
        }
        if self.rights.is_workload_cluster {
            words.push("--node-access=management".to_owned());
        }
        if let Some(span) = &self.rights.reclaim_override {
            words.push(format!("--reclaim-by-override={span}"));
        }
        if self.zoneinfo.is_some() {
            words.push(format!("--zoneinfo={ZONEINFO_DIR}"));
        }
        words
    }

    /// The Service of the metrics endpoint. Older Kubernetes versions reject a Service name
    /// that starts with a digit.
    pub fn service(&self) -> Value {
        let mut service = self.object(("v1", "Service"), "controller-metrics");
        service["spec"] = json!({
            "selector": name::controller_labels(),
            "ports": [{
                "name": "metrics",
                "port": METRICS_PORT,
                "targetPort": "metrics",
                "protocol": "TCP",
            }],
        });
        service
    }

    /// Keeps one replica while nodes are drained.
    pub fn disruption_budget(&self) -> Value {
        let mut budget =
            self.object(("policy/v1", "PodDisruptionBudget"), name::CONTROLLER);
        budget["spec"] = json!({
            "maxUnavailable": 1,
            "selector": {"matchLabels": name::controller_labels()},
        });
        budget
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
            let mut nothing = self.object(NETWORK_POLICY, "deny-all");
            nothing["spec"] = json!({
                "podSelector": {},
                "policyTypes": ["Ingress", "Egress"],
            });
            all.push(nothing);
        }
        all.push(self.allowed_traffic());
        all
    }

    fn allowed_traffic(&self) -> Value {
        let mut needed = self.object(NETWORK_POLICY, name::CONTROLLER);
        needed["spec"] = json!({
            "podSelector": {"matchLabels": name::controller_labels()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{
                "from": pod::metrics_readers(&self.network.metrics_namespace),
                "ports": pod::tcp_ports(&[METRICS_PORT].into()),
            }],
            "egress": [pod::dns(), {"ports": self.network.api_servers()}],
        });
        needed
    }

    /// All objects above.
    pub fn workload(&self) -> Vec<Value> {
        let mut all = vec![self.service_account(), self.deployment(), self.service()];
        all.push(self.disruption_budget());
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
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name::SYSTEM_NAMESPACE, "labels": labels},
    })
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
