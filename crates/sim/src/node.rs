//! Nodes: a host that joins, and becomes Ready.

use fivespot_capi::key::CLUSTER_NAME;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::contract::seconds;
use crate::object::{annotation, instant, list, map, name, namespace, text, uid};
use crate::write::{NODES, Step};

/// The time from a Node's creation until it is Ready.
const NODE_READY_TIME: SignedDuration = SignedDuration::from_secs(5);

/// The annotation of a simulated Node with its Machine, `<namespace>/<name>`.
pub(crate) const MACHINE: &str = "sim.5spot.finos.org/machine";

/// The annotation of a Node with which its kubelet is `stopped`: it reports no status.
const KUBELET: &str = "sim.5spot.finos.org/kubelet";

/// The reason of the condition of a Node whose kubelet reports no status.
const SILENT: &str = "NodeStatusUnknown";

/// The permanent Node, on which replacement pods run.
pub(crate) const PERMANENT_NODE: &str = "sim-node-0";

/// The Node that a Machine's host registers.
pub(crate) fn node_of_machine(
    machine: &Value,
    provider_id: &str,
    now: Timestamp,
) -> Value {
    let name = name(machine);
    let mut labels = propagated(&map(machine, "/metadata/labels"));
    labels.insert("kubernetes.io/hostname".to_owned(), json!(name));
    labels.insert("kubernetes.io/os".to_owned(), json!("linux"));
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {
                CLUSTER_NAME: text(machine, "/spec/clusterName"),
                "cluster.x-k8s.io/cluster-namespace": namespace(machine),
                "cluster.x-k8s.io/machine": name,
                MACHINE: format!("{}/{name}", namespace(machine)),
            },
        },
        "spec": {"providerID": provider_id},
        "status": status(uid(machine), Kubelet::Starting, now),
    })
}

/// The Node that exists from the start and belongs to no Machine.
pub(crate) fn permanent_node(now: Timestamp) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": PERMANENT_NODE,
            "labels": {
                "kubernetes.io/hostname": PERMANENT_NODE,
                "kubernetes.io/os": "linux",
                "node-role.kubernetes.io/control-plane": "",
            },
        },
        "spec": {"providerID": format!("sim://{PERMANENT_NODE}")},
        "status": status(PERMANENT_NODE, Kubelet::Ready, now),
    })
}

/// The labels of a Machine that Cluster API propagates to its Node.
pub(crate) fn propagated(labels: &Map<String, Value>) -> Map<String, Value> {
    let is_propagated = |key: &str| {
        let Some((prefix, _)) = key.split_once('/') else {
            return false;
        };
        prefix == "node-role.kubernetes.io"
            || ["node-restriction.kubernetes.io", "node.cluster.x-k8s.io"]
                .iter()
                .any(|domain| prefix.strip_suffix(domain).is_some_and(is_subdomain_part))
    };
    labels
        .iter()
        .filter(|(key, _)| is_propagated(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn is_subdomain_part(rest: &str) -> bool {
    rest.is_empty() || rest.ends_with('.')
}

pub(crate) fn is_ready(node: &Value) -> bool {
    list(node, "/status/conditions").iter().any(|condition| {
        text(condition, "/type") == Some("Ready")
            && text(condition, "/status") == Some("True")
    })
}

/// The kubelet's part: some seconds after joining, the Node is ready, until the kubelet is stopped
/// with the annotation.
///
/// A Node that is not simulated is not changed. Nor is one that was ready before, because a
/// test may have made it unready.
pub(crate) fn step(node: &Value, now: Timestamp) -> Step {
    let of_a_machine = annotation(node, MACHINE).is_some();
    let has_reason = |reason: &str| {
        let mut conditions = list(node, "/status/conditions").iter();
        conditions.any(|condition| text(condition, "/reason") == Some(reason))
    };
    if !of_a_machine || crate::object::is_deleting(node) {
        return Step::idle();
    }
    let machine_id = text(node, "/status/nodeInfo/machineID").unwrap_or_default();
    let patched =
        |kubelet| Step::patch_status(NODES, node, status(machine_id, kubelet, now));
    match (annotation(node, KUBELET), has_reason(SILENT)) {
        (Some("stopped"), true) => return Step::idle(),
        (Some("stopped"), false) => return patched(Kubelet::Stopped),
        (_, true) => return patched(Kubelet::Ready),
        (_, false) => {}
    }
    if has_reason("KubeletReady") {
        return Step::idle();
    }
    let Some(created) = instant(node, "/metadata/creationTimestamp") else {
        return Step::idle();
    };
    let due = created + NODE_READY_TIME;
    if due > now {
        return Step::at(due);
    }
    patched(Kubelet::Ready)
}

/// What a kubelet reports.
#[derive(Clone, Copy)]
enum Kubelet {
    Starting,
    Ready,
    Stopped,
}

fn status(machine_id: &str, kubelet: Kubelet, now: Timestamp) -> Value {
    let now = seconds(now);
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    };
    let (status, reason) = match kubelet {
        Kubelet::Starting => ("False", "KubeletNotReady"),
        Kubelet::Ready => ("True", "KubeletReady"),
        Kubelet::Stopped => ("Unknown", SILENT),
    };
    let resources = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
    json!({
        "capacity": resources,
        "allocatable": resources,
        "conditions": [
            condition("Ready", status, reason),
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        ],
        "nodeInfo": {
            "machineID": machine_id,
            "systemUUID": machine_id,
            "bootID": machine_id,
            "kernelVersion": "6.1.0-sim",
            "osImage": "simulated",
            "containerRuntimeVersion": "containerd://2.1.0",
            "kubeletVersion": "v1.36.0+k0s.0",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Write;

    #[test]
    fn a_stopped_kubelet_reports_nothing_until_it_runs_again() {
        let now: Timestamp = "2026-03-06T15:00:00Z".parse().unwrap();
        let ready = |node: &Value| {
            let conditions = list(node, "/status/conditions");
            conditions[0]["status"].as_str().unwrap().to_owned()
        };
        // Takes the step, and says whether there was one.
        let mut node = json!({
            "metadata": {
                "name": "worker", "creationTimestamp": "2026-03-06T14:00:00Z",
                "annotations": {MACHINE: "default/worker"},
            },
            "status": status("m", Kubelet::Ready, now),
        });
        let take = |node: &mut Value| {
            let [Write::Patch { body, .. }] = &step(node, now).writes[..] else {
                return false;
            };
            node["status"] = body["status"].clone();
            true
        };
        assert!(!take(&mut node));
        node["metadata"]["annotations"][KUBELET] = json!("stopped");
        assert!(take(&mut node));
        assert_eq!(ready(&node), "Unknown");
        assert!(!take(&mut node), "it stays so");
        node["metadata"]["annotations"][KUBELET] = Value::Null;
        assert!(take(&mut node));
        assert_eq!(ready(&node), "True");
    }

    #[test]
    fn only_the_labels_that_cluster_api_propagates_are_on_the_node() {
        let labels = json!({
            "node-role.kubernetes.io/worker": "",
            "node.cluster.x-k8s.io/pool": "a",
            "pool.node.cluster.x-k8s.io/b": "c",
            "evilnode.cluster.x-k8s.io/x": "y",
            "team": "z",
        });
        let retained = propagated(labels.as_object().unwrap());
        let keys: Vec<_> = retained.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "node-role.kubernetes.io/worker",
                "node.cluster.x-k8s.io/pool",
                "pool.node.cluster.x-k8s.io/b"
            ]
        );
    }
}
