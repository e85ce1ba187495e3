//! What all pods of the operator have in common, such as a restricted security context.

use std::collections::{BTreeMap, BTreeSet};

pub use fivespot_api::port::{HEALTH as HEALTH_PORT, METRICS as METRICS_PORT};
use serde_json::{Value, json};

use crate::component::Component;

/// The user and the group of the processes: `nobody`.
pub(crate) const NOBODY: u32 = 65532;

/// What the nodes are known to support, so that the pods may require it. The default is nothing:
/// a kubelet refuses a pod that requires what its node lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeFeatures {
    /// `AppArmor` is enabled. Without the field, a runtime applies its default profile where
    /// `AppArmor` is enabled; with it, a pod does not run without the profile. The field exists
    /// from Kubernetes [1.30](APPARMOR_SINCE) on.
    pub app_armor: bool,
    /// The kernel and the runtime support user namespaces. Enabled by default from Kubernetes
    /// [1.33](USER_NAMESPACES_SINCE) on.
    pub user_namespaces: bool,
}

/// The first minor version whose API server knows the field `appArmorProfile`.
pub const APPARMOR_SINCE: u32 = 30;
/// The first minor version whose API server enables user namespaces by default.
pub const USER_NAMESPACES_SINCE: u32 = 33;

/// The profile that a container runtime applies by default.
pub(crate) fn runtime_default() -> Value {
    json!({"type": "RuntimeDefault"})
}

fn security_context(features: NodeFeatures) -> Value {
    let mut context = json!({
        "runAsNonRoot": true,
        "runAsUser": NOBODY,
        "runAsGroup": NOBODY,
        "seccompProfile": runtime_default(),
    });
    if features.app_armor {
        context["appArmorProfile"] = runtime_default();
    }
    context
}

pub(crate) fn container_security_context() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "privileged": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}

/// Keeps all replicas but one while nodes are drained.
pub(crate) fn disruption_budget(component: &Component, name: &str) -> Value {
    let selector = json!({"matchLabels": component.labels});
    let spec = json!({"maxUnavailable": 1, "selector": selector});
    component.object("PodDisruptionBudget", name, json!({"spec": spec}))
}

/// A Service of the component, whose port and that of its pods have the same name.
pub(crate) fn service(
    component: &Component,
    name: &str,
    (port_name, port): (&str, u16),
) -> Value {
    let port = json!({
        "name": port_name, "port": port, "targetPort": port_name, "protocol": "TCP",
    });
    let spec = json!({"selector": component.labels, "ports": [port]});
    component.object("Service", name, json!({"spec": spec}))
}

/// A network policy that allows this traffic of a component's pods, and no other.
pub(crate) fn network_policy(
    component: &Component,
    name: &str,
    ingress: &[Value],
    egress: &[Value],
) -> Value {
    let mut spec = json!({
        "podSelector": {"matchLabels": component.labels},
        "policyTypes": ["Ingress", "Egress"],
    });
    for (direction, rules) in [("ingress", ingress), ("egress", egress)] {
        if !rules.is_empty() {
            spec[direction] = json!(rules);
        }
    }
    component.object("NetworkPolicy", name, json!({"spec": spec}))
}

/// The peers from which a network policy allows reads of the metrics: the pods of a namespace.
pub(crate) fn metrics_readers(namespace: &str) -> Value {
    json!([{"namespaceSelector": {"matchLabels": {
        "kubernetes.io/metadata.name": namespace,
    }}}])
}

/// The rule of a network policy that allows DNS.
pub(crate) fn dns() -> Value {
    let ports = ["UDP", "TCP"].map(|protocol| json!({"protocol": protocol, "port": 53}));
    json!({"to": [{"namespaceSelector": {}}], "ports": ports})
}

/// Ports of TCP, as in a network policy.
pub(crate) fn tcp_ports(ports: &BTreeSet<u16>) -> Vec<Value> {
    let ports = ports.iter();
    ports
        .map(|port| json!({"protocol": "TCP", "port": port}))
        .collect()
}

/// A Deployment whose pods run as the ServiceAccount of the same name and have only `container`. A
/// rollout creates a new replica before it removes an old one.
pub(crate) fn deployment(
    (component, name): (&Component, &str),
    replicas: u32,
    features: NodeFeatures,
    container: Value,
) -> Value {
    let labels = &component.labels;
    let mut spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "serviceAccountName": name,
                "automountServiceAccountToken": true,
                "enableServiceLinks": false,
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "topologySpreadConstraints": spread(labels),
                "securityContext": security_context(features),
                "containers": [container],
            },
        },
    });
    if features.user_namespaces {
        spec["template"]["spec"]["hostUsers"] = false.into();
    }
    component.object("Deployment", name, json!({"spec": spec}))
}

/// The ephemeral storage of a container: it writes no files, but a kubelet also counts its logs,
/// of which it keeps 50 MiB by default.
pub(crate) const EPHEMERAL_STORAGE: (&str, &str) = ("64Mi", "1Gi");

/// Spreads the replicas over the nodes where possible.
fn spread(labels: &BTreeMap<String, String>) -> Value {
    json!([{
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }])
}

/// A probe of the port `health`.
pub(crate) fn probe(path: &str, failures: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "health"},
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    })
}

/// An environment variable with the value of a field of the pod.
pub(crate) fn env_from_field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}
