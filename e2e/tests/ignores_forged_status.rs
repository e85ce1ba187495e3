//! A user who may write a status, create a Machine or name a Node gains nothing by it: objects that
//! do not belong to the operator are neither cordoned, drained, tainted nor deleted.

use fivespot_api::{name, reclaim};
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Contract, condition, instant, machine_path,
    node_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_forged_status_of_an_active_machine_changes_nothing),
    promise!(a_forged_status_of_a_removed_machine_changes_nothing),
    promise!(a_forged_machine_changes_no_node),
    promise!(a_node_that_two_machines_claim_is_not_changed),
];

/// A Node and two provider objects of another owner. The Node has a request to be reclaimed.
async fn bystanders(cluster: &Cluster) -> Value {
    cluster
        .apply(&json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "bystander", "annotations": {
                name::RECLAIM_REQUESTED_ANNOTATION: reclaim::REQUESTED,
                // The annotation in which Cluster API names the Machine of a Node.
                "cluster.x-k8s.io/machine": "bystander",
                "cluster.x-k8s.io/cluster-namespace": "elsewhere",
            }},
            "spec": {"providerID": "remote-machine://bystander.example:22"},
        }))
        .await;
    let spec = &scheduled_machine("bystander")["spec"];
    for part in ["bootstrapSpec", "infrastructureSpec"] {
        cluster
            .apply(&json!({
                "apiVersion": spec[part]["apiVersion"],
                "kind": spec[part]["kind"],
                "metadata": {"name": "bystander", "namespace": "default"},
                "spec": spec[part]["spec"],
            }))
            .await;
    }
    cluster.get(&node_path("bystander")).await.unwrap()
}

/// A status that names the bystanders as the worker's objects and Node, and whose account cannot
/// grow.
fn forged(cluster: &Cluster, node: &Value) -> Value {
    let spec = &scheduled_machine("bystander")["spec"];
    let of = |api_version: &Value, kind: &Value| json!({"apiVersion": api_version, "kind": kind, "name": "bystander", "uid": "u"});
    let made_from = |part: &str| of(&spec[part]["apiVersion"], &spec[part]["kind"]);
    let machines = json!(cluster.contract().api_version());
    let full = json!({
        "month": "2026-03", "activeSeconds": i64::MAX, "wantedSeconds": i64::MAX,
        "provisioningSeconds": i64::MAX, "lateSeconds": i64::MAX, "reclaims": i64::MAX,
    });
    json!({"status": {
        "usage": {
            "months": [full],
            "accountedTime": "2026-03-01T00:00:00Z", "accountedState": "Active",
        },
        "nodeRef": {
            "apiVersion": "v1", "kind": "Node",
            "name": node["metadata"]["name"], "uid": node["metadata"]["uid"],
        },
        "providerID": node["spec"]["providerID"],
        "machineRef": of(&machines, &json!("Machine")),
        "bootstrapRef": made_from("bootstrapSpec"),
        "infrastructureRef": made_from("infrastructureSpec"),
        "appliedNodeTaints": [{"key": "workload", "effect": "NoSchedule"}],
    }})
}

/// The operator's writes to objects with the name of the bystander.
fn reported_bystanders(cluster: &Cluster) -> Vec<String> {
    let writes = cluster.operator_writes();
    let of_bystanders = writes
        .iter()
        .filter(|event| event.path.contains("bystander"));
    of_bystanders
        .map(|event| format!("{} {}", event.verb, event.path))
        .collect()
}

async fn forge(cluster: &Cluster, status: &Value) {
    let path = format!("{}/status", machine_path("worker"));
    cluster.patch(&path, status).await;
}

async fn a_forged_status_of_an_active_machine_changes_nothing() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let node = bystanders(&cluster).await;
    // First without an operator that restores the status before the window closes, and then with
    // one.
    forge(&cluster, &forged(&cluster, &node)).await;
    cluster.settle().await;
    drop(operator);
    forge(&cluster, &forged(&cluster, &node)).await;
    let _heir = cluster.operator();
    let is_mended =
        |object: &Value| object["status"]["nodeRef"] == active["status"]["nodeRef"];
    let mended = cluster
        .wait_briefly(&machine_path("worker"), is_mended)
        .await;
    assert_eq!(mended["status"]["phase"], "Active");
    assert_eq!(
        mended["status"]["machineRef"],
        active["status"]["machineRef"]
    );
    assert_eq!(mended["spec"]["schedule"]["enabled"], true);
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    assert_eq!(reported_bystanders(&cluster), [""; 0]);
}

async fn a_forged_status_of_a_removed_machine_changes_nothing() {
    let cluster = Cluster::start(instant("2026-03-06T23:10:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    let limit = instant("2026-03-06T23:11:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    let node = bystanders(&cluster).await;
    let mut status = forged(&cluster, &node);
    status["status"]["shutdown"] = json!({
        "machineUID": "u", "startedAt": "2026-03-06T23:00:00Z",
        "deadline": "2026-03-06T23:05:00Z", "reason": "Reclaim",
    });
    forge(&cluster, &status).await;
    cluster.advance_to("2026-03-06T23:30:00Z").await;
    let object = cluster.get(&machine_path("worker")).await.unwrap();
    assert_eq!(object["spec"]["schedule"]["enabled"], true);
    cluster.delete(&machine_path("worker")).await;
    let limit = instant("2026-03-06T23:45:00Z");
    cluster
        .wait_until_gone(&machine_path("worker"), limit)
        .await;
    assert_eq!(reported_bystanders(&cluster), [""; 0]);
    let after = cluster.get(&node_path("bystander")).await.unwrap();
    assert_eq!(
        after["metadata"]["annotations"],
        node["metadata"]["annotations"]
    );
}

/// A Machine of the Cluster with that provider ID.
fn decoy(cluster: &Cluster, name: &str, provider_id: &Value) -> Value {
    let group = "infrastructure.cluster.x-k8s.io";
    let infrastructure = match cluster.contract() {
        Contract::V1Beta1 => json!({
            "apiVersion": format!("{group}/v1beta1"), "kind": "RemoteMachine", "name": "elsewhere",
        }),
        Contract::V1Beta2 => {
            json!({"apiGroup": group, "kind": "RemoteMachine", "name": "elsewhere"})
        }
    };
    json!({
        "apiVersion": cluster.contract().api_version(),
        "kind": "Machine",
        "metadata": {
            "name": name, "namespace": "default",
            "labels": {"cluster.x-k8s.io/cluster-name": "production-cluster"},
        },
        "spec": {
            "clusterName": "production-cluster",
            "bootstrap": {"dataSecretName": "by-hand"},
            "infrastructureRef": infrastructure,
            "providerID": provider_id,
        },
    })
}

/// Creates such a Machine, and sets the Node in its status. With an owner, it claims to be that
/// ScheduledMachine's.
async fn claim(cluster: &Cluster, name: &str, owner: Option<&str>, node: &Value) {
    let machines = cluster.owned_paths("")[2].clone();
    let mut decoy = decoy(cluster, name, &node["spec"]["providerID"]);
    if let Some(owner) = owner {
        decoy["metadata"]["labels"][name::SCHEDULED_MACHINE_LABEL] = json!(owner);
    }
    cluster.apply(&decoy).await;
    let mut node_ref = json!({"name": node["metadata"]["name"]});
    if cluster.contract() == Contract::V1Beta1 {
        node_ref["apiVersion"] = json!("v1");
        node_ref["kind"] = json!("Node");
        node_ref["uid"] = node["metadata"]["uid"].clone();
    }
    let path = format!("{machines}{name}/status");
    cluster
        .patch(&path, &json!({"status": {"nodeRef": node_ref}}))
        .await;
}

async fn a_node_that_two_machines_claim_is_not_changed() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let node = cluster.get(&node_path("worker")).await.unwrap();
    // Another controller's, such as a MachineDeployment's.
    claim(&cluster, "deployment-abcde", None, &node).await;
    let taints = json!({"spec": {"nodeTaints": [
        {"key": "workload", "effect": "NoExecute"},
    ]}});
    cluster.patch(&machine_path("worker"), &taints).await;
    let is_reported = |object: &Value| {
        condition(&object["status"], "NodeAccess")["reason"] == "NodeNotOurs"
    };
    let limit = instant("2026-03-06T22:55:00Z");
    let worker = machine_path("worker");
    let reported = cluster.wait_for(&worker, limit, is_reported).await;
    assert_eq!(reported["status"]["phase"], "Active");
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(cluster.operator_writes_to("nodes"), [""; 0]);
    assert_eq!(cluster.operator_writes_to("pods/eviction"), [""; 0]);
}

async fn a_forged_machine_changes_no_node() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let node = bystanders(&cluster).await;
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeTaints"] = json!([{"key": "workload", "effect": "NoSchedule"}]);
    let active = cluster.bring_up(&worker).await;
    let machines = cluster.owned_paths("")[2].clone();
    for name in ["worker-machine", "bystander-of-worker"] {
        claim(&cluster, name, Some("worker"), &node).await;
    }
    cluster.settle().await;
    let status = cluster.status("worker").await;
    assert_eq!(status["nodeRef"], active["status"]["nodeRef"]);
    assert_eq!(status["machineRef"], active["status"]["machineRef"]);
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(reported_bystanders(&cluster), [""; 0]);
    let decoy = format!("{machines}worker-machine");
    let left = cluster.get(&decoy).await.unwrap();
    assert_eq!(left["metadata"].get("deletionTimestamp"), None);
}
