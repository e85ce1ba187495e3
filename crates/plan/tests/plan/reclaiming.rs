//! Reclaim: the owner of the host requests it back.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{Phase, name};
use fivespot_capi::Contract;
use fivespot_plan::{Access, Cause, Memory, Step, Unknown};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::world::{CONTRACTS, NOON, World, at, in_service, pod};

/// Writes the agent's request on its Node.
fn request(world: &mut World) {
    let annotations = json!({
        name::RECLAIM_REQUESTED_ANNOTATION: "true",
        name::RECLAIM_REASON_ANNOTATION: "process-match: game",
        name::RECLAIM_REQUESTED_AT_ANNOTATION: NOON,
    });
    let node = world.get_mut("Node").unwrap();
    for (key, value) in annotations.as_object().unwrap() {
        node["metadata"]["annotations"][key] = value.clone();
    }
}

fn said(world: &World, kind: ConditionType) -> String {
    let status = world.status();
    condition::find(&status.conditions, kind).map_or_else(String::new, |found| {
        format!("{} {}: {}", found.status, found.reason, found.message)
    })
}

fn steps(world: &World, from: usize) -> Vec<&str> {
    let steps = world.log[from..].iter().map(|(_, step)| step.as_str());
    steps.filter(|step| *step != "Status").collect()
}

#[test]
fn a_request_on_the_node_removes_the_machine_and_disables_the_schedule() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = in_service(contract, &mut memory);
        world.pods = vec![pod("a"), pod("b")];
        let from = world.log.len();
        request(&mut world);
        world.settle(&mut memory);
        assert_eq!(
            steps(&world, from),
            [
                "CommitReclaim",
                "DisableSchedule",
                "RecordDisabled",
                "CordonNode",
                "DeletePod",
                "DeletePod",
                "ExcludeDrain",
                "DeleteMachine",
            ]
        );
        assert!(world.kinds().is_empty(), "{:?}", world.kinds());
        let status = world.status();
        assert_eq!(status.phase, Some(Phase::Disabled));
        assert_eq!((status.node_ref, status.shutdown), (None, None));
        let phases: Vec<_> = world.phases.iter().map(|(_, phase)| *phase).collect();
        assert!(phases.ends_with(&[
            Phase::Active,
            Phase::EmergencyRemove,
            Phase::Disabled
        ]));
        assert!(!world.sm().spec.schedule.enabled);
        assert_eq!(
            said(&world, ConditionType::Scheduled),
            "False EmergencyReclaimDisabledSchedule: disabled because the host was \
             reclaimed (2026-03-06T12:00:00Z process-match: game); set spec.schedule.enabled \
             to true to return to service"
        );
    }
}

#[test]
fn the_messages_of_a_reclaim() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.pods = vec![pod("a"), pod("b")];
    let (reported, events) = (world.reported.len(), world.events.len());
    request(&mut world);
    world.settle(&mut memory);
    insta::assert_snapshot!(world.reported[reported..].join("\n"), @r"
    2026-03-06T12:00:00Z EmergencyReclaim the host is reclaimed (process-match: game); Machine worker is removed at once
    2026-03-06T12:00:00Z EmergencyReclaim waiting for 2 pods to leave Node worker
    2026-03-06T12:00:00Z Disabled disabled because the host was reclaimed (2026-03-06T12:00:00Z process-match: game); set spec.schedule.enabled to true to return to service
    ");
    let events: Vec<_> = world.events[events..]
        .iter()
        .map(|event| format!("{} {} {}", event.kind.as_str(), event.reason, event.note))
        .collect();
    insta::assert_snapshot!(events.join("\n"), @r"
    Warning EmergencyReclaim Active -> EmergencyRemove: the host is reclaimed (process-match: game); Machine worker is removed at once
    Warning EmergencyReclaim deleting 2 pods on Node worker at once: disruption budgets do not hold a reclaimed host
    Warning EmergencyReclaimDisabledSchedule disabled because the host was reclaimed (2026-03-06T12:00:00Z process-match: game); set spec.schedule.enabled to true to return to service
    Normal ScheduleDisabled EmergencyRemove -> Disabled: disabled because the host was reclaimed (2026-03-06T12:00:00Z process-match: game); set spec.schedule.enabled to true to return to service
    ");
}

#[test]
fn a_crash_after_any_write_of_a_reclaim_ends_in_the_same_state() {
    let cases = CONTRACTS
        .into_iter()
        .flat_map(|contract| [vec![pod("a")], Vec::new()].map(|pods| (contract, pods)));
    for (contract, pods) in cases {
        for writes in 0..20 {
            let mut memory = Memory::default();
            let mut world = in_service(contract, &mut memory);
            world.pods.clone_from(&pods);
            request(&mut world);
            world.writes_left = writes;
            world.run_until(&mut memory, "2026-03-06T12:00:30Z");
            world.writes_left = usize::MAX;
            let mut memory = Memory::default();
            world.run_until(&mut memory, "2026-03-06T12:05:00Z");
            assert_eq!(world.status().phase, Some(Phase::Disabled), "{writes}");
            assert!(world.kinds().is_empty(), "{writes}: {:?}", world.kinds());
            assert_eq!(world.count("DisableSchedule"), 1, "{writes}");
            assert!(
                said(&world, ConditionType::Scheduled)
                    .contains("EmergencyReclaimDisabledSchedule"),
                "{writes}: {}",
                said(&world, ConditionType::Scheduled)
            );
        }
    }
}

#[test]
fn a_schedule_enabled_during_a_reclaim_stays_enabled() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    request(&mut world);
    world.is_moving = false;
    world.settle(&mut memory);
    world.edit(|sm| sm.spec.schedule.enabled = true);
    world.is_moving = true;
    world.settle(&mut memory);
    assert!(world.sm().spec.schedule.enabled);
    assert_eq!(world.status().phase, Some(Phase::Active), "a new machine");
    assert!(said(&world, ConditionType::Scheduled).starts_with("True"));
}

#[test]
fn a_request_while_the_process_still_runs_reclaims_again() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    for round in 1..=2 {
        request(&mut world);
        world.settle(&mut memory);
        assert_eq!(world.count("CommitReclaim"), round);
        assert_eq!(world.status().phase, Some(Phase::Disabled));
        world.edit(|sm| sm.spec.schedule.enabled = true);
        world.settle(&mut memory);
        assert_eq!(world.status().phase, Some(Phase::Active));
    }
}

#[test]
fn a_stale_request_on_a_joining_node_is_cleared_once() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = in_service(contract, &mut memory);
        // As if the operator had not reconciled since the Machine was created.
        world.sm.as_mut().unwrap().status.as_mut().unwrap().node_ref = None;
        request(&mut world);
        world.settle(&mut memory);
        assert_eq!(world.status().phase, Some(Phase::Active));
        assert_eq!(world.count("ClearRequest"), 1);
        request(&mut world);
        world.settle(&mut memory);
        assert_eq!(
            world.status().phase,
            Some(Phase::Disabled),
            "the agent requests it again"
        );
    }
}

#[test]
fn a_request_on_the_machine_itself_counts_as_well_and_another_value_does_not() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    let node = world.get_mut("Node").unwrap();
    node["metadata"]["annotations"][name::RECLAIM_REQUESTED_ANNOTATION] = json!("yes");
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Active));
    let machine = world.get_mut("Machine").unwrap();
    machine["metadata"]["annotations"][name::RECLAIM_ANNOTATION] = json!("by hand");
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Disabled));
    assert!(world.kinds().is_empty());
}

#[test]
fn a_terminating_pod_delays_a_reclaim_by_at_most_ten_seconds() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    let mut stuck = pod("stuck");
    stuck.is_deleting = true;
    world.pods = vec![stuck];
    world.is_moving = false;
    request(&mut world);
    world.run_until(&mut memory, "2026-03-06T12:00:30Z");
    assert_eq!(world.first("DeleteMachine"), at("2026-03-06T12:00:10Z"));
}

#[test]
fn an_unreachable_workload_cluster_and_a_rejected_spec_do_not_block_a_reclaim() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    let machine = world.get_mut("Machine").unwrap();
    machine["metadata"]["annotations"][name::RECLAIM_ANNOTATION] = json!("by hand");
    world.access = Access::Unreachable {
        message: "no route to host".to_owned(),
    };
    world.failing = Some((Step::DisableSchedule, Cause::Rejected));
    world.run_until(&mut memory, "2026-03-06T12:00:29Z");
    assert_eq!(world.first("DeleteMachine"), at("2026-03-06T12:00:10Z"));
    assert!(
        world.count("RecordDisabled") == 0,
        "it has not been disabled"
    );
}

#[test]
fn a_node_that_is_deleted_during_a_reclaim_changes_nothing() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    request(&mut world);
    world.is_moving = false;
    let (_, _) = world.reconcile(&mut memory);
    world
        .objects
        .remove(&("Node".to_owned(), "worker".to_owned()));
    world.is_moving = true;
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Disabled));
    assert!(world.kinds().is_empty());
}

#[test]
fn the_request_is_cleared_on_a_node_that_outlives_its_machine() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    request(&mut world);
    world.is_moving = false;
    world.settle(&mut memory);
    let node = world.get("Node").unwrap().clone();
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        world
            .objects
            .remove(&(kind.to_owned(), "worker".to_owned()));
    }
    world.access = Access::Unreachable {
        message: "no route to host".to_owned(),
    };
    world.settle(&mut memory);
    let status = world.status();
    assert_eq!(status.phase, Some(Phase::Disabled));
    assert!(status.node_ref.is_some(), "until it is done");
    world.access = Access::Connected;
    world.settle(&mut memory);
    assert_eq!(world.count("ClearRequest"), 1);
    assert_eq!(world.status().node_ref, None);
    let annotations = &world.get("Node").unwrap()["metadata"]["annotations"];
    assert_eq!(annotations[name::RECLAIM_REQUESTED_ANNOTATION], Value::Null);
    assert_eq!(
        world.get("Node").unwrap()["metadata"]["uid"],
        node["metadata"]["uid"]
    );
}

#[test]
fn a_pause_stops_a_reclaim_and_the_kill_switch_precedes_it() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    request(&mut world);
    let from = world.log.len();
    world.settle(&mut memory);
    assert!(steps(&world, from).is_empty());
    world.edit(|sm| sm.spec.kill_switch = true);
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Terminated));
    assert_eq!(world.count("CommitReclaim"), 0);
}

#[test]
fn the_agent_is_configured_reported_and_removed() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    let commands = |commands: &[&str]| {
        let commands = commands.iter().map(|command| (*command).to_owned());
        Some(commands.collect::<Vec<_>>())
    };
    world.edit(|sm| sm.spec.kill_if_commands = commands(&["steam"]));
    let from = world.log.len();
    world.settle(&mut memory);
    assert_eq!(steps(&world, from), ["LabelNode", "CreateAgentConfig"]);
    assert_eq!(
        said(&world, ConditionType::AgentReady),
        "Unknown NotInstalled: waiting for the agent on Node worker to report"
    );
    world.run_until(&mut memory, "2026-03-06T12:02:00Z");
    assert_eq!(
        said(&world, ConditionType::AgentReady),
        "False NotInstalled: no agent on Node worker reports the configuration; install the \
         agent's DaemonSet in the workload cluster"
    );
    let id = ("ConfigMap".to_owned(), name::reclaim_config_map("worker"));
    let config = world.objects[&id].clone();
    let text = config["data"][name::RECLAIM_CONFIG_KEY].as_str().unwrap();
    let hash = fivespot_api::reclaim::config_hash(text);
    let node = &world.get("Node").unwrap()["metadata"];
    assert_eq!(config["metadata"]["ownerReferences"][0]["uid"], node["uid"]);
    for (report, expected) in [
        (
            format!("{hash} ok"),
            "True Running: the agent on Node worker watches for the commands",
        ),
        (
            format!("{hash} rejected: too long"),
            "False ConfigRejected: the agent on Node worker rejects its configuration: too long",
        ),
    ] {
        let node = world.get_mut("Node").unwrap();
        node["metadata"]["annotations"][name::RECLAIM_AGENT_KEY] = json!(report);
        world.settle(&mut memory);
        assert_eq!(said(&world, ConditionType::AgentReady), expected);
    }
    // After a restart nothing is reported again.
    let from = world.log.len();
    world.run_until(&mut Memory::default(), "2026-03-06T12:10:00Z");
    assert_eq!(world.log.len(), from);

    world.edit(|sm| sm.spec.kill_if_commands = commands(&["steam", "vlc"]));
    world.settle(&mut memory);
    assert_eq!(steps(&world, from), ["UpdateAgentConfig"]);
    let from = world.log.len();
    world.edit(|sm| sm.spec.kill_if_commands = None);
    world.settle(&mut memory);
    assert_eq!(steps(&world, from), ["DeleteAgentConfig", "LabelNode"]);
    assert_eq!(said(&world, ConditionType::AgentReady), "");
    let labels = &world.get("Node").unwrap()["metadata"]["labels"];
    assert_eq!(labels[name::RECLAIM_AGENT_KEY], Value::Null);
}

#[test]
fn a_foreign_config_map_and_invalid_commands_are_left_alone() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name::reclaim_config_map("worker"), "namespace": "5spot-system" },
        "data": { "reclaim.toml": "theirs" },
    }));
    world.edit(|sm| sm.spec.kill_if_commands = Some(vec!["steam".to_owned()]));
    let from = world.log.len();
    world.settle(&mut memory);
    assert_eq!(steps(&world, from), ["LabelNode"]);
    assert!(said(&world, ConditionType::AgentReady).contains("not created by 5-Spot"));
    // A blank command would match every command line of the host.
    for commands in [
        vec!["x".repeat(257)],
        vec!["steam".to_owned(), " ".to_owned()],
    ] {
        let from = world.log.len();
        world.edit(|sm| sm.spec.kill_if_commands = Some(commands.clone()));
        world.settle(&mut memory);
        assert_eq!(steps(&world, from), [""; 0]);
        assert!(said(&world, ConditionType::AgentReady).starts_with("False InvalidSpec"));
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_reported_and_not_taken_as_applied() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.hidden_configs = Some(Unknown::Forbidden {
        message: "configmaps is forbidden".to_owned(),
    });
    world.edit(|sm| sm.spec.kill_if_commands = Some(vec!["steam".to_owned()]));
    world.settle(&mut memory);
    assert_eq!(
        said(&world, ConditionType::AgentReady),
        "Unknown NotInstalled: the ConfigMap reclaim-agent-worker in 5spot-system cannot be \
         read, so the agent is not configured: configmaps is forbidden"
    );
    world.hidden_configs = None;
    world.settle(&mut memory);
    assert_eq!(
        said(&world, ConditionType::AgentReady),
        "Unknown NotInstalled: waiting for the agent on Node worker to report"
    );
}

#[test]
fn a_failure_to_disable_the_schedule_blocks_nothing_and_is_retried() {
    for cause in [Cause::Unavailable, Cause::Forbidden, Cause::Rejected] {
        let mut memory = Memory::default();
        let mut world = in_service(Contract::V1Beta2, &mut memory);
        world.pods = vec![pod("a")];
        world.failing = Some((Step::DisableSchedule, cause));
        request(&mut world);
        world.settle(&mut memory);
        assert_eq!(world.first("DeletePod"), at(NOON), "{cause:?}");
        assert_eq!(world.first("DeleteMachine"), at(NOON), "{cause:?}");
        assert!(world.kinds().is_empty(), "{cause:?}: {:?}", world.kinds());
        // The host is not used again before the schedule is disabled.
        world.run_until(&mut memory, "2026-03-06T12:05:00Z");
        assert!(world.kinds().is_empty(), "{cause:?}: {:#?}", world.log);
        let message = world.status().message.unwrap();
        assert!(
            message.contains("cannot disable the schedule:"),
            "{message}"
        );
        let tries = world.count("DisableSchedule");
        assert!(tries > 3, "{cause:?}: {tries}");
        world.failing = None;
        world.run_until(&mut memory, "2026-03-06T12:10:00Z");
        assert!(!world.sm().spec.schedule.enabled, "{cause:?}");
        assert_eq!(world.status().phase, Some(Phase::Disabled), "{cause:?}");
    }
}

#[test]
fn a_schedule_that_is_disabled_late_is_recorded_during_the_shutdown() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.failing = Some((Step::DisableSchedule, Cause::Unavailable));
    world.is_moving = false;
    request(&mut world);
    world.settle(&mut memory);
    world.failing = None;
    world.run_until(&mut memory, "2026-03-06T12:01:00Z");
    assert_eq!(world.count("RecordDisabled"), 1, "{:#?}", world.log);
    world.edit(|sm| sm.spec.schedule.enabled = true);
    world.is_moving = true;
    world.settle(&mut memory);
    assert_eq!(
        world.status().phase,
        Some(Phase::Active),
        "a user enabled it on purpose"
    );
}

/// A machine in service whose operator is configured to reclaim with an override of four hours.
fn with_override(memory: &mut Memory) -> World {
    let mut world = in_service(Contract::V1Beta2, memory);
    world.reclaim_override = Some(SignedDuration::from_hours(4));
    world
}

#[test]
fn with_an_override_a_reclaim_keeps_the_spec_and_ends_with_the_override() {
    let mut memory = Memory::default();
    let mut world = with_override(&mut memory);
    let uid = world.status().machine_ref.unwrap().uid.unwrap();
    let from = world.log.len();
    request(&mut world);
    world.settle(&mut memory);
    assert_eq!(
        steps(&world, from),
        [
            "CommitReclaim",
            "CreateOverride",
            "RecordDisabled",
            "ExcludeDrain",
            "DeleteMachine",
        ]
    );
    let name = name::reclaim_override("worker", &uid);
    let stored = &world.objects[&("ScheduleOverride".to_owned(), name.clone())];
    assert_eq!(
        stored["spec"],
        json!({
            "targetRef": { "name": "worker" },
            "mode": "Stop",
            "endTime": "2026-03-06T16:00:00Z",
            "reason": "the host is reclaimed: 2026-03-06T12:00:00Z process-match: game",
        })
    );
    assert!(world.sm().spec.schedule.enabled);
    assert_eq!(world.status().phase, Some(Phase::Inactive));
    assert_eq!(
        said(&world, ConditionType::Scheduled),
        format!(
            "False OverrideStop: override {name} stops the machine until 2026-03-06T16:00:00Z"
        )
    );
    world.run_until(&mut memory, "2026-03-06T15:59:59Z");
    assert!(world.get("Machine").is_none());
    world.run_until(&mut memory, "2026-03-06T16:05:00Z");
    assert_eq!(world.status().phase, Some(Phase::Active));
}

#[test]
fn an_override_that_a_reclaim_has_created_already_is_not_created_twice() {
    for writes in 0..12 {
        let mut memory = Memory::default();
        let mut world = with_override(&mut memory);
        request(&mut world);
        world.writes_left = writes;
        world.run_until(&mut memory, "2026-03-06T12:00:30Z");
        world.writes_left = usize::MAX;
        let mut memory = Memory::default();
        world.run_until(&mut memory, "2026-03-06T12:05:00Z");
        assert_eq!(world.status().phase, Some(Phase::Inactive), "{writes}");
        assert_eq!(world.schedule.overrides.len(), 1, "{writes}");
    }
}

#[test]
fn a_refused_override_blocks_no_reclaim_and_precedes_another_machine() {
    let mut memory = Memory::default();
    let mut world = with_override(&mut memory);
    world.failing = Some((Step::CreateOverride, Cause::Forbidden));
    request(&mut world);
    world.run_until(&mut memory, "2026-03-06T12:00:29Z");
    assert_eq!(world.first("DeleteMachine"), at(NOON));
    assert_eq!(world.count("RecordDisabled"), 0);
    world.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert!(world.get("Machine").is_none(), "no machine is created");
    assert!(world.status().message.unwrap().contains("override"));
    world.failing = None;
    world.run_until(&mut memory, "2026-03-06T12:20:00Z");
    assert_eq!(world.schedule.overrides.len(), 1);
    assert_eq!(world.status().phase, Some(Phase::Inactive));
}

#[test]
fn without_the_override_of_a_reclaim_the_machine_is_created_again() {
    let mut memory = Memory::default();
    let mut world = with_override(&mut memory);
    request(&mut world);
    world.settle(&mut memory);
    world.schedule.overrides.clear();
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Active));
}
