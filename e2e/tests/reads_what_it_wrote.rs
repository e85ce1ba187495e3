//! The operator finds objects by the names, labels and plurals with which it or Cluster API created
//! them.

use std::collections::BTreeSet;

use fivespot_testkit::{
    AuditEvent, BEFORE_CLOSING, CLOSING, Cluster, condition, instant, machine_path,
    node_path, scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(every_name_that_is_read_is_one_that_is_there),
    promise!(every_label_that_is_selected_is_one_that_was_written),
    promise!(a_kind_is_found_by_the_plural_that_it_has).on_embedded_alone(
        "installs a kind of machine that no provider of the real cluster supports",
    ),
    promise!(a_name_of_sixty_three_characters_is_served),
];

/// Whether a request is for one of the three owned objects.
fn is_of_owned_object(event: &AuditEvent) -> bool {
    ["k0sworkerconfigs", "remotemachines", "machines"].contains(&event.resource.as_str())
        && event.group.ends_with("cluster.x-k8s.io")
}

/// Opens a window, serves and closes it.
async fn live() -> Cluster {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeTaints"] = json!([{"key": "workload", "effect": "NoSchedule"}]);
    cluster.bring_up(&worker).await;
    cluster.run_pod("only", "worker").await;
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
    drop(operator);
    cluster
}

async fn every_name_that_is_read_is_one_that_is_there() {
    let cluster = live().await;
    let requests = cluster.operator_requests();
    let reads = requests.iter().filter(|event| event.verb == "get");
    let read: BTreeSet<(String, String)> = reads
        .filter(|event| !event.name.is_empty())
        .map(|event| (event.resource.clone(), event.name.clone()))
        .collect();
    let node = cluster.node_name("worker");
    for (resource, name) in &read {
        let expected = match resource.as_str() {
            "nodes" => node.as_str(),
            "clusters" => "production-cluster",
            "secrets" => "production-cluster-kubeconfig",
            "pods" => "only",
            "customresourcedefinitions" => continue,
            _ => "worker",
        };
        assert_eq!(name, expected, "{resource}");
    }
    assert!(read.iter().any(|(resource, _)| resource == "machines"));
    // While the Machine exists, it is found.
    let is_made =
        |event: &AuditEvent| event.resource == "machines" && event.verb == "create";
    let is_going =
        |event: &AuditEvent| event.resource == "machines" && event.verb == "delete";
    let made = requests.iter().position(is_made).unwrap();
    let going = requests.iter().position(is_going).unwrap();
    for event in requests[made..going]
        .iter()
        .filter(|event| is_of_owned_object(event))
    {
        assert_ne!(event.code, 404, "{event:?}");
    }
}

async fn every_label_that_is_selected_is_one_that_was_written() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let requests = cluster.operator_requests();
    let selecting: Vec<&AuditEvent> = requests
        .iter()
        .filter(|event| {
            is_of_owned_object(event) && ["list", "watch"].contains(&event.verb.as_str())
        })
        .collect();
    let watched: BTreeSet<&str> = selecting
        .iter()
        .map(|event| event.resource.as_str())
        .collect();
    assert_eq!(watched.len(), 3, "{watched:?}");
    let mut labels = Vec::new();
    for path in cluster.owned_paths("worker") {
        let object = cluster.get(&path).await.unwrap();
        labels.push(object["metadata"]["labels"].as_object().unwrap().clone());
    }
    for event in selecting {
        for wanted in event
            .label_selector
            .split(',')
            .filter(|wanted| !wanted.is_empty())
        {
            let (key, value) = wanted.split_once('=').unwrap_or((wanted, ""));
            for labels in &labels {
                let label = labels.get(key).and_then(Value::as_str);
                assert!(
                    label.is_some_and(|it| value.is_empty() || it == value),
                    "{event:?}"
                );
            }
        }
    }
}

/// A kind whose plural is not its name with an s.
fn proxies() -> [Value; 2] {
    let group = "infrastructure.cluster.x-k8s.io";
    let anything =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    [
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("hostproxies.{group}")},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {
                    "kind": "HostProxy", "listKind": "HostProxyList",
                    "plural": "hostproxies", "singular": "hostproxy",
                },
                "versions": [{
                    "name": "v1beta1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"spec": anything, "status": anything},
                    }},
                }],
            },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": "host-proxies",
                "labels": {fivespot_api::name::AGGREGATE_LABEL: "true"},
            },
            "rules": [{
                "apiGroups": [group],
                "resources": ["hostproxies"],
                "verbs": ["get", "list", "watch", "create", "patch", "delete"],
            }],
        }),
    ]
}

async fn a_kind_is_found_by_the_plural_that_it_has() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    for object in proxies() {
        cluster.apply(&object).await;
    }
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    let mut worker = scheduled_machine("worker");
    worker["spec"]["infrastructureSpec"]["kind"] = json!("HostProxy");
    cluster.apply(&worker).await;
    let path = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/hostproxies/worker";
    let made = cluster.wait_briefly(path, |object| !object.is_null()).await;
    // Adds the owner reference that Cluster API adds to kinds that it can read.
    let [.., machine] = cluster.owned_paths("worker");
    let machine = cluster
        .wait_briefly(&machine, |machine| !machine.is_null())
        .await;
    let mut owners = made["metadata"]["ownerReferences"].clone();
    owners.as_array_mut().unwrap().push(json!({
        "apiVersion": machine["apiVersion"], "kind": "Machine", "name": "worker",
        "uid": machine["metadata"]["uid"], "controller": true,
    }));
    let owned = json!({"metadata": {"ownerReferences": owners}});
    cluster.patch(path, &owned).await;
    cluster.delete(&machine_path("worker")).await;
    let limit = cluster.deadline_in(SignedDuration::from_mins(10));
    cluster
        .wait_until_gone(&machine_path("worker"), limit)
        .await;
    assert_eq!(cluster.get(path).await, None);
}

async fn a_name_of_sixty_three_characters_is_served() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let name = "w".repeat(63);
    let mut worker = scheduled_machine(&name);
    worker["spec"]["infrastructureSpec"]["spec"]["address"] = json!("worker.example");
    let active = cluster.bring_up(&worker).await;
    let scheduled = condition(&active["status"], "Scheduled");
    assert_eq!(scheduled["status"], "True");
    let node = cluster.get(&node_path(&name)).await.unwrap();
    assert_eq!(active["status"]["nodeRef"]["uid"], node["metadata"]["uid"]);
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase(&name, "Inactive", limit).await;
    for path in cluster.owned_paths(&name) {
        assert_eq!(cluster.get(&path).await, None);
    }
}
