use kube::core::GroupVersionKind;
use serde_json::json;

use super::*;
use crate::store::Store;

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind))
}

fn prod() -> Key {
    Key::new("default", "prod")
}

fn machine() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "worker", "namespace": "default", "uid": "m",
            "resourceVersion": "5", "managedFields": [{"manager": "x"}],
            "labels": {"5spot.finos.org/scheduled-machine": "worker"}},
        "spec": {"clusterName": "prod", "providerID": "sim://worker"},
        "status": {"nodeRef": {"name": "node-1"}},
    })
}

fn node(heartbeat: &str, ready: &str) -> Value {
    json!({
        "metadata": {"name": "node-1", "uid": "n", "resourceVersion": heartbeat},
        "spec": {"providerID": "sim://worker", "podCIDR": "10.0.0.0/24"},
        "status": {
            "images": [{"names": ["large"]}],
            "conditions": [
                {"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat},
                {"type": "DiskPressure", "status": "False", "lastHeartbeatTime": heartbeat},
            ],
        },
    })
}

/// Machines with everything that is read, and more.
fn whole_machines() -> [Value; 2] {
    let conditions: Vec<Value> = machine::CONDITIONS
        .into_iter()
        .chain(["Updating"])
        .map(|kind| json!({"type": kind, "status": "True", "reason": "R", "message": kind}))
        .collect();
    let reference = json!({"apiGroup": "g", "kind": "K", "name": "worker"});
    let old = json!({"apiVersion": "g/v1", "kind": "K", "name": "worker"});
    let mut new = machine();
    new["spec"]["bootstrap"] = json!({"configRef": reference});
    new["spec"]["infrastructureRef"] = reference;
    new["spec"]["version"] = json!("v1.36.0");
    new["spec"]["deletion"] =
        json!({"nodeDrainTimeoutSeconds": 7, "nodeVolumeDetachTimeoutSeconds": 8});
    new["status"] = json!({
        "phase": "Running", "nodeRef": {"name": "node-1"}, "conditions": conditions,
        "initialization":
            {"bootstrapDataSecretCreated": true, "infrastructureProvisioned": true},
        "deprecated": {"v1beta1": {"conditions": conditions}}, "addresses": ["10.0.0.1"],
    });
    let mut older = new.clone();
    older["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
    older["spec"]["bootstrap"] = json!({"configRef": old});
    older["spec"]["infrastructureRef"] = old;
    older["spec"]["nodeDrainTimeout"] = json!("7s");
    older["spec"]["nodeVolumeDetachTimeout"] = json!("8s");
    older["status"]["nodeRef"] = json!({"name": "node-1", "uid": "n"});
    older["status"]["bootstrapReady"] = json!(true);
    older["status"]["infrastructureReady"] = json!(true);
    [new, older]
}

#[test]
fn what_is_kept_of_a_machine_reads_like_all_of_it() {
    for whole in whole_machines() {
        let read = fivespot_capi::Machine::read(&whole).unwrap();
        let kept = Shape::Machine.keep(whole, &resource("Machine")).value();
        assert_eq!(fivespot_capi::Machine::read(&kept).unwrap(), read);
        let has_all = read.bootstrap.is_some()
            && read.infrastructure.is_some()
            && read.had_bootstrap
            && read.had_infrastructure
            && read.drain_timeout.is_some()
            && read.volume_detach_timeout.is_some();
        assert!(has_all, "{read:?}");
        for dropped in ["deprecated", "addresses"] {
            assert!(kept["status"].get(dropped).is_none(), "{dropped}");
        }
        assert!(!kept.to_string().contains("Updating"));
    }
}

#[test]
fn a_machine_wakes_the_scheduled_machine_that_its_label_names() {
    let kept = Shape::Machine.keep(machine(), &resource("Machine"));
    assert_eq!(kept.wakes, [Target::One(Key::new("default", "worker"))]);
    assert!(kept.value()["metadata"].get("managedFields").is_none());
}

#[test]
fn a_machine_without_our_label_wakes_nobody() {
    let mut foreign = machine();
    foreign["metadata"]["labels"] = json!({});
    let kept = Shape::Machine.keep(foreign, &resource("Machine"));
    assert_eq!(kept.wakes, []);
}

#[test]
fn a_cluster_wakes_every_scheduled_machine_that_names_it() {
    let cluster = json!({"metadata": {"name": "prod", "namespace": "default"}});
    let kept = Shape::Cluster.keep(cluster, &resource("Cluster"));
    assert_eq!(kept.wakes, [Target::Cluster(prod())]);
    let scheduled = json!({
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {"clusterName": "prod"},
    });
    let store = Store::default();
    let key = Key::new("default", "worker");
    let kept = Shape::ScheduledMachine.keep(scheduled, &resource("ScheduledMachine"));
    store.put(&None, &key, kept);
    assert_eq!(store.found_by(&cluster_term(&prod())), [key]);
}

#[test]
fn a_node_finds_its_machine_by_name_and_by_provider_id() {
    let store = Store::default();
    let key = Key::new("default", "worker");
    store.put(
        &None,
        &key,
        Shape::Machine.keep(machine(), &resource("Machine")),
    );
    let kept = Shape::Node(prod()).keep(node("1", "True"), &resource("Node"));
    let [Target::Machine(terms)] = &kept.wakes[..] else {
        unreachable!("{:?}", kept.wakes);
    };
    assert_eq!(terms.len(), 2);
    for term in terms {
        assert_eq!(store.found_by(term), vec![key.clone()], "{term}");
    }
    // A node of that name in another workload cluster is another node.
    let other = Shape::Node(Key::new("default", "test"));
    let kept = other.keep(node("1", "True"), &resource("Node"));
    let [Target::Machine(terms)] = &kept.wakes[..] else {
        unreachable!("{:?}", kept.wakes);
    };
    assert!(terms.iter().all(|term| store.found_by(term).is_empty()));
}

#[test]
fn a_heartbeat_changes_nothing_and_readiness_does() {
    let shape = Shape::Node(prod());
    let store = Store::default();
    let key = Key::new("", "node-1");
    let put = |node| store.put(&None, &key, shape.keep(node, &resource("Node")));
    assert!(!put(node("1", "True")).is_empty());
    assert!(put(node("2", "True")).is_empty());
    assert!(!put(node("3", "False")).is_empty());
}

#[test]
fn what_the_planner_reads_is_kept() {
    let kept = Shape::Node(prod()).keep(node("1", "True"), &resource("Node"));
    let node: k8s_openapi::api::core::v1::Node =
        serde_json::from_value(kept.value()).unwrap();
    let node = fivespot_plan::Node::from(&node);
    assert!(node.is_ready);
    assert_eq!(node.provider_id.as_deref(), Some("sim://worker"));
    let provider = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine",
        "metadata": {"name": "worker", "namespace": "default", "uid": "i"},
        "spec": {"address": "10.0.0.1"},
        "status": {"ready": true},
    });
    let kept = Shape::Provider.keep(provider, &resource("RemoteMachine"));
    assert!(
        fivespot_capi::Provider::read(&kept.value())
            .unwrap()
            .is_ready
    );
}
