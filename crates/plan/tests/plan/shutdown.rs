//! The shutdown of a machine: the drain, the deadline, and the exceptions to both.

use fivespot_api::{Phase, ShutdownReason};
use fivespot_capi::{Contract, key};
use fivespot_plan::{Access, Cause, EventType, Memory, Step};
use serde_json::json;

use crate::simulation::{
    CLOSES, CONTRACTS, EVENING, MONDAY, NOON, OPENS, Simulation, at, in_service, pod,
};

/// A machine a minute after its window closed, blocked by a pod whose disruption budget never
/// allows its eviction.
fn held_back(memory: &mut Memory) -> Simulation {
    let mut simulation = in_service(Contract::V1Beta2, memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
    simulation.run_until(memory, "2026-03-06T18:01:00Z");
    simulation
}

#[test]
fn a_refused_eviction_is_retried_before_the_machine_is_deleted() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        simulation.pods = vec![pod("a"), pod("b")];
        simulation.budget_until = Some(at("2026-03-06T18:01:00Z"));
        simulation.run_until(&mut memory, EVENING);
        assert!(
            simulation.count("429") >= 4,
            "two pods, several attempts: {:#?}",
            simulation.log
        );
        assert_eq!(simulation.first("CordonNode"), at(CLOSES));
        let deleted = simulation.first("DeleteMachine");
        assert!(
            deleted >= at("2026-03-06T18:01:00Z"),
            "not before the pods are gone: {deleted}"
        );
        assert!(
            deleted < at("2026-03-06T18:02:00Z"),
            "soon after: {deleted}"
        );
        assert_eq!(
            simulation.count("ExcludeDrain"),
            1,
            "our own drain has finished"
        );
        assert_eq!(simulation.status().phase, Some(Phase::Inactive));
    }
}

#[test]
fn an_eviction_that_is_always_refused_ends_at_the_deadline() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
    simulation.run_until(&mut memory, "2026-03-06T18:04:59Z");
    assert_eq!(simulation.count("DeleteMachine"), 0);
    assert_eq!(
        simulation.status().next_cleanup,
        Some(at("2026-03-06T18:05:00Z"))
    );
    let message = simulation.status().message.unwrap();
    assert!(message.contains("default/a is not evicted"), "{message}");
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:05:01Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T18:05:00Z")
    );
    let annotations =
        simulation.get("Machine").unwrap()["metadata"]["annotations"].clone();
    assert!(annotations[key::EXCLUDE_NODE_DRAINING].is_string());
    assert!(annotations[key::EXCLUDE_VOLUME_DETACH].is_string());
}

#[test]
fn a_shutdown_that_begins_within_a_second_has_its_whole_timeout() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
    simulation.now = at("2026-03-06T18:00:00.9Z");
    simulation.run_until(&mut memory, "2026-03-06T18:05:02Z");
    let deleted = simulation.first("DeleteMachine");
    assert!(deleted >= at("2026-03-06T18:05:00.9Z"), "{deleted}");
    assert!(deleted <= at("2026-03-06T18:05:01Z"), "{deleted}");
}

#[test]
fn an_eviction_is_retried_within_five_seconds_after_its_budget_allows_it() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2026-03-06T18:01:56Z"));
    simulation.run_until(&mut memory, "2026-03-06T18:04:00Z");
    let refused = simulation.last("429");
    assert!(refused >= at("2026-03-06T18:01:51Z"), "{refused}");
    let evicted = simulation.last("EvictPod");
    assert!(evicted <= at("2026-03-06T18:02:01Z"), "{evicted}");
}

#[test]
fn no_timeout_means_no_waiting() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta1, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.edit(|sm| sm.spec.graceful_shutdown_timeout = "0s".into());
    simulation.run_until(&mut memory, CLOSES);
    assert_eq!(simulation.first("DeleteMachine"), at(CLOSES));
    assert_eq!(simulation.count("EvictPod"), 0);
}

#[test]
fn pods_that_cannot_be_evicted_do_not_block_the_drain() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let mut pods = [pod("daemon"), pod("mirror"), pod("finished")];
    pods[0].is_of_daemon_set = true;
    pods[1].is_mirror = true;
    pods[2].is_finished = true;
    simulation.pods = pods.into();
    simulation.run_until(&mut memory, CLOSES);
    assert_eq!(simulation.count("EvictPod"), 0);
    assert_eq!(simulation.first("DeleteMachine"), at(CLOSES));
}

#[test]
fn at_most_ten_evictions_are_sent_at_a_time() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = (0..25).map(|number| pod(&format!("p{number}"))).collect();
    simulation.is_moving = false;
    simulation.now = at(CLOSES);
    let batches: Vec<usize> = (0..5)
        .map(|_| {
            let before = simulation.count("EvictPod");
            simulation.reconcile(&mut memory);
            simulation.count("EvictPod") - before
        })
        .collect();
    assert_eq!(
        batches,
        [0, 10, 10, 5, 0],
        "the shutdown record first, then in batches"
    );
}

#[test]
fn a_window_that_opens_again_cancels_the_shutdown() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        simulation.pods = vec![pod("a")];
        simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
        simulation.run_until(&mut memory, "2026-03-06T18:02:00Z");
        assert_eq!(
            simulation.get("Node").unwrap()["spec"]["unschedulable"],
            true
        );
        let uid = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
        simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-20".to_owned()]);
        simulation.settle(&mut memory);
        assert_eq!(
            simulation.get("Node").unwrap()["spec"]["unschedulable"],
            json!(null)
        );
        assert_eq!(simulation.status().shutdown, None);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
        simulation.run_until(&mut memory, "2026-03-06T19:00:00Z");
        assert_eq!(simulation.get("Machine").unwrap()["metadata"]["uid"], uid);
        assert_eq!(simulation.count("DeleteMachine"), 0);
    }
}

#[test]
fn a_foreign_cordon_is_left_alone() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Node").unwrap()["spec"]["unschedulable"] = json!(true);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
    simulation.run_until(&mut memory, "2026-03-06T18:02:00Z");
    simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-20".to_owned()]);
    simulation.settle(&mut memory);
    assert_eq!(
        (
            simulation.count("CordonNode"),
            simulation.count("UncordonNode")
        ),
        (0, 0)
    );
    assert_eq!(
        simulation.get("Node").unwrap()["spec"]["unschedulable"],
        true
    );
}

#[test]
fn an_unreachable_workload_cluster_delays_the_removal_at_most_to_the_deadline() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.access = Access::Unreachable {
        message: "connection refused".to_owned(),
    };
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T18:05:00Z")
    );
    assert_eq!(simulation.count("ExcludeDrain"), 1);
}

#[test]
fn a_refused_kubeconfig_leaves_the_drain_to_cluster_api() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.access = Access::KubeconfigRefused {
        message: "it runs a program".to_owned(),
    };
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:04:59Z");
    assert_eq!(simulation.first("DeleteMachine"), at(CLOSES));
    assert_eq!(simulation.count("ExcludeDrain"), 0);
    simulation.run_until(&mut memory, "2026-03-06T18:05:00Z");
    assert_eq!(simulation.first("ExcludeDrain"), at("2026-03-06T18:05:00Z"));
}

#[test]
fn a_removal_without_progress_is_reported_as_stalled_after_ten_minutes() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:30:00Z");
    let ready = simulation.status().conditions[0].clone();
    assert_eq!(ready.reason, "RemovalStalled");
    assert_eq!(simulation.status().phase, Some(Phase::ShuttingDown));
    simulation.is_moving = true;
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
}

#[test]
fn a_node_of_another_machine_is_never_touched() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Node").unwrap()["spec"]["providerID"] = json!("somebody://else");
    simulation.pods = vec![pod("a")];
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(
        simulation.count("CordonNode") + simulation.count("EvictPod"),
        0
    );
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
}

#[test]
fn the_kill_switch_overtakes_a_shutdown_in_progress() {
    let mut memory = Memory::default();
    let mut simulation = held_back(&mut memory);
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.is_moving = false;
    simulation.settle(&mut memory);
    let shutdown = simulation.status().shutdown.unwrap();
    assert_eq!(shutdown.reason, ShutdownReason::KillSwitch);
    assert_eq!(
        (shutdown.started_at, shutdown.deadline),
        (at(CLOSES), at(CLOSES))
    );
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T18:01:00Z")
    );
}

#[test]
fn a_foreign_exclusion_outlives_a_cancelled_shutdown() {
    let mut memory = Memory::default();
    let mut simulation = held_back(&mut memory);
    let annotations =
        &mut simulation.get_mut("Machine").unwrap()["metadata"]["annotations"];
    annotations[key::EXCLUDE_NODE_DRAINING] = json!("by an admin");
    simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-20".to_owned()]);
    simulation.settle(&mut memory);
    let annotations =
        simulation.get("Machine").unwrap()["metadata"]["annotations"].clone();
    assert_eq!(annotations[key::EXCLUDE_NODE_DRAINING], "by an admin");
    assert_eq!(simulation.status().shutdown, None);
}

#[test]
fn a_shutdown_record_ends_only_after_its_writes_are_reverted() {
    let mut memory = Memory::default();
    let mut simulation = held_back(&mut memory);
    simulation.failing = Some((Step::UncordonNode, Cause::Unavailable));
    simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec!["9-20".to_owned()]);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Error));
    assert!(
        simulation.status().shutdown.is_some(),
        "the Node is still cordoned for it"
    );
    simulation.failing = None;
    simulation.run_until(&mut memory, "2026-03-06T19:00:00Z");
    assert_eq!(simulation.status().shutdown, None);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

/// A machine that was just created, and whose objects Cluster API does not adopt.
fn unadopted(contract: Contract, memory: &mut Memory) -> Simulation {
    let mut simulation = Simulation::new(contract, OPENS);
    simulation.is_moving = false;
    simulation.settle(memory);
    simulation
}

#[test]
fn under_the_kill_switch_a_machine_waits_a_minute_for_cluster_api_to_adopt_its_objects() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = unadopted(contract, &mut memory);
        simulation.edit(|sm| sm.spec.kill_switch = true);
        simulation.run_until(&mut memory, "2026-03-06T09:00:59Z");
        assert_eq!(
            simulation.count("DeleteMachine"),
            0,
            "{:#?}",
            simulation.log
        );
        assert_eq!(
            simulation.status().message.unwrap(),
            "waiting for Cluster API to adopt the objects of Machine worker, which is deleted at \
             2026-03-06T09:01:00Z in any case"
        );
        simulation.run_until(&mut memory, "2026-03-06T09:02:00Z");
        assert_eq!(
            simulation.first("DeleteMachine"),
            at("2026-03-06T09:01:00Z")
        );
        assert_eq!(simulation.kinds(), [""; 0], "{:#?}", simulation.log);
        assert_eq!(simulation.status().phase, Some(Phase::Terminated));
    }
}

#[test]
fn unadopted_objects_are_deleted_directly_once_their_machine_is_being_deleted() {
    let mut memory = Memory::default();
    let mut simulation = unadopted(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Machine").unwrap()["metadata"]["finalizers"] =
        json!([key::MACHINE_FINALIZER]);
    simulation.get_mut("RemoteMachine").unwrap()["metadata"]["finalizers"] =
        json!(["remote-machine"]);
    simulation.delete_sm();
    simulation.run_until(&mut memory, "2026-03-06T09:04:59Z");
    assert_eq!(
        simulation.count("DeleteMachine"),
        0,
        "{:#?}",
        simulation.log
    );
    simulation.run_until(&mut memory, "2026-03-06T09:06:00Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T09:05:00Z")
    );
    assert_eq!(
        simulation.first("DeleteInfrastructure"),
        at("2026-03-06T09:05:00Z")
    );
    let host = simulation.get("RemoteMachine").unwrap();
    assert!(host["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(
        simulation.count("DeleteInfrastructure"),
        1,
        "{:#?}",
        simulation.log
    );
    simulation.run_until(&mut memory, "2026-03-06T09:20:00Z");
    assert_eq!(simulation.status().conditions[0].reason, "RemovalStalled");
    // The provider may still need the bootstrap data.
    assert_eq!(
        simulation.count("DeleteBootstrap"),
        0,
        "{:#?}",
        simulation.log
    );
    simulation.get_mut("RemoteMachine").unwrap()["metadata"]["finalizers"] = json!([]);
    let host = ("RemoteMachine".to_owned(), "worker".to_owned());
    simulation.delete(&host, None);
    simulation.settle(&mut memory);
    assert_eq!(simulation.kinds(), ["Machine"], "{:#?}", simulation.log);
}

#[test]
fn a_shutdown_without_grace_also_waits_a_minute_for_the_adoption() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = unadopted(contract, &mut memory);
        simulation.edit(|sm| sm.spec.graceful_shutdown_timeout = "0s".to_owned());
        simulation.delete_sm();
        simulation.run_until(&mut memory, "2026-03-06T09:00:59Z");
        assert_eq!(
            simulation.count("DeleteMachine"),
            0,
            "{:#?}",
            simulation.log
        );
        simulation.run_until(&mut memory, "2026-03-06T09:01:00Z");
        assert_eq!(
            simulation.first("DeleteMachine"),
            at("2026-03-06T09:01:00Z")
        );
    }
}

#[test]
fn unadopted_objects_of_a_machine_deleted_by_a_user_are_deleted_after_a_minute() {
    let mut memory = Memory::default();
    let mut simulation = unadopted(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Machine").unwrap()["metadata"]["finalizers"] =
        json!([key::MACHINE_FINALIZER]);
    simulation.pause(60);
    let machine = ("Machine".to_owned(), "worker".to_owned());
    simulation.delete(&machine, None);
    simulation.run_until(&mut memory, "2026-03-06T09:01:59Z");
    assert_eq!(
        simulation.count("DeleteInfrastructure"),
        0,
        "{:#?}",
        simulation.log
    );
    simulation.run_until(&mut memory, "2026-03-06T09:03:00Z");
    assert_eq!(
        simulation.first("DeleteInfrastructure"),
        at("2026-03-06T09:02:00Z")
    );
    assert_eq!(simulation.kinds(), ["Machine"], "{:#?}", simulation.log);
    // Cluster API, which has nothing more to delete, removes its finalizer.
    simulation.get_mut("Machine").unwrap()["metadata"]["finalizers"] = json!([]);
    simulation.delete(&machine, None);
    simulation.is_moving = true;
    simulation.run_until(&mut memory, "2026-03-06T09:10:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

#[test]
fn objects_adopted_in_time_are_deleted_by_cluster_api() {
    let mut memory = Memory::default();
    let mut simulation = unadopted(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.run_until(&mut memory, "2026-03-06T09:00:30Z");
    simulation.is_moving = true;
    simulation.settle(&mut memory);
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T09:00:30Z")
    );
    assert_eq!(simulation.count("DeleteInfrastructure"), 0);
    assert_eq!(simulation.kinds(), [""; 0], "{:#?}", simulation.log);
}

#[test]
fn a_drain_without_access_waits_for_it_until_the_deadline() {
    let missing = || Access::KubeconfigMissing {
        message: "there is no Secret prod-kubeconfig".to_owned(),
    };
    // Lost a minute later: the drain may continue when access is back.
    let mut memory = Memory::default();
    let mut simulation = held_back(&mut memory);
    simulation.access = missing();
    simulation.run_until(&mut memory, "2026-03-06T18:04:00Z");
    assert_eq!(simulation.count("DeleteMachine"), 0);
    simulation.run_until(&mut memory, "2026-03-06T18:06:00Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T18:05:00Z")
    );
    assert_eq!(simulation.count("ExcludeDrain"), 1, "at the deadline");
    // No access from the beginning: Cluster API drains, at once.
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.access = missing();
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.first("DeleteMachine"), at(CLOSES));
    assert_eq!(simulation.count("ExcludeDrain"), 0);
}

#[test]
fn a_refused_exclusion_is_reported_and_does_not_block_the_deletion() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.failing = Some((Step::ExcludeDrain, Cause::Rejected));
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.is_moving = false;
    simulation.settle(&mut memory);
    assert_eq!(simulation.first("DeleteMachine"), at(NOON));
    let status = simulation.status();
    assert_eq!(status.phase, Some(Phase::ShuttingDown));
    assert_eq!(
        status.message.unwrap(),
        "the kill switch is set; waiting for Machine worker to be removed; cannot change the \
         Machine: the API server refuses it"
    );
    // Without a response both are retried instead.
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.failing = Some((Step::ExcludeDrain, Cause::Unavailable));
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert_eq!(simulation.count("DeleteMachine"), 0);
}

#[test]
fn a_drain_by_cluster_api_is_not_reported_as_ended_while_its_exclusion_is_refused() {
    let mut memory = Memory::default();
    let mut simulation = held_back(&mut memory);
    simulation.is_moving = false;
    let machine = simulation.get_mut("Machine").unwrap();
    machine["metadata"]["deletionTimestamp"] = json!("2026-03-06T18:01:00Z");
    machine["status"]["conditions"] = json!([{
        "type": "Deleting", "status": "True", "reason": "DrainingNode",
        "message": "Drain not completed yet",
    }]);
    simulation.failing = Some((Step::ExcludeDrain, Cause::Rejected));
    simulation.run_until(&mut memory, "2026-03-06T18:05:00Z");
    for _ in 0..10 {
        simulation.pause(1);
        simulation.settle(&mut memory);
    }
    let cut_off = |simulation: &Simulation| {
        let events = simulation.events.iter();
        let warnings = events.filter(|event| event.reason == "DrainIncomplete");
        let message = simulation.status().message.unwrap();
        (warnings.count(), message.contains("the deadline ended"))
    };
    assert_eq!(simulation.count("ExcludeDrain"), 1, "it was refused");
    assert_eq!(cut_off(&simulation), (0, false));
    simulation.failing = None;
    simulation.run_until(&mut memory, "2026-03-06T18:06:00Z");
    assert_eq!(simulation.count("ExcludeDrain"), 2, "it was accepted");
    assert_eq!(cut_off(&simulation), (1, true));
}

#[test]
fn a_deadline_that_has_passed_is_not_the_next_transition() {
    let mut memory = Memory::default();
    let mut simulation = held_back(&mut memory);
    let deadline = Some(at("2026-03-06T18:05:00Z"));
    assert_eq!(simulation.status().next_transition, deadline);
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:10:00Z");
    let status = simulation.status();
    assert_eq!(status.phase, Some(Phase::ShuttingDown));
    assert_eq!(status.next_transition, Some(at(MONDAY)));
    assert_eq!(status.next_cleanup, deadline);
}

#[test]
fn the_finalizer_of_a_hanging_removal_is_released_after_a_day_if_configured() {
    for releases in [false, true] {
        let mut memory = Memory::default();
        let mut simulation = in_service(Contract::V1Beta2, &mut memory);
        simulation.releases_stuck = releases;
        simulation.delete_sm();
        simulation.is_moving = false;
        simulation.run_until(&mut memory, "2026-03-07T11:59:59Z");
        assert!(simulation.sm.is_some());
        simulation.run_until(&mut memory, "2026-03-07T12:00:00Z");
        assert_eq!(simulation.sm.is_none(), releases);
        let warned = simulation.events.iter().any(|event| {
            event.reason == "FinalizerCleanupTimedOut" && event.kind == EventType::Warning
        });
        assert_eq!(warned, releases);
        assert!(
            simulation.get("Machine").is_some(),
            "only the finalizer is removed"
        );
    }
}

#[test]
fn a_finalizer_whose_release_is_refused_is_not_announced_as_released() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.releases_stuck = true;
    simulation.delete_sm();
    simulation.is_moving = false;
    simulation.failing = Some((Step::RemoveFinalizer, Cause::Unavailable));
    simulation.run_until(&mut memory, "2026-03-07T13:00:00Z");
    assert!(simulation.sm.is_some());
    let mut events = simulation.events.iter();
    assert!(events.all(|event| event.reason != "FinalizerCleanupTimedOut"));
    simulation.failing = None;
    simulation.run_until(&mut memory, "2026-03-07T14:00:00Z");
    assert!(simulation.sm.is_none());
    let mut events = simulation.events.iter();
    assert!(events.any(|event| event.reason == "FinalizerCleanupTimedOut"));
}

#[test]
fn while_paused_the_leftovers_of_a_machine_are_not_reported_as_gone() {
    for is_killed in [true, false] {
        let mut memory = Memory::default();
        let mut simulation = in_service(Contract::V1Beta2, &mut memory);
        simulation.edit(|object| {
            object.spec.kill_switch = is_killed;
            object.spec.schedule.hours_of_day = vec!["1".to_owned()];
        });
        simulation.objects.retain(|(kind, _), _| kind != "Machine");
        simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
        simulation.settle(&mut memory);
        assert_eq!(simulation.status().phase, Some(Phase::ShuttingDown));
    }
}

#[test]
fn a_deadline_that_passes_while_paused_is_not_reported_as_upcoming() {
    let mut memory = Memory::default();
    let mut simulation = held_back(&mut memory);
    let deadline = Some(at("2026-03-06T18:05:00Z"));
    assert_eq!(simulation.status().next_transition, deadline);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    assert_eq!(simulation.settle(&mut memory).requeue_at, deadline);
    simulation.run_until(&mut memory, EVENING);
    assert_eq!(simulation.status().next_transition, Some(at(MONDAY)));
}

#[test]
fn a_machine_that_was_paused_in_service_is_not_reported_as_joining_again() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    simulation.get_mut("Node").unwrap()["status"] =
        json!({ "conditions": [{ "type": "Ready", "status": "False" }] });
    simulation.settle(&mut memory);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(simulation.status().conditions[0].reason, "NodeNotReady");
}

#[test]
fn while_a_machine_is_wanted_its_next_cleanup_is_the_end_of_the_window() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let status = simulation.status();
    assert_eq!(status.next_cleanup, Some(at(CLOSES)));
    assert_eq!(status.next_activation, None);
    assert_eq!(status.next_transition, Some(at(CLOSES)));
    simulation.run_until(&mut memory, EVENING);
    let status = simulation.status();
    assert_eq!(status.next_cleanup, None);
    assert_eq!(status.next_activation, Some(at(MONDAY)));
    assert_eq!(status.next_transition, Some(at(MONDAY)));
}

#[test]
fn under_the_kill_switch_no_time_is_announced_and_the_window_is_still_followed() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.settle(&mut memory);
    let status = simulation.status();
    assert_eq!(status.phase, Some(Phase::Terminated));
    assert!(status.in_schedule);
    let times = [
        status.next_activation,
        status.next_cleanup,
        status.next_transition,
    ];
    assert_eq!(times, [None; 3]);
    simulation.run_until(&mut memory, EVENING);
    assert!(!simulation.status().in_schedule);
}
