use kube::core::GroupVersionKind;
use serde_json::json;

use fivespot_capi::machine;

use super::*;
use fivespot_runtime::cache::Store;

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind))
}

/// The cached form of an object that a server sends.
fn cached(projection: &CachedKind, object: &Value, kind: &str) -> Object {
    let parsed = projection
        .mask()
        .read(object.to_string().as_bytes())
        .unwrap();
    projection.cache(parsed, &resource(kind))
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

/// Machines with all fields that are read, and others.
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
fn a_cached_machine_reads_like_the_whole_object() {
    for whole in whole_machines() {
        let read = fivespot_capi::Machine::read(&whole).unwrap();
        let kept = cached(&CachedKind::Machine, &whole, "Machine").value();
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
fn a_cached_provider_object_reads_like_the_whole_object() {
    let failure = json!({
        "failureReason": "ProvisionFailed",
        "failureMessage": "ssh dial: connection refused",
        "conditions": [],
    });
    let object = |status: Value| {
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
            "metadata": {"name": "worker", "namespace": "default", "uid": "r"},
            "spec": {"address": "192.0.2.7"},
            "status": status,
        })
    };
    let mut older = failure.clone();
    older["addresses"] = json!([]);
    for status in [
        json!({"deprecated": {"v1beta1": failure, "other": {}}}),
        older,
    ] {
        let whole = object(status);
        let read = fivespot_capi::Provider::read(&whole).unwrap();
        let kept = cached(&CachedKind::Provider, &whole, "RemoteMachine").value();
        assert_eq!(fivespot_capi::Provider::read(&kept).unwrap(), read);
        let problem = read.problem.unwrap();
        assert!(
            problem.starts_with("ProvisionFailed: ssh dial: conn"),
            "{problem}"
        );
        assert!(kept["status"]["deprecated"].get("other").is_none());
    }
}

#[test]
fn a_node_enqueues_the_machine_of_its_name_that_has_none_yet() {
    let cluster = Key::new("default", "prod");
    let mut coming = machine();
    coming["metadata"]["name"] = json!("node-1");
    coming["status"].as_object_mut().unwrap().remove("nodeRef");
    let own = Key::new("default", "node-1");
    let (_, found_by) = CachedKind::Machine.links(&coming, &own);
    let node = cached(&CachedKind::Node(cluster), &node("1", "True"), "Node");
    let [Target::Machine(terms)] = node.targets.as_slice() else {
        panic!("{:?}", node.targets);
    };
    let is_found = |term: &String| term.starts_with("coming") && found_by.contains(term);
    assert!(terms.iter().any(is_found), "{terms:?} {found_by:?}");
}

#[test]
fn a_machine_enqueues_the_scheduled_machine_that_its_label_names() {
    let kept = cached(&CachedKind::Machine, &machine(), "Machine");
    assert_eq!(kept.targets, [Target::One(Key::new("default", "worker"))]);
    assert!(kept.value()["metadata"].get("managedFields").is_none());
}

#[test]
fn a_machine_of_another_owner_enqueues_only_a_scheduled_machine_of_its_name() {
    let own = Key::new("default", "worker");
    let mut foreign = machine();
    foreign["metadata"]["labels"] = json!({});
    let kept = cached(&CachedKind::Machine, &foreign, "Machine");
    assert_eq!(kept.targets, [Target::Named(own.clone())]);
    foreign["metadata"]["labels"] = json!({name::SCHEDULED_MACHINE_LABEL: "other"});
    let kept = cached(&CachedKind::Machine, &foreign, "Machine");
    let other = Key::new("default", "other");
    assert_eq!(kept.targets, [Target::One(other), Target::Named(own)]);
}

#[test]
fn a_machine_of_another_owner_with_an_impossible_status_is_cached() {
    for status in [json!("text"), json!([1]), json!(null)] {
        let mut foreign = machine();
        foreign["metadata"]["labels"] = json!({});
        foreign["status"] = status;
        let kept = cached(&CachedKind::Machine, &foreign, "Machine");
        assert_eq!(kept.value()["status"], json!({"nodeRef": null}));
    }
}

#[test]
fn a_machine_of_another_owner_is_found_by_its_node_but_not_enqueued_by_it() {
    let mut foreign = machine();
    foreign["metadata"]["labels"] = json!({});
    foreign["metadata"]["annotations"] = json!({"cluster.x-k8s.io/note": "x"});
    let kept = cached(&CachedKind::Machine, &foreign, "Machine");
    let identity = kept.value();
    assert!(identity["metadata"].get("annotations").is_none());
    assert_eq!(
        identity["status"],
        json!({"nodeRef": foreign["status"]["nodeRef"]})
    );
    let store = Store::default();
    let key = Key::new("default", "worker");
    store.put(&None, &key, kept);
    let found =
        |terms: Vec<String>| terms.iter().any(|it| !store.found_by(it).is_empty());
    let provider_id = foreign["spec"]["providerID"].as_str().unwrap();
    let host = foreign["status"]["nodeRef"]["name"].as_str().unwrap();
    assert!(found(node_terms(&prod(), host, "")));
    assert!(found(node_terms(&prod(), "", provider_id)));
    let event = cached(&CachedKind::Node(prod()), &node("1", "True"), "Node");
    let [Target::Machine(terms)] = &event.targets[..] else {
        unreachable!("{:?}", event.targets);
    };
    assert!(!found(terms.clone()), "{terms:?}");
}

#[test]
fn a_cluster_enqueues_every_scheduled_machine_that_names_it() {
    let cluster = json!({"metadata": {"name": "prod", "namespace": "default"}});
    let kept = cached(&CachedKind::Cluster, &cluster, "Cluster");
    let named = Target::Machines(cluster_term(&prod()));
    assert!(kept.targets.contains(&named), "{:?}", kept.targets);
    let scheduled = json!({
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {"clusterName": "prod"},
    });
    let store = Store::default();
    let key = Key::new("default", "worker");
    let kept = cached(
        &CachedKind::ScheduledMachine,
        &scheduled,
        "ScheduledMachine",
    );
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
        cached(&CachedKind::Machine, &machine(), "Machine"),
    );
    let kept = cached(&CachedKind::Node(prod()), &node("1", "True"), "Node");
    let [Target::Machine(terms)] = &kept.targets[..] else {
        unreachable!("{:?}", kept.targets);
    };
    let finds = |term: &&String| store.found_by(term) == vec![key.clone()];
    assert_eq!(terms.iter().filter(finds).count(), 2, "{terms:?}");
    // A Node of that name in another workload cluster is another Node.
    let other = CachedKind::Node(Key::new("default", "test"));
    let kept = cached(&other, &node("1", "True"), "Node");
    let [Target::Machine(terms)] = &kept.targets[..] else {
        unreachable!("{:?}", kept.targets);
    };
    assert!(terms.iter().all(|term| store.found_by(term).is_empty()));
}

#[test]
fn only_readiness_and_no_heartbeat_changes_a_cached_node() {
    let projection = CachedKind::Node(prod());
    let store = Store::default();
    let key = Key::new("", "node-1");
    let put = |node| store.put(&None, &key, cached(&projection, &node, "Node"));
    assert!(!put(node("1", "True")).is_empty());
    assert!(put(node("2", "True")).is_empty());
    assert!(!put(node("3", "False")).is_empty());
}

#[test]
fn the_fields_that_the_planner_reads_are_kept() {
    let kept = cached(&CachedKind::Node(prod()), &node("1", "True"), "Node");
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
    let kept = cached(&CachedKind::Provider, &provider, "RemoteMachine");
    assert!(
        fivespot_capi::Provider::read(&kept.value())
            .unwrap()
            .is_ready
    );
}

fn scheduled(bootstrap: &Value) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": "worker", "namespace": "default", "uid": "s"},
        "spec": {
            "schedule": {}, "clusterName": "prod",
            "bootstrapSpec": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig", "spec": bootstrap},
            "infrastructureSpec": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine", "spec": {"address": "10.0.0.1"}},
        },
    })
}

#[test]
fn a_cache_keeps_only_the_hash_of_provider_specs() {
    let secret = json!({"userData": "x".repeat(100_000)});
    let object = scheduled(&secret);
    let kept = cached(&CachedKind::ScheduledMachine, &object, "ScheduledMachine").value();
    let text = kept.to_string();
    assert!(text.len() < 1_000 && !text.contains("10.0.0.1"), "{text}");
    let whole: fivespot_api::ScheduledMachine = serde_json::from_value(object).unwrap();
    let hash = fivespot_api::spec_hash::SpecHash::of(&whole.spec);
    assert_eq!(
        provider_specs::of(&kept),
        fivespot_plan::Specs::LeftOut {
            hash: hash.to_string()
        }
    );
    // All other fields that are read are kept.
    let read: fivespot_api::ScheduledMachine = serde_json::from_value(kept).unwrap();
    assert_eq!(read.spec.bootstrap_spec.kind, "K0sWorkerConfig");
}

#[test]
fn a_provider_spec_over_the_limit_is_reported_and_not_parsed() {
    let dense = json!({"list": vec![0; 200_000]});
    let object = scheduled(&dense);
    for kept in [
        cached(&CachedKind::ScheduledMachine, &object, "ScheduledMachine").value(),
        {
            let text = object.to_string();
            let mut live = CachedKind::ScheduledMachine
                .mask()
                .read(text.as_bytes())
                .unwrap();
            CachedKind::ScheduledMachine.complete(&mut live);
            live
        },
    ] {
        assert!(kept.to_string().len() < 1_000);
        let fivespot_plan::Specs::TooLarge { message } = provider_specs::of(&kept) else {
            unreachable!("{:?}", provider_specs::of(&kept));
        };
        assert_eq!(
            message,
            "spec.bootstrapSpec.spec has more than 262144 bytes of JSON; make it smaller"
        );
    }
}

#[test]
fn a_live_read_has_small_specs_and_the_hash_of_large_ones() {
    let completed = |bootstrap: &Value| {
        let text = scheduled(bootstrap).to_string();
        let mut live = CachedKind::ScheduledMachine
            .mask()
            .read(text.as_bytes())
            .unwrap();
        CachedKind::ScheduledMachine.complete(&mut live);
        live
    };
    let small = json!({"version": "v1.30.0"});
    let live = completed(&small);
    assert_eq!(live, scheduled(&small));
    assert_eq!(provider_specs::of(&live), fivespot_plan::Specs::Included);
    let large = completed(&json!({"files": "x".repeat(20_000)}));
    assert!(matches!(
        provider_specs::of(&large),
        fivespot_plan::Specs::LeftOut { .. }
    ));
}

#[test]
fn a_provider_spec_that_is_no_object_fails_to_parse_later() {
    for odd in [json!(null), json!([1]), json!("text")] {
        let kept = cached(
            &CachedKind::ScheduledMachine,
            &scheduled(&odd),
            "ScheduledMachine",
        );
        let read = serde_json::from_value::<fivespot_api::ScheduledMachine>(kept.value());
        assert!(read.is_err(), "{odd}");
    }
    let deep = format!(r#"{{"a": {}{}}}"#, "[".repeat(1_000), "]".repeat(1_000));
    let text = scheduled(&json!("here")).to_string();
    let text = text.replace("\"here\"", &deep);
    let parsed = CachedKind::ScheduledMachine
        .mask()
        .read(text.as_bytes())
        .unwrap();
    let kept = CachedKind::ScheduledMachine.cache(parsed, &resource("ScheduledMachine"));
    let read = serde_json::from_value::<fivespot_api::ScheduledMachine>(kept.value());
    assert!(read.is_err());
}
