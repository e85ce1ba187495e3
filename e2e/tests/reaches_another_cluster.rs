//! Nodes and pods are accessed only in the cluster of their Cluster's kubeconfig.

use fivespot_install::role::Rights;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Contract, condition, instant, machine_path,
    node_path, pod, pod_path, scheduled_machine,
};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    // The older contract refers to the Node by uid too, which differs in another cluster.
    promise!(a_node_is_drained_where_it_is).with_contract(Contract::V1Beta2),
    promise!(a_role_that_names_the_kubeconfig_of_the_cluster_is_enough)
        .on_embedded_alone("changes the roles that all promises share"),
];

const KUBECONFIG: &str =
    "/api/v1/namespaces/default/secrets/production-cluster-kubeconfig";

/// The worker's Node in the other cluster, with one pod.
async fn join(other: &Cluster, node: &str, provider_id: &Value) {
    let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady"}]);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node},
        "spec": {"providerID": provider_id},
    });
    other.apply(&object).await;
    let status = json!({"status": {"conditions": ready}});
    other.patch(&(node_path(node) + "/status"), &status).await;
    other.apply(&pod("only", "shop", node)).await;
}

async fn a_node_is_drained_where_it_is() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let other = cluster.another().await;
    let listening = other.listen().await;
    let node = cluster.node_name("worker");
    join(&other, &node, &active["status"]["providerID"]).await;
    let text = ByteString(listening.kubeconfig().as_bytes().to_vec());
    cluster
        .patch(KUBECONFIG, &json!({"data": {"value": text}}))
        .await;
    // Watch events of the other cluster arrive independently of the test's clock.
    let is_cordoned = async || {
        let found = other.get(&node_path(&node)).await.unwrap_or_default();
        found["spec"]["unschedulable"] == true
    };
    cluster.settle().await;
    cluster.advance_to(CLOSING).await;
    cluster.eventually(is_cordoned).await;
    let is_evicted = async || {
        let pod = other.get(&pod_path("only")).await.unwrap_or_default();
        pod["metadata"].get("deletionTimestamp").is_some() || pod.is_null()
    };
    cluster.eventually(is_evicted).await;
    let here = cluster.get(&node_path("worker")).await.unwrap_or_default();
    assert_eq!(here["spec"].get("unschedulable"), None, "{here:#}");
    let now = json!({"gracePeriodSeconds": 0});
    if other.get(&pod_path("only")).await.is_some() {
        other.delete_with(&pod_path("only"), &now).await;
    }
    let limit = instant("2026-03-06T23:30:00Z");
    let gone = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(condition(&gone["status"], "Ready")["status"], "True");
    assert!(cluster.get(&machine_path("worker")).await.is_some());
}

async fn a_role_that_names_the_kubeconfig_of_the_cluster_is_enough() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let everywhere = "clusterrolebindings/5spot-controller-kubeconfigs";
    cluster.delete(&format!("{roles}/{everywhere}")).await;
    let named = Rights {
        clusters: [("default".to_owned(), "production-cluster".to_owned())].into(),
        ..Rights::default()
    };
    for document in named.kubeconfigs() {
        cluster.apply(&document).await;
    }
    let _operator = cluster.operator();
    let active = cluster.bring_up(&scheduled_machine("worker")).await;
    let access = condition(&active["status"], "NodeAccess");
    assert_eq!(access["reason"], "Connected", "{access}");
    let writes = cluster.operator_writes_to("secrets");
    assert_eq!(writes, [""; 0], "no Secret is written");
    cluster.run_pod("only", "worker").await;
    cluster.advance_to(CLOSING).await;
    let is_leaving = |object: &Value| object["status"]["phase"] == "ShuttingDown";
    cluster
        .wait_briefly(&machine_path("worker"), is_leaving)
        .await;
    let limit = instant("2026-03-06T23:30:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    let evictions = cluster.operator_writes_to("pods/eviction");
    assert!(!evictions.is_empty(), "the Node was drained");
}
