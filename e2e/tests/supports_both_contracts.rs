//! A machine opens and closes in the same way with both contract versions of Cluster API, and has
//! the version and the failure domain of its spec.

use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, Contract, condition, instant, scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(the_older_one_gets_timeouts_as_text_and_versions_in_references)
        .with_contract(Contract::V1Beta1),
    promise!(the_newer_one_gets_timeouts_in_seconds_and_groups_in_references)
        .with_contract(Contract::V1Beta2),
    promise!(a_machine_made_by_the_newer_one_is_read_by_the_older)
        .with_contract(Contract::V1Beta2)
        .on_kubernetes_alone("has Cluster API's webhook convert between the contracts"),
];

async fn opens_and_closes(contract: Contract) -> Value {
    let cluster = Cluster::with_contract(instant(BEFORE_CLOSING), contract).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeDrainTimeout"] = json!("90s");
    worker["spec"]["machineTemplate"] =
        json!({"version": "v1.31.2", "failureDomain": "zone-1"});
    let active = cluster.bring_up(&worker).await;
    let status = &active["status"];
    assert_eq!(status["machineRef"]["apiVersion"], contract.api_version());
    assert_eq!(status["providerID"], cluster.provider_id("worker.example"));
    assert_eq!(condition(status, "Ready")["reason"], "MachineRunning");
    let settled = cluster
        .wait_for(
            &fivespot_testkit::machine_path("worker"),
            instant("2026-03-06T22:52:00Z"),
            |object| condition(&object["status"], "MachineReady")["status"] == "True",
        )
        .await;
    assert_eq!(settled["status"]["phase"], "Active");
    let [_, _, path] = cluster.owned_paths("worker");
    let machine = cluster.get(&path).await.unwrap();
    assert_eq!(machine["spec"]["version"], "v1.31.2");
    assert_eq!(machine["spec"]["failureDomain"], "zone-1");
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;
    cluster.advance_to(CLOSING).await;
    assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
    cluster.release_last_pod().await;
    let limit = instant("2026-03-06T23:04:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None);
    }
    let evictions = cluster.operator_writes_to("pods/eviction");
    assert!(
        evictions.last().unwrap().ends_with("create only 201"),
        "{evictions:?}"
    );
    machine["spec"].clone()
}

async fn the_older_one_gets_timeouts_as_text_and_versions_in_references() {
    let spec = opens_and_closes(Contract::V1Beta1).await;
    let timeout: jiff::SignedDuration =
        spec["nodeDrainTimeout"].as_str().unwrap().parse().unwrap();
    assert_eq!(timeout.as_secs(), 90);
    let api_version = &spec["infrastructureRef"]["apiVersion"];
    assert_eq!(*api_version, "infrastructure.cluster.x-k8s.io/v1beta1");
}

async fn the_newer_one_gets_timeouts_in_seconds_and_groups_in_references() {
    let spec = opens_and_closes(Contract::V1Beta2).await;
    assert_eq!(spec["deletion"]["nodeDrainTimeoutSeconds"], 90);
    let group = &spec["infrastructureRef"]["apiGroup"];
    assert_eq!(*group, "infrastructure.cluster.x-k8s.io");
}

async fn a_machine_made_by_the_newer_one_is_read_by_the_older() {
    let cluster =
        Cluster::with_contract(instant(BEFORE_CLOSING), Contract::V1Beta2).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeDrainTimeout"] = json!("90s");
    cluster.bring_up(&worker).await;
    let [_, _, path] = cluster.owned_paths("worker");
    let older = path.replace("v1beta2", "v1beta1");
    let machine = cluster.get(&older).await.unwrap();
    let spec = &machine["spec"];
    let timeout: jiff::SignedDuration =
        spec["nodeDrainTimeout"].as_str().unwrap().parse().unwrap();
    assert_eq!(timeout.as_secs(), 90);
    let api_version = &spec["infrastructureRef"]["apiVersion"];
    assert_eq!(*api_version, "infrastructure.cluster.x-k8s.io/v1beta2");
}
