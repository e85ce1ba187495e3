//! What all pods of the operator have in common, such as a restricted security context.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The user and the group of the processes: `nobody`.
pub(crate) const NOBODY: u32 = 65532;

fn security_context() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": NOBODY,
        "runAsGroup": NOBODY,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

pub(crate) fn container_security_context() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "privileged": false,
        "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]},
    })
}

/// The port of the metrics.
pub const METRICS_PORT: u16 = 8080;
/// The port of the probes.
pub const HEALTH_PORT: u16 = 8081;

/// The peers from which a network policy allows reads of the metrics: the pods of a namespace.
pub(crate) fn metrics_readers(namespace: &str) -> Value {
    json!([{"namespaceSelector": {"matchLabels": {
        "kubernetes.io/metadata.name": namespace,
    }}}])
}

/// The `spec` of a Deployment whose pods have `labels`, run as `account` and have only
/// `container`. A rollout creates a new replica before it removes an old one.
pub(crate) fn deployment(
    (account, labels): (&str, &BTreeMap<String, String>),
    replicas: u32,
    container: Value,
) -> Value {
    json!({
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "serviceAccountName": account,
                "automountServiceAccountToken": true,
                "enableServiceLinks": false,
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "topologySpreadConstraints": spread(labels),
                "securityContext": security_context(),
                "containers": [container],
            },
        },
    })
}

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
