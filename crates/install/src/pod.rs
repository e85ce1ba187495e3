//! What all pods of the operator have in common: they may do nothing to their nodes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The user and the group of the processes: of nobody.
const NOBODY: u32 = 65532;

pub(crate) fn security_context() -> Value {
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

/// Instances keep apart where there are nodes enough.
pub(crate) fn spread(labels: &BTreeMap<String, String>) -> Value {
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

/// An environment variable with a field of the pod.
pub(crate) fn field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}
