//! A machine's life, played through.

use fivespot_api::{Phase, ShutdownReason};
use fivespot_capi::{Contract, key};
use fivespot_plan::{Access, Memory};
use serde_json::json;

use crate::world::{NAME, World, at, pod};

const CONTRACTS: [Contract; 2] = [Contract::V1Beta1, Contract::V1Beta2];

/// A Friday, just before nine.
const BEFORE: &str = "2026-03-06T08:00:00Z";
const OPENS: &str = "2026-03-06T09:00:00Z";
const NOON: &str = "2026-03-06T12:00:00Z";
const CLOSES: &str = "2026-03-06T18:00:00Z";
const EVENING: &str = "2026-03-06T20:00:00Z";
const MONDAY: &str = "2026-03-09T09:00:00Z";

fn phases(world: &World) -> Vec<Phase> {
    world.phases.iter().map(|(_, phase)| *phase).collect()
}

/// A world in which the machine is in service.
fn in_service(contract: Contract, memory: &mut Memory) -> World {
    let mut world = World::new(contract, BEFORE);
    world.run_until(memory, NOON);
    assert_eq!(world.status().phase, Some(Phase::Active));
    world
}

#[test]
fn a_window_opens_and_closes_and_leaves_nothing_behind() {
    for contract in CONTRACTS {
        let (mut world, mut memory) = (World::new(contract, BEFORE), Memory::default());
        world.run_until(&mut memory, NOON);
        assert_eq!(
            phases(&world),
            [Phase::Inactive, Phase::Pending, Phase::Active]
        );
        assert_eq!(world.first("CreateMachine"), at(OPENS));
        world.run_until(&mut memory, EVENING);
        let expected = [
            Phase::Inactive,
            Phase::Pending,
            Phase::Active,
            Phase::ShuttingDown,
            Phase::Inactive,
        ];
        assert_eq!(phases(&world), expected);
        assert_eq!(world.first("DeleteMachine"), at(CLOSES));
        assert!(world.kinds().is_empty(), "{:?}", world.kinds());
        let status = world.status();
        assert_eq!(status.next_activation, Some(at(MONDAY)));
        assert_eq!(status.next_transition, Some(at(MONDAY)));
        assert_eq!(
            (
                status.machine_ref,
                status.bootstrap_ref,
                status.infrastructure_ref,
                status.shutdown
            ),
            (None, None, None, None),
        );
        assert_eq!(
            world.events.len(),
            5,
            "one event for each transition: {:#?}",
            world.events
        );
    }
}

#[test]
fn a_machine_is_created_once_with_what_cluster_api_needs() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, OPENS), Memory::default());
    world.is_moving = false;
    world.settle(&mut memory);
    for step in ["CreateBootstrap", "CreateInfrastructure", "CreateMachine"] {
        assert_eq!(world.count(step), 1, "{step}");
    }
    let machine = world.get("Machine").unwrap();
    assert_eq!(machine["spec"]["clusterName"], "prod");
    assert_eq!(machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 300);
    let owners = machine["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners[0]["controller"], true);
    assert_eq!(
        (&owners[1]["kind"], &owners[1]["controller"]),
        (&json!("Cluster"), &json!(null))
    );
    let infrastructure = world.get("RemoteMachine").unwrap();
    assert_eq!(
        infrastructure["metadata"]["ownerReferences"][0]["controller"],
        json!(null)
    );
    assert_eq!(infrastructure["spec"]["address"], "192.0.2.7");
}

#[test]
fn a_refused_eviction_is_tried_again_until_it_succeeds_and_then_the_machine_goes() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = in_service(contract, &mut memory);
        world.pods = vec![pod("a"), pod("b")];
        world.budget_until = Some(at("2026-03-06T18:01:00Z"));
        world.run_until(&mut memory, EVENING);
        assert!(
            world.count("429") >= 4,
            "two pods, several tries: {:#?}",
            world.log
        );
        assert_eq!(world.first("CordonNode"), at(CLOSES));
        let deleted = world.first("DeleteMachine");
        assert!(
            deleted > at("2026-03-06T18:01:00Z"),
            "not before the pods are gone: {deleted}"
        );
        assert!(
            deleted < at("2026-03-06T18:02:00Z"),
            "soon after: {deleted}"
        );
        assert_eq!(world.count("ExcludeDrain"), 1, "our own drain has finished");
        assert_eq!(world.status().phase, Some(Phase::Inactive));
    }
}

#[test]
fn an_eviction_that_is_always_refused_ends_at_the_deadline() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.pods = vec![pod("a")];
    world.budget_until = Some(at("2027-01-01T00:00:00Z"));
    world.run_until(&mut memory, "2026-03-06T18:04:59Z");
    assert_eq!(world.count("DeleteMachine"), 0);
    assert_eq!(
        world.status().next_cleanup,
        Some(at("2026-03-06T18:05:00Z"))
    );
    let message = world.status().message.unwrap();
    assert!(message.contains("default/a is held back"), "{message}");
    world.is_moving = false;
    world.run_until(&mut memory, "2026-03-06T18:05:01Z");
    assert_eq!(world.first("DeleteMachine"), at("2026-03-06T18:05:00Z"));
    let annotations = world.get("Machine").unwrap()["metadata"]["annotations"].clone();
    assert!(annotations[key::EXCLUDE_NODE_DRAINING].is_string());
    assert!(annotations[key::EXCLUDE_VOLUME_DETACH].is_string());
}

#[test]
fn no_timeout_means_no_waiting() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta1, &mut memory);
    world.pods = vec![pod("a")];
    world.edit(|sm| sm.spec.graceful_shutdown_timeout = "0s".into());
    world.run_until(&mut memory, CLOSES);
    assert_eq!(world.first("DeleteMachine"), at(CLOSES));
    assert_eq!(world.count("EvictPod"), 0);
}

#[test]
fn pods_that_nobody_could_move_hold_nothing_up() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    let mut pods = [pod("daemon"), pod("mirror"), pod("finished")];
    pods[0].is_of_daemon_set = true;
    pods[1].is_mirror = true;
    pods[2].is_finished = true;
    world.pods = pods.into();
    world.run_until(&mut memory, CLOSES);
    assert_eq!(world.count("EvictPod"), 0);
    assert_eq!(world.first("DeleteMachine"), at(CLOSES));
}

#[test]
fn at_most_ten_evictions_go_out_at_a_time() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.pods = (0..25).map(|number| pod(&format!("p{number}"))).collect();
    world.is_moving = false;
    world.now = at(CLOSES);
    let batches: Vec<usize> = (0..5)
        .map(|_| {
            let before = world.count("EvictPod");
            world.pass(&mut memory);
            world.count("EvictPod") - before
        })
        .collect();
    assert_eq!(
        batches,
        [0, 10, 10, 5, 0],
        "the commitment first, then in batches"
    );
}

#[test]
fn a_window_that_opens_again_cancels_the_leaving() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = in_service(contract, &mut memory);
        world.pods = vec![pod("a")];
        world.budget_until = Some(at("2027-01-01T00:00:00Z"));
        world.run_until(&mut memory, "2026-03-06T18:02:00Z");
        assert_eq!(world.get("Node").unwrap()["spec"]["unschedulable"], true);
        let uid = world.get("Machine").unwrap()["metadata"]["uid"].clone();
        world.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-20".to_owned()]);
        world.settle(&mut memory);
        assert_eq!(
            world.get("Node").unwrap()["spec"]["unschedulable"],
            json!(null)
        );
        assert_eq!(world.status().shutdown, None);
        assert_eq!(world.status().phase, Some(Phase::Active));
        world.run_until(&mut memory, "2026-03-06T19:00:00Z");
        assert_eq!(world.get("Machine").unwrap()["metadata"]["uid"], uid);
        assert_eq!(world.count("DeleteMachine"), 0);
    }
}

#[test]
fn a_machine_that_is_being_deleted_is_awaited_and_then_made_anew() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    let uid = world.get("Machine").unwrap()["metadata"]["uid"].clone();
    world.delete(&("Machine".to_owned(), NAME.to_owned()), None);
    world.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert_ne!(world.get("Machine").unwrap()["metadata"]["uid"], uid);
    assert_eq!(world.status().phase, Some(Phase::Active));
    assert_eq!(world.status().last_scheduled_time, Some(at(NOON)));
}

#[test]
fn a_cordon_by_somebody_else_is_left_alone() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Node").unwrap()["spec"]["unschedulable"] = json!(true);
    world.pods = vec![pod("a")];
    world.budget_until = Some(at("2027-01-01T00:00:00Z"));
    world.run_until(&mut memory, "2026-03-06T18:02:00Z");
    world.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-20".to_owned()]);
    world.settle(&mut memory);
    assert_eq!(
        (world.count("CordonNode"), world.count("UncordonNode")),
        (0, 0)
    );
    assert_eq!(world.get("Node").unwrap()["spec"]["unschedulable"], true);
}

#[test]
fn a_deleted_object_takes_its_machine_along_before_it_goes() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = in_service(contract, &mut memory);
        world.delete_sm();
        world.settle(&mut memory);
        assert!(world.sm.is_none());
        assert!(world.kinds().is_empty(), "{:?}", world.kinds());
    }
}

#[test]
fn whoever_takes_the_finalizer_off_keeps_the_machine() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.edit(|sm| sm.metadata.finalizers = Some(vec!["example.com/other".to_owned()]));
    world.delete_sm();
    let before = world.log.len();
    world.settle(&mut memory);
    assert_eq!(world.log.len(), before);
    assert!(world.get("Machine").is_some());
}

#[test]
fn the_kill_switch_removes_at_once_and_service_resumes_when_it_is_off() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = in_service(contract, &mut memory);
        world.pods = vec![pod("a")];
        world.edit(|sm| sm.spec.kill_switch = true);
        world.settle(&mut memory);
        assert_eq!(world.count("EvictPod") + world.count("CordonNode"), 0);
        assert_eq!(world.first("DeleteMachine"), at(NOON));
        assert_eq!(world.status().phase, Some(Phase::Terminated));
        assert!(world.kinds().is_empty());
        world.edit(|sm| sm.spec.kill_switch = false);
        world.settle(&mut memory);
        assert_eq!(world.status().phase, Some(Phase::Active));
    }
}

#[test]
fn the_kill_switch_overtakes_a_leaving_that_is_under_way() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.pods = vec![pod("a")];
    world.budget_until = Some(at("2027-01-01T00:00:00Z"));
    world.run_until(&mut memory, "2026-03-06T18:01:00Z");
    world.edit(|sm| sm.spec.kill_switch = true);
    world.is_moving = false;
    world.settle(&mut memory);
    let shutdown = world.status().shutdown.unwrap();
    assert_eq!(shutdown.reason, ShutdownReason::KillSwitch);
    assert_eq!(
        (shutdown.started_at, shutdown.deadline),
        (at(CLOSES), at(CLOSES))
    );
    assert_eq!(world.first("DeleteMachine"), at("2026-03-06T18:01:00Z"));
}

#[test]
fn a_disabled_schedule_keeps_what_is_there_and_makes_nothing() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.edit(|sm| sm.spec.schedule.enabled = false);
    world.run_until(&mut memory, MONDAY);
    assert_eq!(world.status().phase, Some(Phase::Disabled));
    assert_eq!(world.status().next_activation, None);
    assert!(world.get("Machine").is_some());
    world.edit(|sm| sm.spec.node_drain_timeout = "10m".into());
    world.settle(&mut memory);
    let machine = world.get("Machine").unwrap();
    assert_eq!(machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"], 600);
}

#[test]
fn an_invalid_schedule_touches_nothing() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.edit(|sm| sm.spec.schedule.timezone = "Mars/Olympus".to_owned());
    let before = world.log.len();
    world.run_until(&mut memory, MONDAY);
    assert_eq!(world.status().phase, Some(Phase::Error));
    assert!(world.log[before..].iter().all(|(_, step)| step == "Status"));
    assert!(world.get("Machine").is_some());
}

#[test]
fn a_paused_cluster_stops_everything_the_kill_switch_too() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    world.edit(|sm| sm.spec.kill_switch = true);
    world.delete_sm();
    let before = world.log.len();
    world.run_until(&mut memory, EVENING);
    assert!(world.log[before..].iter().all(|(_, step)| step == "Status"));
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    world.settle(&mut memory);
    assert!(world.sm.is_none() && world.kinds().is_empty());
}

#[test]
fn a_silent_workload_cluster_delays_removal_to_the_deadline_and_no_further() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.access = Access::Unreachable {
        message: "connection refused".to_owned(),
    };
    world.run_until(&mut memory, EVENING);
    assert_eq!(world.first("DeleteMachine"), at("2026-03-06T18:05:00Z"));
    assert_eq!(world.count("ExcludeDrain"), 1);
}

#[test]
fn a_refused_kubeconfig_leaves_the_drain_to_cluster_api() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.access = Access::KubeconfigRefused {
        message: "it runs a program".to_owned(),
    };
    world.is_moving = false;
    world.run_until(&mut memory, "2026-03-06T18:04:59Z");
    assert_eq!(world.first("DeleteMachine"), at(CLOSES));
    assert_eq!(world.count("ExcludeDrain"), 0);
    world.run_until(&mut memory, "2026-03-06T18:05:00Z");
    assert_eq!(world.first("ExcludeDrain"), at("2026-03-06T18:05:00Z"));
}

#[test]
fn an_edited_spec_waits_for_the_next_activation() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.edit(|sm| sm.spec.infrastructure_spec.kind = "PooledRemoteMachine".to_owned());
    world.settle(&mut memory);
    let ready = world.status().conditions[0].clone();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("True", "PendingChanges")
    );
    world.run_until(&mut memory, EVENING);
    assert!(
        world.kinds().is_empty(),
        "what was created went: {:?}",
        world.kinds()
    );
    world.is_moving = false;
    world.run_until(&mut memory, MONDAY);
    assert!(world.get("PooledRemoteMachine").is_some());
}

#[test]
fn a_health_check_gets_a_machine_replaced_ten_minutes_after_its_creation() {
    let mut memory = Memory::default();
    let mut world = World::new(Contract::V1Beta2, OPENS);
    world.settle(&mut memory);
    let uid = world.get("Machine").unwrap()["metadata"]["uid"].clone();
    let conditions = &mut world.get_mut("Machine").unwrap()["status"]["conditions"];
    conditions.as_array_mut().unwrap().push(json!({
        "type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation",
    }));
    world.run_until(&mut memory, "2026-03-06T09:09:59Z");
    assert_eq!(world.get("Machine").unwrap()["metadata"]["uid"], uid);
    world.run_until(&mut memory, "2026-03-06T09:30:00Z");
    assert_eq!(world.first("DeleteMachine"), at("2026-03-06T09:10:00Z"));
    assert_ne!(world.get("Machine").unwrap()["metadata"]["uid"], uid);
    assert_eq!(world.status().phase, Some(Phase::Active));
}

#[test]
fn a_name_that_is_taken_is_said_and_never_touched() {
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let (mut world, mut memory) =
            (World::new(Contract::V1Beta2, BEFORE), Memory::default());
        let group = match kind {
            "Machine" => "cluster.x-k8s.io/v1beta2",
            "K0sWorkerConfig" => "bootstrap.cluster.x-k8s.io/v1beta1",
            _ => "infrastructure.cluster.x-k8s.io/v1beta1",
        };
        world.put(json!({
            "apiVersion": group, "kind": kind,
            "metadata": { "name": NAME, "namespace": "default", "finalizers": ["keep"] },
        }));
        let before = world.get(kind).cloned();
        world.run_until(&mut memory, NOON);
        assert_eq!(world.status().phase, Some(Phase::Error), "{kind}");
        let ready = world.status().conditions[0].clone();
        assert_eq!(ready.reason, "NameTaken", "{}", ready.message);
        world.delete_sm();
        world.settle(&mut memory);
        assert!(world.sm.is_none());
        assert_eq!(world.get(kind), before.as_ref());
        assert_eq!(world.kinds(), [kind]);
    }
}

#[test]
fn nothing_is_made_for_a_cluster_that_cannot_take_it() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta1, OPENS), Memory::default());
    world.get_mut("Cluster").unwrap()["status"]["conditions"] = json!([]);
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Pending));
    assert_eq!(world.status().conditions[0].reason, "ClusterNotReady");
    assert!(world.kinds().is_empty());
    world.get_mut("Cluster").unwrap()["status"]["conditions"] =
        json!([{ "type": "ControlPlaneInitialized", "status": "True" }]);
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Active));
}

#[test]
fn a_removal_that_stands_still_is_called_stalled_after_ten_minutes() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.is_moving = false;
    world.run_until(&mut memory, "2026-03-06T18:30:00Z");
    let ready = world.status().conditions[0].clone();
    assert_eq!(ready.reason, "RemovalStalled");
    assert_eq!(world.status().phase, Some(Phase::ShuttingDown));
    world.is_moving = true;
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Inactive));
}

#[test]
fn a_node_that_loses_its_readiness_stays_active_and_says_so() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Node").unwrap()["status"]["conditions"][0]["status"] = json!("False");
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Active));
    assert_eq!(world.status().conditions[0].reason, "NodeNotReady");
}

#[test]
fn a_node_of_another_machine_is_never_touched() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Node").unwrap()["spec"]["providerID"] = json!("somebody://else");
    world.pods = vec![pod("a")];
    world.run_until(&mut memory, EVENING);
    assert_eq!(world.count("CordonNode") + world.count("EvictPod"), 0);
    assert_eq!(world.status().phase, Some(Phase::Inactive));
}

#[test]
fn idle_days_write_nothing_but_at_the_edges() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, BEFORE), Memory::default());
    world.run_until(&mut memory, EVENING);
    let before = world.log.len();
    for _ in 0..48 {
        world.pause(1800);
        world.settle(&mut memory);
    }
    assert_eq!(world.log.len(), before);
}
