//! A machine opens and closes alike in both contract versions of Cluster API.

use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Contract, condition, instant, scheduled_machine,
};
use serde_json::{Value, json};

async fn opens_and_closes(contract: Contract) -> Value {
    let cluster = Cluster::with_contract(instant(BEFORE_CLOSING), contract).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeDrainTimeout"] = json!("90s");
    let active = cluster.bring_up(&worker).await;
    let status = &active["status"];
    assert_eq!(
        status["machineRef"]["apiVersion"],
        format!("cluster.x-k8s.io/{}", contract.version())
    );
    assert_eq!(status["providerID"], "remote-machine://worker.example:22");
    assert_eq!(condition(status, "Ready")["reason"], "MachineRunning");
    let settled = cluster
        .wait_for(
            &fivespot_testkit::machine_path("worker"),
            instant("2026-03-06T22:52:00Z"),
            |object| condition(&object["status"], "MachineReady")["status"] == "True",
        )
        .await;
    assert_eq!(settled["status"]["phase"], "Active");
    let [_, _, path] = cluster.triple("worker");
    let machine = cluster.get(&path).await.unwrap();
    cluster.run_pod("only", "worker").await;
    cluster.pass_to(CLOSING).await;
    assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
    let limit = instant("2026-03-06T23:01:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    for path in cluster.triple("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    assert_eq!(cluster.operator_told("pods/eviction").len(), 1);
    machine["spec"].clone()
}

#[tokio::test]
async fn the_older_one_is_told_timeouts_as_text_and_versions_in_references() {
    let spec = opens_and_closes(Contract::V1Beta1).await;
    assert_eq!(spec["nodeDrainTimeout"], "90s");
    let api_version = &spec["infrastructureRef"]["apiVersion"];
    assert_eq!(*api_version, "infrastructure.cluster.x-k8s.io/v1beta1");
}

#[tokio::test]
async fn the_newer_one_is_told_timeouts_in_seconds_and_groups_in_references() {
    let spec = opens_and_closes(Contract::V1Beta2).await;
    assert_eq!(spec["deletion"]["nodeDrainTimeoutSeconds"], 90);
    let group = &spec["infrastructureRef"]["apiGroup"];
    assert_eq!(*group, "infrastructure.cluster.x-k8s.io");
}
