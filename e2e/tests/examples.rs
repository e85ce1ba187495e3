//! Each manifest under `examples/` is admitted as it is, and its machine comes into service.

use fivespot_testkit::{CLOSING, Cluster, instant, machine_path, path_of};
use serde_json::Value;

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(every_example_comes_into_service)
        .on_embedded_alone("passes days until the next window of each"),
    promise!(the_example_for_machines_in_memory_comes_and_goes)
        .with_real_providers_alone("names kinds of Cluster API's own providers"),
];

/// These need providers that are not simulated. `5spot validate` checks them.
const ONLY_VALIDATED: [&str; 2] = ["kubeadm.yaml", "dev-machine.yaml"];

const IN_MEMORY: &str = include_str!("../../examples/dev-machine.yaml");

async fn the_example_for_machines_in_memory_comes_and_goes() {
    let cluster = Cluster::start(instant("2026-03-06T21:30:00Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply_yaml(IN_MEMORY).await;
    let limit = instant("2026-03-06T21:32:00Z");
    let active = cluster
        .wait_for_phase("memory-worker", "Active", limit)
        .await;
    assert_eq!(active["status"]["providerID"], "in-memory://memory-worker");
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster
        .wait_for_phase("memory-worker", "Inactive", limit)
        .await;
}

async fn every_example_comes_into_service() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
        .collect();
    files.sort();
    assert!(files.len() > 7, "{files:?}");
    for file in files {
        let title = file.file_name().unwrap().to_str().unwrap();
        if ONLY_VALIDATED.contains(&title) {
            continue;
        }
        // A Sunday, so that each machine must wait for its window.
        let cluster = Cluster::start(instant("2026-03-08T12:00:00Z")).await;
        let _operator = cluster.operator();
        let text = std::fs::read_to_string(&file).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let is_machine = |it: &&Value| it["kind"] == "ScheduledMachine";
        let is_set = |it: &&Value| it["kind"] == "ScheduledMachineSet";
        let machine = documents.iter().find(is_machine);
        let set = documents.iter().find(is_set);
        let machine = machine.or(set).unwrap();
        let mut name = machine["metadata"]["name"].as_str().unwrap().to_owned();
        if set.is_some() {
            name.push_str("-0");
        }
        cluster.apply_yaml(&text).await;
        let within_a_week = instant("2026-03-16T12:00:00Z");
        let active = cluster.wait_for_phase(&name, "Active", within_a_week).await;
        let ready = &active["status"]["conditions"];
        let ready = ready
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["type"] == "Ready");
        assert_eq!(ready.unwrap()["status"], "True", "{title}: {active:#}");
        let class = documents
            .iter()
            .find(|it| it["kind"] == "ScheduledMachineClass");
        let tainting = class.unwrap_or(machine);
        if let Some(taints) = tainting["spec"]["nodeTaints"].as_array() {
            let are_there = |node: &Value| {
                let there = node["spec"]["taints"].as_array();
                let there = there.map(Vec::as_slice).unwrap_or_default();
                let is_there = |key: &Value| there.iter().any(|it| it["key"] == *key);
                taints.iter().all(|taint| is_there(&taint["key"]))
            };
            let node = format!("/api/v1/nodes/{name}");
            cluster.wait_briefly(&node, are_there).await;
        }
        let path = machine_path(&name);
        cluster.delete(&path_of(machine)).await;
        cluster
            .wait_until_gone(&path, instant("2026-03-17T12:00:00Z"))
            .await;
    }
}
