//! The Node's taints during the lifecycle of a machine.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{NodeTaint, Phase, TaintEffect, name};
use fivespot_capi::Contract;
use fivespot_plan::{Access, Cause, Memory, Step};
use serde_json::{Value, json};

use crate::simulation::{BEFORE, EVENING, NOON, Simulation, at, in_service};

pub(crate) fn taint(key: &str, value: &str) -> NodeTaint {
    NodeTaint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: TaintEffect::NoSchedule,
    }
}

/// A simulation with a machine in service whose spec has two taints.
fn tainted(memory: &mut Memory) -> Simulation {
    let mut simulation = in_service(Contract::V1Beta2, memory);
    simulation.edit(|sm| {
        sm.spec.node_taints = vec![taint("team", "a"), taint("batch", "")];
    });
    simulation
}

pub(crate) fn condition_text(simulation: &Simulation) -> String {
    let status = simulation.status();
    let found = condition::find(&status.conditions, ConditionType::NodeTainted);
    found.map_or_else(String::new, |found| {
        format!("{} {}: {}", found.status, found.reason, found.message)
    })
}

pub(crate) fn keys(simulation: &Simulation) -> Vec<String> {
    let taints = &simulation.get("Node").unwrap()["spec"]["taints"];
    let taints = taints.as_array().into_iter().flatten();
    taints
        .map(|taint| taint["key"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn taints_are_added_with_readiness_and_follow_the_spec() {
    let mut memory = Memory::default();
    let mut simulation = tainted(&mut memory);
    simulation.settle(&mut memory);
    assert_eq!(keys(&simulation), ["team", "batch"]);
    assert_eq!(
        condition_text(&simulation),
        "True Applied: Node worker has the 2 desired taints"
    );
    assert_eq!(
        simulation.get("Node").unwrap()["metadata"]["annotations"]
            [name::APPLIED_TAINTS_ANNOTATION],
        r#"[{"key":"batch","value":"","effect":"NoSchedule"},{"key":"team","value":"a","effect":"NoSchedule"}]"#,
    );
    assert_eq!(simulation.status().applied_node_taints.len(), 2);
    assert_eq!(simulation.count("TaintNode"), 1, "both in one write");

    simulation.edit(|sm| sm.spec.node_taints = vec![taint("team", "b")]);
    simulation.settle(&mut memory);
    assert_eq!(
        simulation.get("Node").unwrap()["spec"]["taints"],
        json!([{ "key": "team", "value": "b", "effect": "NoSchedule" }])
    );
    simulation.edit(|sm| sm.spec.node_taints.clear());
    simulation.settle(&mut memory);
    assert!(keys(&simulation).is_empty());
    assert_eq!(condition_text(&simulation), "");
    assert!(simulation.status().applied_node_taints.is_empty());
    let annotations = &simulation.get("Node").unwrap()["metadata"]["annotations"];
    assert_eq!(annotations[name::APPLIED_TAINTS_ANNOTATION], Value::Null);
}

#[test]
fn a_machine_reports_its_taints_from_beginning_to_end() {
    let mut memory = Memory::default();
    let mut simulation = Simulation::new(Contract::V1Beta1, BEFORE);
    simulation.edit(|sm| sm.spec.node_taints = vec![taint("team", "a")]);
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation),
        "Unknown NoNodeYet: there is no Node"
    );
    simulation.run_until(&mut memory, NOON);
    assert_eq!(
        condition_text(&simulation),
        "True Applied: Node worker has the desired taint"
    );
    let ready =
        |status: &str| json!({ "conditions": [{ "type": "Ready", "status": status }] });
    simulation.get_mut("Node").unwrap()["status"] = ready("False");
    simulation.edit(|sm| sm.spec.node_taints.push(taint("late", "")));
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation),
        "False NodeNotReady: Node worker is not ready; the taints are applied when it is"
    );
    simulation.get_mut("Node").unwrap()["status"] = ready("True");
    simulation.access = Access::Unreachable {
        message: "connection refused".to_owned(),
    };
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation),
        "Unknown NoNodeYet: Node worker cannot be read"
    );
    simulation.access = Access::Connected;
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation),
        "True Applied: Node worker has the 2 desired taints"
    );
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(
        condition_text(&simulation),
        "Unknown NoNodeYet: there is no Node"
    );
    assert!(simulation.status().applied_node_taints.is_empty());
}

#[test]
fn an_admins_taint_is_reported_and_replaced_only_once_it_is_gone() {
    let mut memory = Memory::default();
    let mut simulation = tainted(&mut memory);
    let theirs = json!([{ "key": "team", "value": "a", "effect": "NoSchedule",
                          "timeAdded": "2026-03-01T00:00:00Z" }]);
    simulation.get_mut("Node").unwrap()["spec"]["taints"] = theirs.clone();
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation),
        "False TaintOwnershipConflict: not applied on Node worker, because another client has set \
         it: team:NoSchedule; remove it from the Node or from spec.nodeTaints"
    );
    assert_eq!(keys(&simulation), ["team", "batch"]);
    assert_eq!(
        simulation.get("Node").unwrap()["spec"]["taints"][0],
        theirs[0]
    );
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    simulation.get_mut("Node").unwrap()["spec"]["taints"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    simulation.settle(&mut memory);
    assert!(
        condition_text(&simulation).starts_with("True Applied"),
        "{}",
        condition_text(&simulation)
    );
    assert_eq!(keys(&simulation), ["batch", "team"]);
}

#[test]
fn a_dropped_taint_that_an_admin_has_changed_is_to_be_removed_from_the_node() {
    let mut memory = Memory::default();
    let mut simulation = tainted(&mut memory);
    simulation.settle(&mut memory);
    let theirs = json!([{ "key": "team", "value": "theirs", "effect": "NoSchedule" }]);
    simulation.get_mut("Node").unwrap()["spec"]["taints"] = theirs;
    simulation.edit(|sm| sm.spec.node_taints.clear());
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation),
        "False TaintOwnershipConflict: not removed from Node worker, because another client has \
         changed it: team:NoSchedule; remove it from the Node"
    );
}

#[test]
fn a_taint_that_cannot_be_applied_blocks_nothing_and_is_retried() {
    let mut memory = Memory::default();
    let mut simulation = tainted(&mut memory);
    simulation.failing = Some((Step::TaintNode, Cause::Forbidden));
    simulation.edit(|sm| sm.spec.node_drain_timeout = "10m".to_owned());
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation),
        "False PatchFailed: cannot taint Node worker: the API server refuses it"
    );
    // `NodeTainted` reports it, and nothing else.
    let status = simulation.status();
    assert_eq!(status.phase, Some(Phase::Active));
    let message = "Node worker is in service until 2026-03-06T18:00:00Z";
    assert_eq!(status.message.as_deref(), Some(message));
    assert_eq!(simulation.count("UpdateMachine"), 1);
    simulation.failing = None;
    simulation.run_until(&mut memory, "2026-03-06T12:01:00Z");
    assert!(
        condition_text(&simulation).starts_with("True Applied"),
        "{}",
        condition_text(&simulation)
    );
}

#[test]
fn taints_that_violate_a_rule_are_not_applied() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| {
        sm.spec.node_taints = vec![taint("node.kubernetes.io/unreachable", "")];
    });
    simulation.settle(&mut memory);
    assert!(
        condition_text(&simulation).starts_with("False InvalidSpec"),
        "{}",
        condition_text(&simulation)
    );
    assert!(keys(&simulation).is_empty());
}

#[test]
fn a_disabled_machine_is_still_tainted_and_a_paused_one_is_not() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| {
        sm.spec.schedule.enabled = false;
        sm.spec.node_taints = vec![taint("team", "a")];
    });
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Disabled));
    assert_eq!(keys(&simulation), ["team"]);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    simulation.edit(|sm| sm.spec.node_taints.clear());
    simulation.settle(&mut memory);
    assert_eq!(keys(&simulation), ["team"]);
    assert!(
        condition_text(&simulation).starts_with("True Applied"),
        "as it was reported before"
    );
}

/// Writes the annotation that records these taints as ours, as a kubelet may.
fn forge(simulation: &mut Simulation, keys: &[&str]) {
    let record: Vec<_> = keys.iter().map(|key| taint(key, "")).collect();
    let node = simulation.get_mut("Node").unwrap();
    node["metadata"]["annotations"][name::APPLIED_TAINTS_ANNOTATION] =
        json!(json!(record).to_string());
}

#[test]
fn a_forged_record_on_the_node_removes_no_taint_of_an_administrator() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let theirs = json!([{ "key": "quarantine", "effect": "NoSchedule" }]);
    simulation.get_mut("Node").unwrap()["spec"]["taints"] = theirs.clone();
    forge(&mut simulation, &["quarantine"]);
    simulation.settle(&mut memory);
    assert_eq!(simulation.get("Node").unwrap()["spec"]["taints"], theirs);
    assert_eq!(simulation.count("TaintNode"), 0);
    // Nor if the spec requests it and then no longer does.
    simulation.edit(|sm| sm.spec.node_taints = vec![taint("quarantine", "")]);
    simulation.settle(&mut memory);
    assert!(
        condition_text(&simulation).starts_with("False TaintOwnershipConflict"),
        "{}",
        condition_text(&simulation)
    );
    simulation.edit(|sm| sm.spec.node_taints.clear());
    simulation.settle(&mut memory);
    assert_eq!(simulation.get("Node").unwrap()["spec"]["taints"], theirs);
    // Our taints are added and removed next to it.
    simulation.edit(|sm| sm.spec.node_taints = vec![taint("team", "a")]);
    simulation.settle(&mut memory);
    assert_eq!(keys(&simulation), ["quarantine", "team"]);
    simulation.edit(|sm| sm.spec.node_taints.clear());
    simulation.settle(&mut memory);
    assert_eq!(simulation.get("Node").unwrap()["spec"]["taints"], theirs);
}

#[test]
fn the_status_lists_a_taint_before_the_node_has_it_and_until_it_is_removed() {
    let mut memory = Memory::default();
    let mut simulation = tainted(&mut memory);
    for _ in 0..20 {
        let (_, has_written) = simulation.reconcile(&mut memory);
        let named = simulation.status().applied_node_taints;
        for key in keys(&simulation) {
            assert!(
                named.iter().any(|taint| taint.key == key),
                "{key}: {named:?}"
            );
        }
        if !has_written && simulation.sm().spec.node_taints.is_empty() {
            break;
        }
        if !has_written {
            simulation.edit(|sm| sm.spec.node_taints.clear());
        }
    }
    assert!(keys(&simulation).is_empty());
    assert!(simulation.status().applied_node_taints.is_empty());
}

#[test]
fn a_foreign_node_keeps_its_taints_and_the_status_its_record() {
    let mut memory = Memory::default();
    let mut simulation = tainted(&mut memory);
    simulation.settle(&mut memory);
    simulation.conflicting_machine = Some("other".to_owned());
    simulation.edit(|sm| sm.spec.node_taints.clear());
    let next = simulation.settle(&mut memory);
    assert_eq!(
        next.requeue_at,
        Some(at("2026-03-06T12:00:15Z")),
        "the Node is read again"
    );
    assert_eq!(keys(&simulation), ["team", "batch"]);
    assert_eq!(simulation.status().applied_node_taints.len(), 2);
    simulation.conflicting_machine = None;
    simulation.settle(&mut memory);
    assert!(keys(&simulation).is_empty());
    assert!(simulation.status().applied_node_taints.is_empty());
}

#[test]
fn a_taint_that_is_removed_repeatedly_is_restored_with_increasing_delays() {
    let mut memory = Memory::default();
    let mut simulation = tainted(&mut memory);
    simulation.settle(&mut memory);
    for _ in 0..600 {
        simulation.get_mut("Node").unwrap()["spec"]["taints"] = json!([]);
        simulation.settle(&mut memory);
        simulation.pause(1);
    }
    // 1, 2, 4 ... seconds apart, not one a second.
    let count = simulation.count("TaintNode");
    assert!((8..=16).contains(&count), "{count}");
    // An edit of the spec is applied at once.
    simulation.edit(|sm| sm.spec.node_taints = vec![taint("team", "b")]);
    simulation.settle(&mut memory);
    assert_eq!(keys(&simulation), ["team"]);
}
