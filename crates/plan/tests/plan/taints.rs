//! The Node's taints during the lifecycle of a machine.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{NodeTaint, Phase, TaintEffect, name};
use fivespot_capi::Contract;
use fivespot_plan::{Access, Cause, Memory, Step};
use serde_json::{Value, json};

use crate::world::{BEFORE, EVENING, NOON, World, at, in_service};

pub(crate) fn taint(key: &str, value: &str) -> NodeTaint {
    NodeTaint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: TaintEffect::NoSchedule,
    }
}

/// A world with a machine in service whose spec has two taints.
fn tainted(memory: &mut Memory) -> World {
    let mut world = in_service(Contract::V1Beta2, memory);
    world.edit(|sm| {
        sm.spec.node_taints = vec![taint("team", "a"), taint("batch", "")];
    });
    world
}

pub(crate) fn said(world: &World) -> String {
    let status = world.status();
    let found = condition::find(&status.conditions, ConditionType::NodeTainted);
    found.map_or_else(String::new, |found| {
        format!("{} {}: {}", found.status, found.reason, found.message)
    })
}

pub(crate) fn keys(world: &World) -> Vec<String> {
    let taints = &world.get("Node").unwrap()["spec"]["taints"];
    let taints = taints.as_array().into_iter().flatten();
    taints
        .map(|taint| taint["key"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn taints_are_added_with_readiness_and_follow_the_spec() {
    let mut memory = Memory::default();
    let mut world = tainted(&mut memory);
    world.settle(&mut memory);
    assert_eq!(keys(&world), ["team", "batch"]);
    assert_eq!(
        said(&world),
        "True Applied: Node worker has the 2 desired taints"
    );
    assert_eq!(
        world.get("Node").unwrap()["metadata"]["annotations"]
            [name::APPLIED_TAINTS_ANNOTATION],
        r#"[{"key":"batch","value":"","effect":"NoSchedule"},{"key":"team","value":"a","effect":"NoSchedule"}]"#,
    );
    assert_eq!(world.status().applied_node_taints.len(), 2);
    assert_eq!(world.count("TaintNode"), 1, "both in one write");

    world.edit(|sm| sm.spec.node_taints = vec![taint("team", "b")]);
    world.settle(&mut memory);
    assert_eq!(
        world.get("Node").unwrap()["spec"]["taints"],
        json!([{ "key": "team", "value": "b", "effect": "NoSchedule" }])
    );
    world.edit(|sm| sm.spec.node_taints.clear());
    world.settle(&mut memory);
    assert!(keys(&world).is_empty());
    assert_eq!(said(&world), "");
    assert!(world.status().applied_node_taints.is_empty());
    let annotations = &world.get("Node").unwrap()["metadata"]["annotations"];
    assert_eq!(annotations[name::APPLIED_TAINTS_ANNOTATION], Value::Null);
}

#[test]
fn a_machine_reports_its_taints_from_beginning_to_end() {
    let mut memory = Memory::default();
    let mut world = World::new(Contract::V1Beta1, BEFORE);
    world.edit(|sm| sm.spec.node_taints = vec![taint("team", "a")]);
    world.settle(&mut memory);
    assert_eq!(said(&world), "Unknown NoNodeYet: there is no Node");
    world.run_until(&mut memory, NOON);
    assert_eq!(
        said(&world),
        "True Applied: Node worker has the desired taint"
    );
    let ready =
        |status: &str| json!({ "conditions": [{ "type": "Ready", "status": status }] });
    world.get_mut("Node").unwrap()["status"] = ready("False");
    world.edit(|sm| sm.spec.node_taints.push(taint("late", "")));
    world.settle(&mut memory);
    assert_eq!(
        said(&world),
        "False NodeNotReady: Node worker is not ready; the taints are applied when it is"
    );
    world.get_mut("Node").unwrap()["status"] = ready("True");
    world.access = Access::Unreachable {
        message: "connection refused".to_owned(),
    };
    world.settle(&mut memory);
    assert_eq!(
        said(&world),
        "Unknown NoNodeYet: Node worker cannot be read"
    );
    world.access = Access::Connected;
    world.settle(&mut memory);
    assert_eq!(
        said(&world),
        "True Applied: Node worker has the 2 desired taints"
    );
    world.run_until(&mut memory, EVENING);
    assert_eq!(said(&world), "Unknown NoNodeYet: there is no Node");
    assert!(world.status().applied_node_taints.is_empty());
}

#[test]
fn an_admins_taint_is_reported_and_replaced_only_once_it_is_gone() {
    let mut memory = Memory::default();
    let mut world = tainted(&mut memory);
    let theirs = json!([{ "key": "team", "value": "a", "effect": "NoSchedule",
                          "timeAdded": "2026-03-01T00:00:00Z" }]);
    world.get_mut("Node").unwrap()["spec"]["taints"] = theirs.clone();
    world.settle(&mut memory);
    assert_eq!(
        said(&world),
        "False TaintOwnershipConflict: not applied on Node worker, because another client has set \
         it: team:NoSchedule; remove it from the Node or from spec.nodeTaints"
    );
    assert_eq!(keys(&world), ["team", "batch"]);
    assert_eq!(world.get("Node").unwrap()["spec"]["taints"][0], theirs[0]);
    assert_eq!(world.status().phase, Some(Phase::Active));
    world.get_mut("Node").unwrap()["spec"]["taints"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    world.settle(&mut memory);
    assert!(said(&world).starts_with("True Applied"), "{}", said(&world));
    assert_eq!(keys(&world), ["batch", "team"]);
}

#[test]
fn a_taint_that_cannot_be_applied_blocks_nothing_and_is_retried() {
    let mut memory = Memory::default();
    let mut world = tainted(&mut memory);
    world.failing = Some((Step::TaintNode, Cause::Forbidden));
    world.edit(|sm| sm.spec.node_drain_timeout = "10m".to_owned());
    world.settle(&mut memory);
    assert_eq!(
        said(&world),
        "False PatchFailed: cannot taint Node worker: the API server refuses it"
    );
    assert_eq!(world.status().phase, Some(Phase::Active));
    assert_eq!(world.count("UpdateMachine"), 1);
    world.failing = None;
    world.run_until(&mut memory, "2026-03-06T12:01:00Z");
    assert!(said(&world).starts_with("True Applied"), "{}", said(&world));
}

#[test]
fn taints_that_violate_a_rule_are_not_applied() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.edit(|sm| {
        sm.spec.node_taints = vec![taint("node.kubernetes.io/unreachable", "")];
    });
    world.settle(&mut memory);
    assert!(
        said(&world).starts_with("False InvalidSpec"),
        "{}",
        said(&world)
    );
    assert!(keys(&world).is_empty());
}

#[test]
fn a_disabled_machine_is_still_tainted_and_a_paused_one_is_not() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.edit(|sm| {
        sm.spec.schedule.enabled = false;
        sm.spec.node_taints = vec![taint("team", "a")];
    });
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Disabled));
    assert_eq!(keys(&world), ["team"]);
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    world.edit(|sm| sm.spec.node_taints.clear());
    world.settle(&mut memory);
    assert_eq!(keys(&world), ["team"]);
    assert!(
        said(&world).starts_with("True Applied"),
        "as it was reported before"
    );
}

/// Writes the annotation that records these taints as ours, as a kubelet may.
fn forge(world: &mut World, keys: &[&str]) {
    let record: Vec<_> = keys.iter().map(|key| taint(key, "")).collect();
    let node = world.get_mut("Node").unwrap();
    node["metadata"]["annotations"][name::APPLIED_TAINTS_ANNOTATION] =
        json!(json!(record).to_string());
}

#[test]
fn a_forged_record_on_the_node_removes_no_taint_of_an_administrator() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    let theirs = json!([{ "key": "quarantine", "effect": "NoSchedule" }]);
    world.get_mut("Node").unwrap()["spec"]["taints"] = theirs.clone();
    forge(&mut world, &["quarantine"]);
    world.settle(&mut memory);
    assert_eq!(world.get("Node").unwrap()["spec"]["taints"], theirs);
    assert_eq!(world.count("TaintNode"), 0);
    // Nor if the spec requests it and then no longer does.
    world.edit(|sm| sm.spec.node_taints = vec![taint("quarantine", "")]);
    world.settle(&mut memory);
    assert!(
        said(&world).starts_with("False TaintOwnershipConflict"),
        "{}",
        said(&world)
    );
    world.edit(|sm| sm.spec.node_taints.clear());
    world.settle(&mut memory);
    assert_eq!(world.get("Node").unwrap()["spec"]["taints"], theirs);
    // Our taints are added and removed next to it.
    world.edit(|sm| sm.spec.node_taints = vec![taint("team", "a")]);
    world.settle(&mut memory);
    assert_eq!(keys(&world), ["quarantine", "team"]);
    world.edit(|sm| sm.spec.node_taints.clear());
    world.settle(&mut memory);
    assert_eq!(world.get("Node").unwrap()["spec"]["taints"], theirs);
}

#[test]
fn the_status_lists_a_taint_before_the_node_has_it_and_until_it_is_removed() {
    let mut memory = Memory::default();
    let mut world = tainted(&mut memory);
    for _ in 0..20 {
        let (_, has_written) = world.reconcile(&mut memory);
        let named = world.status().applied_node_taints;
        for key in keys(&world) {
            assert!(
                named.iter().any(|taint| taint.key == key),
                "{key}: {named:?}"
            );
        }
        if !has_written && world.sm().spec.node_taints.is_empty() {
            break;
        }
        if !has_written {
            world.edit(|sm| sm.spec.node_taints.clear());
        }
    }
    assert!(keys(&world).is_empty());
    assert!(world.status().applied_node_taints.is_empty());
}

#[test]
fn a_foreign_node_keeps_its_taints_and_the_status_its_record() {
    let mut memory = Memory::default();
    let mut world = tainted(&mut memory);
    world.settle(&mut memory);
    world.rival = Some("other".to_owned());
    world.edit(|sm| sm.spec.node_taints.clear());
    let next = world.settle(&mut memory);
    assert_eq!(
        next.requeue_at,
        Some(at("2026-03-06T12:00:15Z")),
        "the Node is read again"
    );
    assert_eq!(keys(&world), ["team", "batch"]);
    assert_eq!(world.status().applied_node_taints.len(), 2);
    world.rival = None;
    world.settle(&mut memory);
    assert!(keys(&world).is_empty());
    assert!(world.status().applied_node_taints.is_empty());
}

#[test]
fn a_taint_that_is_removed_repeatedly_is_restored_with_increasing_delays() {
    let mut memory = Memory::default();
    let mut world = tainted(&mut memory);
    world.settle(&mut memory);
    for _ in 0..600 {
        world.get_mut("Node").unwrap()["spec"]["taints"] = json!([]);
        world.settle(&mut memory);
        world.pause(1);
    }
    // 1, 2, 4 ... seconds apart, not one a second.
    let count = world.count("TaintNode");
    assert!((8..=16).contains(&count), "{count}");
    // An edit of the spec is applied at once.
    world.edit(|sm| sm.spec.node_taints = vec![taint("team", "b")]);
    world.settle(&mut memory);
    assert_eq!(keys(&world), ["team"]);
}
