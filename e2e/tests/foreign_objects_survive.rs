//! An object that another owner created with the name of an operator's object is never adopted,
//! changed or deleted.

use fivespot_testkit::{
    Cluster, Contract, condition, instant, machine_path, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_foreign_bootstrap_object),
    promise!(a_foreign_infrastructure_object),
    promise!(a_foreign_machine),
    promise!(a_label_of_ours_alone_makes_nothing_ours),
    promise!(the_machine_is_created_once_the_name_is_free),
];

fn foreign(cluster: &Cluster, kind: &str) -> Value {
    let machines = cluster.contract().api_version();
    let (version, spec) = match kind {
        "K0sWorkerConfig" => ("bootstrap.cluster.x-k8s.io/v1beta1", json!({})),
        "RemoteMachine" => (
            "infrastructure.cluster.x-k8s.io/v1beta1",
            json!({"address": "elsewhere.example", "port": 22}),
        ),
        _ => (
            machines,
            json!({
                "clusterName": "production-cluster",
                "bootstrap": {"dataSecretName": "by-hand"},
                "infrastructureRef": match cluster.contract() {
                    Contract::V1Beta1 => json!({
                        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                        "kind": "RemoteMachine",
                        "name": "elsewhere",
                    }),
                    Contract::V1Beta2 => json!({
                        "apiGroup": "infrastructure.cluster.x-k8s.io",
                        "kind": "RemoteMachine",
                        "name": "elsewhere",
                    }),
                },
            }),
        ),
    };
    json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": spec,
    })
}

/// The operator's accepted writes to the object at `path`.
fn writes_to(cluster: &Cluster, path: &str) -> Vec<String> {
    cluster
        .operator_writes()
        .iter()
        .filter(|event| event.path.starts_with(path) && event.code < 300)
        .map(|event| format!("{} {}", event.verb, event.path))
        .collect()
}

async fn survives(kind: &str, own: usize) {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&foreign(&cluster, kind)).await;
    let paths = cluster.owned_paths("worker");
    if kind == "Machine" {
        let is_adopted =
            |machine: &Value| machine["metadata"]["ownerReferences"].is_array();
        cluster.wait_briefly(&paths[own], is_adopted).await;
    }
    cluster.settle().await;
    let before = cluster.get(&paths[own]).await.unwrap();

    cluster.apply(&scheduled_machine("worker")).await;
    let is_taken = |object: &Value| {
        condition(&object["status"], "ReferencesValid")["reason"] == "NameTaken"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_taken)
        .await;
    cluster.advance_to("2026-03-06T16:00:00Z").await;
    let status = cluster.status("worker").await;
    let references = condition(&status, "ReferencesValid");
    assert_eq!(references["status"], "False");
    assert_eq!(references["reason"], "NameTaken");
    let message = references["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("{} worker", cluster.kind(kind))),
        "{message}"
    );
    // Only Machines of other owners are watched. If the name of the infrastructure object is taken,
    // the bootstrap object exists and waits.
    for (at, path) in paths.iter().enumerate() {
        let is_made = kind == "RemoteMachine" && at < own;
        assert_eq!(
            cluster.get(path).await.is_some(),
            at == own || is_made,
            "{path}"
        );
    }

    // The same is true when the machine is removed.
    let kill = json!({"spec": {"killSwitch": true}});
    cluster.patch(&machine_path("worker"), &kill).await;
    cluster.advance_to("2026-03-06T17:00:00Z").await;
    cluster.delete(&machine_path("worker")).await;
    let limit = instant("2026-03-06T17:01:00Z");
    cluster
        .wait_until_gone(&machine_path("worker"), limit)
        .await;
    for (at, path) in paths.iter().enumerate() {
        assert_eq!(cluster.get(path).await.is_some(), at == own, "{path}");
    }
    assert_eq!(writes_to(&cluster, &paths[own]), [""; 0]);
    let after = cluster.get(&paths[own]).await.unwrap();
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(before["spec"], after["spec"]);
    assert_eq!(
        before["metadata"].get("ownerReferences"),
        after["metadata"].get("ownerReferences")
    );
}

async fn a_foreign_bootstrap_object() {
    survives("K0sWorkerConfig", 0).await;
}

async fn a_foreign_infrastructure_object() {
    survives("RemoteMachine", 1).await;
}

async fn a_foreign_machine() {
    survives("Machine", 2).await;
}

async fn a_label_of_ours_alone_makes_nothing_ours() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let mut claimed = foreign(&cluster, "K0sWorkerConfig");
    claimed["metadata"]["labels"] = json!({
        "5spot.finos.org/scheduled-machine": "worker",
        "5spot.finos.org/scheduled-machine-uid": "somebody-else",
    });
    cluster.apply(&claimed).await;
    cluster.apply(&scheduled_machine("worker")).await;
    let is_taken = |object: &Value| {
        condition(&object["status"], "ReferencesValid")["reason"] == "NameTaken"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_taken)
        .await;
}

async fn the_machine_is_created_once_the_name_is_free() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&foreign(&cluster, "K0sWorkerConfig")).await;
    cluster.apply(&scheduled_machine("worker")).await;
    cluster.advance_to("2026-03-06T15:10:00Z").await;
    let [bootstrap, ..] = cluster.owned_paths("worker");
    cluster.delete(&bootstrap).await;
    let limit = instant("2026-03-06T15:12:00Z");
    cluster.wait_for_phase("worker", "Active", limit).await;
}
