//! Fields of the Machine that providers need, and their reports about it.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{Phase, ScheduledMachine};
use fivespot_capi::Contract;
use fivespot_plan::{Access, Memory};
use serde_json::{Value, json};

use crate::simulation::{CONTRACTS, EVENING, OPENS, Simulation, at, in_service, pod};

/// Sets a member of the spec, given as a JSON pointer below it.
fn ask_for(simulation: &mut Simulation, pointer: &str, value: &Value) {
    simulation.edit(|object| {
        let mut json = serde_json::to_value(&*object).unwrap();
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        json["spec"].pointer_mut(parent).unwrap()[member] = value.clone();
        *object = serde_json::from_value::<ScheduledMachine>(json).unwrap();
    });
}

#[test]
fn version_and_failure_domain_reach_the_machine_in_both_contracts() {
    for contract in CONTRACTS {
        let mut simulation = Simulation::new(contract, OPENS);
        ask_for(
            &mut simulation,
            "/machineTemplate/version",
            &json!("v1.31.2"),
        );
        ask_for(
            &mut simulation,
            "/machineTemplate/failureDomain",
            &json!("zone-1"),
        );
        simulation.settle(&mut Memory::default());
        let spec = &simulation.get("Machine").unwrap()["spec"];
        assert_eq!(spec["version"], "v1.31.2", "{contract:?}");
        assert_eq!(spec["failureDomain"], "zone-1", "{contract:?}");
    }
}

#[test]
fn a_machine_without_version_and_failure_domain_has_neither_field() {
    for contract in CONTRACTS {
        let mut simulation = Simulation::new(contract, OPENS);
        simulation.settle(&mut Memory::default());
        let spec = simulation.get("Machine").unwrap()["spec"]
            .as_object()
            .unwrap();
        assert!(!spec.contains_key("version"), "{contract:?}");
        assert!(!spec.contains_key("failureDomain"), "{contract:?}");
    }
}

#[test]
fn a_new_version_waits_for_the_next_activation() {
    let mut memory = Memory::default();
    let mut simulation = Simulation::new(CONTRACTS[1], OPENS);
    ask_for(
        &mut simulation,
        "/machineTemplate/version",
        &json!("v1.31.2"),
    );
    simulation.settle(&mut memory);
    simulation.run_until(&mut memory, "2026-03-06T12:00:00Z");
    ask_for(
        &mut simulation,
        "/machineTemplate/version",
        &json!("v1.32.0"),
    );
    simulation.settle(&mut memory);
    let reported = simulation.reported.last().unwrap();
    assert!(reported.contains("PendingChanges"), "{reported}");
    assert_eq!(
        simulation.get("Machine").unwrap()["spec"]["version"],
        "v1.31.2"
    );
}

/// The window is open, the three objects exist, and the host is not provisioned yet.
fn provisioning(contract: Contract, memory: &mut Memory) -> Simulation {
    let mut simulation = Simulation::new(contract, OPENS);
    simulation.is_moving = false;
    simulation.settle(memory);
    assert_eq!(simulation.status().phase, Some(Phase::Pending));
    simulation
}

/// Reconciles, and returns the status' message.
fn message(simulation: &mut Simulation, memory: &mut Memory) -> String {
    simulation.pause(61);
    simulation.settle(memory);
    simulation.status().message.unwrap()
}

fn ready_condition(message: &str) -> Value {
    json!({ "conditions": [
        { "type": "Ready", "status": "False", "reason": "BootstrapExecSucceeded",
          "message": message },
    ] })
}

#[test]
fn a_provider_failure_is_reported_while_the_machine_is_provisioned() {
    let failure = json!({
        "failureReason": "ProvisionFailed",
        "failureMessage": "ssh dial: dial tcp 192.0.2.7:22: connect: connection refused",
    });
    let mut both = ready_condition("Check the bootstrap logs for more details");
    both["deprecated"] = json!({ "v1beta1": failure });
    for (status, expected) in [
        (
            failure.clone(),
            "RemoteMachine worker: ProvisionFailed: ssh dial: dial tcp 192.0.2.7:22: connect: connection refused",
        ),
        (
            json!({ "deprecated": { "v1beta1": failure } }),
            "RemoteMachine worker: ProvisionFailed: ssh dial: dial tcp 192.0.2.7:22: connect: connection refused",
        ),
        (
            ready_condition("no host is free"),
            "RemoteMachine worker: BootstrapExecSucceeded: no host is free",
        ),
        (
            both,
            "RemoteMachine worker: BootstrapExecSucceeded: Check the bootstrap logs for more details; \
             ProvisionFailed: ssh dial: dial tcp 192.0.2.7:22: connect: connection refused",
        ),
    ] {
        for contract in CONTRACTS {
            let mut memory = Memory::default();
            let mut simulation = provisioning(contract, &mut memory);
            simulation.get_mut("RemoteMachine").unwrap()["status"] = status.clone();
            assert_eq!(
                message(&mut simulation, &mut memory),
                format!("waiting for Machine worker to get a Node; {expected}")
            );
        }
    }
}

#[test]
fn the_bootstrap_object_is_reported_too_and_a_ready_object_is_not() {
    let mut memory = Memory::default();
    let mut simulation = provisioning(CONTRACTS[1], &mut memory);
    simulation.get_mut("RemoteMachine").unwrap()["status"] =
        json!({ "ready": true, "failureMessage": "what was in the way before" });
    simulation.get_mut("K0sWorkerConfig").unwrap()["status"] =
        json!({ "failureMessage": "no control plane" });
    assert_eq!(
        message(&mut simulation, &mut memory),
        "waiting for Machine worker to get a Node; K0sWorkerConfig worker: no control plane"
    );
}

#[test]
fn a_provider_report_is_one_short_line() {
    let mut memory = Memory::default();
    let mut simulation = provisioning(CONTRACTS[1], &mut memory);
    let long = format!("first\n\tsecond\u{1b}[31m\u{202e} {}", "x".repeat(5_000));
    simulation.get_mut("RemoteMachine").unwrap()["status"] =
        json!({ "failureMessage": long });
    let message = message(&mut simulation, &mut memory);
    assert!(
        message.contains("RemoteMachine worker: first second [31m x"),
        "{message}"
    );
    assert!(message.chars().count() < 400, "{message}");
}

#[test]
fn after_the_deletion_the_message_has_the_pending_step_and_not_the_past() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        simulation.is_moving = false;
        simulation.edit(|sm| sm.spec.kill_switch = true);
        simulation.settle(&mut memory);
        let kind = match contract {
            Contract::V1Beta1 => ("InfrastructureReady", "False"),
            Contract::V1Beta2 => ("Deleting", "True"),
        };
        simulation.get_mut("Machine").unwrap()["status"]["conditions"] = json!([{
            "type": kind.0, "status": kind.1, "reason": "WaitingForInfrastructureDeletion",
            "message": "Machine deletion in progress:\n* waiting for RemoteMachine",
        }]);
        let infrastructure = simulation.get_mut("RemoteMachine").unwrap();
        infrastructure["metadata"]["deletionTimestamp"] = json!("2026-03-06T12:00:00Z");
        infrastructure["status"] = json!({
            "ready": true, "failureMessage": "secrets \"no-such-key\" not found",
        });
        assert_eq!(
            message(&mut simulation, &mut memory),
            "the kill switch is set; waiting for Machine worker to be removed: \
             WaitingForInfrastructureDeletion: Machine deletion in progress: * waiting for \
             RemoteMachine; RemoteMachine worker: secrets \"no-such-key\" not found",
            "{contract:?}"
        );
    }
}

/// The published Warnings about a drain.
fn warnings(simulation: &Simulation) -> Vec<&str> {
    let found = simulation
        .events
        .iter()
        .filter(|event| event.reason == "DrainIncomplete");
    found.map(|event| event.note.as_str()).collect()
}

#[test]
fn an_unfinished_drain_is_reported_with_its_pods_until_the_next_activation() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        simulation.pods = ["a", "b", "c", "d", "e", "f", "g"].map(pod).to_vec();
        simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
        simulation.run_until(&mut memory, EVENING);
        let pods = "default/a, default/b, default/c, default/d, default/e and 2 more";
        let left = format!(
            "the Machine was deleted without a finished drain: at the deadline pods remained on \
             Node worker: {pods}"
        );
        assert_eq!(warnings(&simulation), [left.as_str()]);
        assert_eq!(
            simulation.status().message.unwrap(),
            format!("no machine is wanted until 2026-03-09T09:00:00Z; {left}")
        );
        // A new process reads it from the status.
        let mut memory = Memory::default();
        simulation.edit(|sm| sm.spec.schedule.enabled = false);
        simulation.settle(&mut memory);
        assert!(simulation.status().message.unwrap().ends_with(&left));
        simulation.edit(|sm| sm.spec.schedule.enabled = true);
        simulation.pods.clear();
        simulation.run_until(&mut memory, "2026-03-09T12:00:00Z");
        let message = simulation.status().message.unwrap();
        assert!(!message.contains("drain"), "{message}");
        assert_eq!(warnings(&simulation).len(), 1, "once");
    }
}

#[test]
fn a_machine_without_a_node_reference_is_deleted_with_a_warning() {
    let mut memory = Memory::default();
    let mut simulation = in_service(CONTRACTS[1], &mut memory);
    let machine = simulation.get_mut("Machine").unwrap();
    machine["status"].as_object_mut().unwrap().remove("nodeRef");
    let node = simulation.get_mut("Node").unwrap();
    node["spec"].as_object_mut().unwrap().remove("providerID");
    simulation.is_moving = false;
    simulation.settle(&mut memory);
    simulation.run_until(&mut memory, "2026-03-06T18:00:01Z");
    let left = "the Machine was deleted without a finished drain: the Machine had no nodeRef; Node \
                worker is Ready but has no providerID, which Cluster API needs to find the Node of \
                a Machine";
    assert_eq!(warnings(&simulation), [left]);
    simulation.is_moving = true;
    simulation.run_until(&mut memory, EVENING);
    let message = simulation.status().message.unwrap();
    assert!(message.ends_with(left), "{message}");
}

#[test]
fn a_machine_that_never_had_a_host_is_deleted_without_a_warning() {
    let mut memory = Memory::default();
    let mut simulation = provisioning(CONTRACTS[1], &mut memory);
    let machine = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
    let owners =
        &mut simulation.get_mut("RemoteMachine").unwrap()["metadata"]["ownerReferences"];
    owners.as_array_mut().unwrap().push(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "worker",
        "uid": machine, "controller": true,
    }));
    simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec!["3".to_owned()]);
    simulation.settle(&mut memory);
    simulation.is_moving = true;
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
    assert_eq!(warnings(&simulation), [""; 0]);
}

#[test]
fn a_shutdown_without_access_to_the_workload_cluster_is_reported() {
    let mut memory = Memory::default();
    let mut simulation = in_service(CONTRACTS[1], &mut memory);
    simulation.access = Access::KubeconfigRefused {
        message: "it runs a command".to_owned(),
    };
    simulation.run_until(&mut memory, EVENING);
    let left = "the Machine was deleted without a finished drain: the operator has no access to the \
                workload cluster (it runs a command), Cluster API drains the Node if it can";
    assert_eq!(warnings(&simulation), [left]);
    assert!(simulation.status().message.unwrap().ends_with(left));
}

#[test]
fn without_a_requested_drain_there_is_no_warning_about_it() {
    let cases: [fn(&mut ScheduledMachine); 2] = [
        |sm| sm.spec.kill_switch = true,
        |sm| {
            sm.spec.graceful_shutdown_timeout = "0s".to_owned();
            sm.spec.schedule.hours_of_day = vec!["3".to_owned()];
        },
    ];
    for change in cases {
        let mut memory = Memory::default();
        let mut simulation = in_service(CONTRACTS[1], &mut memory);
        simulation.pods = vec![pod("a")];
        simulation.edit(change);
        simulation.run_until(&mut memory, EVENING);
        assert!(simulation.get("Machine").is_none());
        assert_eq!(warnings(&simulation), [""; 0]);
        let message = simulation.status().message.unwrap();
        assert!(!message.contains("drain"), "{message}");
    }
}

#[test]
fn the_access_to_the_workload_cluster_is_reported_during_provisioning() {
    let mut memory = Memory::default();
    let mut simulation = provisioning(CONTRACTS[1], &mut memory);
    let reason = |simulation: &Simulation| {
        let conditions = simulation.status().conditions;
        let found = condition::find(&conditions, ConditionType::NodeAccess);
        found.map(|found| found.reason.clone())
    };
    assert_eq!(reason(&simulation).as_deref(), Some("Connected"));
    simulation.access = Access::KubeconfigMissing {
        message: "there is no Secret".to_owned(),
    };
    simulation.pause(5);
    simulation.settle(&mut memory);
    assert_eq!(reason(&simulation).as_deref(), Some("KubeconfigMissing"));
}

#[test]
fn a_ready_node_without_a_provider_id_is_reported() {
    let mut memory = Memory::default();
    let mut simulation = provisioning(CONTRACTS[1], &mut memory);
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "worker" },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    simulation.put(node.clone());
    assert_eq!(
        message(&mut simulation, &mut memory),
        "waiting for Machine worker to get a Node; Node worker is Ready but has no providerID, \
         which Cluster API needs to find the Node of a Machine"
    );
    assert_eq!(
        simulation.status().node_ref,
        None,
        "it is only in the message"
    );
    node["spec"] = json!({ "providerID": "remote-machine://192.0.2.9:22" });
    simulation.put(node);
    assert_eq!(
        message(&mut simulation, &mut memory),
        "waiting for Machine worker to get a Node"
    );
}
