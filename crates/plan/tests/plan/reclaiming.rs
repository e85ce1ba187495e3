//! Reclaim: the owner of the host requests it back.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{Phase, name};
use fivespot_capi::Contract;
use fivespot_plan::{Access, Cause, Memory, Step, Unknown};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::simulation::{CONTRACTS, NOON, Simulation, at, in_service, pod};

/// Writes the agent's request on its Node.
pub(crate) fn request(simulation: &mut Simulation) {
    let annotations = json!({
        name::RECLAIM_REQUESTED_ANNOTATION: "true",
        name::RECLAIM_REASON_ANNOTATION: "process-match: game",
        name::RECLAIM_REQUESTED_AT_ANNOTATION: NOON,
    });
    let node = simulation.get_mut("Node").unwrap();
    for (key, value) in annotations.as_object().unwrap() {
        node["metadata"]["annotations"][key] = value.clone();
    }
}

pub(crate) fn condition_text(simulation: &Simulation, kind: ConditionType) -> String {
    let status = simulation.status();
    condition::find(&status.conditions, kind).map_or_else(String::new, |found| {
        format!("{} {}: {}", found.status, found.reason, found.message)
    })
}

fn steps(simulation: &Simulation, from: usize) -> Vec<&str> {
    let steps = simulation.log[from..].iter().map(|(_, step)| step.as_str());
    steps.filter(|step| *step != "Status").collect()
}

#[test]
fn a_request_on_the_node_removes_the_machine_and_disables_the_schedule() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        simulation.pods = vec![pod("a"), pod("b")];
        let from = simulation.log.len();
        request(&mut simulation);
        simulation.settle(&mut memory);
        assert_eq!(
            steps(&simulation, from),
            [
                "RecordReclaim",
                "DisableSchedule",
                "RecordDisabled",
                "CordonNode",
                "DeletePod",
                "DeletePod",
                "ExcludeDrain",
                "DeleteMachine",
            ]
        );
        assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
        let status = simulation.status();
        assert_eq!(status.phase, Some(Phase::Disabled));
        assert_eq!((status.node_ref, status.shutdown), (None, None));
        let phases: Vec<_> = simulation.phases.iter().map(|(_, phase)| *phase).collect();
        assert!(phases.ends_with(&[
            Phase::Active,
            Phase::EmergencyRemove,
            Phase::Disabled
        ]));
        assert!(!simulation.sm().spec.schedule.enabled);
        assert_eq!(
            condition_text(&simulation, ConditionType::Scheduled),
            "False EmergencyReclaimDisabledSchedule: disabled because the host was \
             reclaimed (2026-03-06T12:00:00Z process-match: game); set spec.schedule.enabled \
             to true to return to service"
        );
    }
}

#[test]
fn a_reclaim_sets_the_field_that_the_object_has() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        simulation.edit(|sm| sm.spec.enabled = Some(true));
        simulation.settle(&mut memory);
        request(&mut simulation);
        simulation.settle(&mut memory);
        assert_eq!(simulation.status().phase, Some(Phase::Disabled));
        let spec = &simulation.sm().spec;
        assert_eq!((spec.enabled, spec.schedule.enabled), (Some(false), true));
        let scheduled = condition_text(&simulation, ConditionType::Scheduled);
        assert!(
            scheduled.contains("set spec.enabled to true"),
            "{scheduled}"
        );
        simulation
            .get_mut("Node")
            .map(|node| node["metadata"]["annotations"].take());
        simulation.edit(|sm| sm.spec.enabled = Some(true));
        simulation.settle(&mut memory);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
    }
}

#[test]
fn a_machine_is_disabled_if_either_field_is_false_and_ready_only_while_active() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        assert!(simulation.status().ready);
        for (of_spec, of_schedule, field) in [
            (Some(false), true, "spec.enabled"),
            (Some(true), false, "spec.schedule.enabled"),
            (None, false, "spec.schedule.enabled"),
            (Some(false), false, "spec.enabled"),
        ] {
            simulation.edit(|sm| {
                sm.spec.enabled = of_spec;
                sm.spec.schedule.enabled = of_schedule;
            });
            simulation.settle(&mut memory);
            let status = simulation.status();
            assert_eq!((status.phase, status.ready), (Some(Phase::Disabled), false));
            assert_eq!(
                condition_text(&simulation, ConditionType::Scheduled),
                format!(
                    "False ScheduleDisabled: the schedule is disabled; set {field} to true \
                     to enable it"
                )
            );
        }
        for enabled in [None, Some(true)] {
            simulation.edit(|sm| {
                sm.spec.enabled = enabled;
                sm.spec.schedule.enabled = true;
            });
            simulation.settle(&mut memory);
            assert!(simulation.status().ready);
        }
    }
}

#[test]
fn the_messages_of_a_reclaim() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a"), pod("b")];
    let (reported, events) = (simulation.reported.len(), simulation.events.len());
    request(&mut simulation);
    simulation.settle(&mut memory);
    insta::assert_snapshot!(simulation.reported[reported..].join("\n"), @r"
    2026-03-06T12:00:00Z EmergencyReclaim the host is reclaimed (process-match: game); Machine worker is removed at once
    2026-03-06T12:00:00Z EmergencyReclaim waiting for 2 pods to leave Node worker
    2026-03-06T12:00:00Z Disabled disabled because the host was reclaimed (2026-03-06T12:00:00Z process-match: game); set spec.schedule.enabled to true to return to service
    ");
    let events: Vec<_> = simulation.events[events..]
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
            let mut simulation = in_service(contract, &mut memory);
            simulation.pods.clone_from(&pods);
            request(&mut simulation);
            simulation.writes_left = writes;
            simulation.run_until(&mut memory, "2026-03-06T12:00:30Z");
            simulation.writes_left = usize::MAX;
            let mut memory = Memory::default();
            simulation.run_until(&mut memory, "2026-03-06T12:05:00Z");
            assert_eq!(simulation.status().phase, Some(Phase::Disabled), "{writes}");
            assert!(
                simulation.kinds().is_empty(),
                "{writes}: {:?}",
                simulation.kinds()
            );
            assert_eq!(simulation.count("DisableSchedule"), 1, "{writes}");
            assert!(
                condition_text(&simulation, ConditionType::Scheduled)
                    .contains("EmergencyReclaimDisabledSchedule"),
                "{writes}: {}",
                condition_text(&simulation, ConditionType::Scheduled)
            );
        }
    }
}

#[test]
fn a_schedule_enabled_during_a_reclaim_stays_enabled() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    request(&mut simulation);
    simulation.is_moving = false;
    simulation.settle(&mut memory);
    simulation.edit(|sm| sm.spec.schedule.enabled = true);
    simulation.is_moving = true;
    simulation.settle(&mut memory);
    assert!(simulation.sm().spec.schedule.enabled);
    assert_eq!(
        simulation.status().phase,
        Some(Phase::Active),
        "a new machine"
    );
    assert!(condition_text(&simulation, ConditionType::Scheduled).starts_with("True"));
}

#[test]
fn a_request_while_the_process_still_runs_reclaims_again() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    for round in 1..=2 {
        request(&mut simulation);
        simulation.settle(&mut memory);
        assert_eq!(simulation.count("RecordReclaim"), round);
        assert_eq!(simulation.status().phase, Some(Phase::Disabled));
        simulation.edit(|sm| sm.spec.schedule.enabled = true);
        simulation.settle(&mut memory);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
    }
}

/// How many reclaims the account contains, and how many were announced.
fn counted(simulation: &Simulation) -> (i64, usize) {
    let usage = simulation.status().usage.unwrap();
    let announced = simulation.events.iter().filter(|event| {
        event.reason == "EmergencyReclaim" && event.note.contains("the host is reclaimed")
    });
    let counts = usage.months.iter().map(|month| month.reclaims);
    (counts.sum(), announced.count())
}

#[test]
fn a_reclaim_is_counted_and_announced_once_whichever_step_fails_during_it() {
    for step in [
        Step::RecordReclaim,
        Step::DisableSchedule,
        Step::CordonNode,
        Step::DeletePod,
        Step::ExcludeDrain,
        Step::DeleteMachine,
    ] {
        let mut memory = Memory::default();
        let mut simulation = in_service(Contract::V1Beta2, &mut memory);
        simulation.pods = vec![pod("a")];
        request(&mut simulation);
        simulation.failing = Some((step, Cause::Unavailable));
        simulation.run_until(&mut memory, "2026-03-06T12:00:20Z");
        simulation.failing = None;
        simulation.run_until(&mut memory, "2026-03-06T12:05:00Z");
        assert_eq!(simulation.status().phase, Some(Phase::Disabled), "{step:?}");
        assert_eq!(counted(&simulation), (1, 1), "{step:?}");
    }
}

#[test]
fn a_reclaim_that_is_paused_and_resumed_is_counted_and_announced_once() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.is_moving = false;
    request(&mut simulation);
    simulation.settle(&mut memory);
    for is_paused in [true, false] {
        let cluster = simulation.get_mut("Cluster").unwrap();
        cluster["spec"]["paused"] = json!(is_paused);
        simulation.settle(&mut memory);
    }
    simulation.is_moving = true;
    simulation.run_until(&mut memory, "2026-03-06T12:05:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Disabled));
    assert_eq!(counted(&simulation), (1, 1));
}

#[test]
fn a_reclaim_whose_record_is_refused_writes_no_status_until_the_retry() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    request(&mut simulation);
    simulation.failing = Some((Step::RecordReclaim, Cause::Rejected));
    simulation.settle(&mut memory);
    let status = simulation.status();
    assert_eq!((status.phase, status.shutdown), (Some(Phase::Error), None));
    let writes = simulation.log.len();
    for _ in 0..10 {
        simulation.pause(1);
        simulation.settle(&mut memory);
    }
    assert_eq!(simulation.log.len(), writes, "{:#?}", simulation.log);
}

#[test]
fn a_stale_request_on_a_joining_node_is_cleared_once() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        // As if the operator had not reconciled since the Machine was created.
        simulation
            .sm
            .as_mut()
            .unwrap()
            .status
            .as_mut()
            .unwrap()
            .node_ref = None;
        request(&mut simulation);
        simulation.settle(&mut memory);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
        assert_eq!(simulation.count("ClearRequest"), 1);
        request(&mut simulation);
        simulation.settle(&mut memory);
        assert_eq!(
            simulation.status().phase,
            Some(Phase::Disabled),
            "the agent requests it again"
        );
    }
}

#[test]
fn a_request_on_the_machine_itself_counts_as_well_and_another_value_does_not() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let node = simulation.get_mut("Node").unwrap();
    node["metadata"]["annotations"][name::RECLAIM_REQUESTED_ANNOTATION] = json!("yes");
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    let machine = simulation.get_mut("Machine").unwrap();
    machine["metadata"]["annotations"][name::RECLAIM_ANNOTATION] = json!("by hand");
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Disabled));
    assert!(simulation.kinds().is_empty());
}

#[test]
fn a_terminating_pod_delays_a_reclaim_by_at_most_ten_seconds() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let mut stuck = pod("stuck");
    stuck.is_deleting = true;
    simulation.pods = vec![stuck];
    simulation.is_moving = false;
    request(&mut simulation);
    simulation.run_until(&mut memory, "2026-03-06T12:00:30Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T12:00:10Z")
    );
}

#[test]
fn an_unreachable_workload_cluster_and_a_rejected_spec_do_not_block_a_reclaim() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let machine = simulation.get_mut("Machine").unwrap();
    machine["metadata"]["annotations"][name::RECLAIM_ANNOTATION] = json!("by hand");
    simulation.access = Access::Unreachable {
        message: "no route to host".to_owned(),
    };
    simulation.failing = Some((Step::DisableSchedule, Cause::Rejected));
    simulation.run_until(&mut memory, "2026-03-06T12:00:29Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T12:00:10Z")
    );
    assert!(
        simulation.count("RecordDisabled") == 0,
        "it has not been disabled"
    );
}

#[test]
fn a_node_that_is_deleted_during_a_reclaim_changes_nothing() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    request(&mut simulation);
    simulation.is_moving = false;
    let (_, _) = simulation.reconcile(&mut memory);
    simulation
        .objects
        .remove(&("Node".to_owned(), "worker".to_owned()));
    simulation.is_moving = true;
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Disabled));
    assert!(simulation.kinds().is_empty());
}

#[test]
fn the_request_is_cleared_on_a_node_that_outlives_its_machine() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    request(&mut simulation);
    simulation.is_moving = false;
    simulation.settle(&mut memory);
    let node = simulation.get("Node").unwrap().clone();
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        simulation
            .objects
            .remove(&(kind.to_owned(), "worker".to_owned()));
    }
    simulation.access = Access::Unreachable {
        message: "no route to host".to_owned(),
    };
    simulation.settle(&mut memory);
    let status = simulation.status();
    assert_eq!(status.phase, Some(Phase::Disabled));
    assert!(status.node_ref.is_some(), "until it is done");
    simulation.access = Access::Connected;
    simulation.settle(&mut memory);
    assert_eq!(simulation.count("ClearRequest"), 1);
    assert_eq!(simulation.status().node_ref, None);
    let annotations = &simulation.get("Node").unwrap()["metadata"]["annotations"];
    assert_eq!(annotations[name::RECLAIM_REQUESTED_ANNOTATION], Value::Null);
    assert_eq!(
        simulation.get("Node").unwrap()["metadata"]["uid"],
        node["metadata"]["uid"]
    );
}

#[test]
fn a_pause_stops_a_reclaim_and_the_kill_switch_precedes_it() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    request(&mut simulation);
    let from = simulation.log.len();
    simulation.settle(&mut memory);
    assert!(steps(&simulation, from).is_empty());
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Terminated));
    assert_eq!(simulation.count("RecordReclaim"), 0);
}

#[test]
fn the_agent_is_configured_reported_and_removed() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let commands = |commands: &[&str]| {
        let commands = commands.iter().map(|command| (*command).to_owned());
        Some(commands.collect::<Vec<_>>())
    };
    simulation.edit(|sm| sm.spec.kill_if_commands = commands(&["steam"]));
    let from = simulation.log.len();
    simulation.settle(&mut memory);
    assert_eq!(steps(&simulation, from), ["LabelNode", "CreateAgentConfig"]);
    assert_eq!(
        condition_text(&simulation, ConditionType::AgentReady),
        "Unknown NotInstalled: waiting for the agent on Node worker to report"
    );
    simulation.run_until(&mut memory, "2026-03-06T12:02:00Z");
    assert_eq!(
        condition_text(&simulation, ConditionType::AgentReady),
        "False NotInstalled: no agent on Node worker reports the configuration; install the \
         agent's DaemonSet in the workload cluster"
    );
    let id = ("ConfigMap".to_owned(), name::reclaim_config_map("worker"));
    let config = simulation.objects[&id].clone();
    let text = config["data"][name::RECLAIM_CONFIG_KEY].as_str().unwrap();
    let hash = fivespot_api::reclaim::config_hash(text);
    let node = &simulation.get("Node").unwrap()["metadata"];
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
        let node = simulation.get_mut("Node").unwrap();
        node["metadata"]["annotations"][name::RECLAIM_AGENT_KEY] = json!(report);
        simulation.settle(&mut memory);
        assert_eq!(
            condition_text(&simulation, ConditionType::AgentReady),
            expected
        );
    }
    // After a restart nothing is reported again.
    let from = simulation.log.len();
    simulation.run_until(&mut Memory::default(), "2026-03-06T12:10:00Z");
    assert_eq!(simulation.log.len(), from);

    simulation.edit(|sm| sm.spec.kill_if_commands = commands(&["steam", "vlc"]));
    simulation.settle(&mut memory);
    assert_eq!(steps(&simulation, from), ["UpdateAgentConfig"]);
    let from = simulation.log.len();
    simulation.edit(|sm| sm.spec.kill_if_commands = None);
    simulation.settle(&mut memory);
    assert_eq!(steps(&simulation, from), ["DeleteAgentConfig", "LabelNode"]);
    assert_eq!(condition_text(&simulation, ConditionType::AgentReady), "");
    let labels = &simulation.get("Node").unwrap()["metadata"]["labels"];
    assert_eq!(labels[name::RECLAIM_AGENT_KEY], Value::Null);
}

#[test]
fn a_foreign_config_map_and_invalid_commands_are_left_alone() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name::reclaim_config_map("worker"), "namespace": "5spot-system" },
        "data": { "reclaim.toml": "theirs" },
    }));
    simulation.edit(|sm| sm.spec.kill_if_commands = Some(vec!["steam".to_owned()]));
    let from = simulation.log.len();
    simulation.settle(&mut memory);
    assert_eq!(steps(&simulation, from), ["LabelNode"]);
    assert!(
        condition_text(&simulation, ConditionType::AgentReady)
            .contains("not created by 5-Spot")
    );
    // A blank command would match every command line of the host.
    for commands in [
        vec!["x".repeat(257)],
        vec!["steam".to_owned(), " ".to_owned()],
    ] {
        let from = simulation.log.len();
        simulation.edit(|sm| sm.spec.kill_if_commands = Some(commands.clone()));
        simulation.settle(&mut memory);
        assert_eq!(steps(&simulation, from), [""; 0]);
        assert!(
            condition_text(&simulation, ConditionType::AgentReady)
                .starts_with("False InvalidSpec")
        );
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_reported_and_not_taken_as_applied() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.hidden_configs = Some(Unknown::Forbidden {
        message: "configmaps is forbidden".to_owned(),
    });
    simulation.edit(|sm| sm.spec.kill_if_commands = Some(vec!["steam".to_owned()]));
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation, ConditionType::AgentReady),
        "Unknown NotInstalled: the ConfigMap reclaim-agent-worker in 5spot-system cannot be \
         read, so the agent is not configured: configmaps is forbidden"
    );
    simulation.hidden_configs = None;
    simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation, ConditionType::AgentReady),
        "Unknown NotInstalled: waiting for the agent on Node worker to report"
    );
}

#[test]
fn a_failure_to_disable_the_schedule_blocks_nothing_and_is_retried() {
    for cause in [Cause::Unavailable, Cause::Forbidden, Cause::Rejected] {
        let mut memory = Memory::default();
        let mut simulation = in_service(Contract::V1Beta2, &mut memory);
        simulation.pods = vec![pod("a")];
        simulation.failing = Some((Step::DisableSchedule, cause));
        request(&mut simulation);
        simulation.settle(&mut memory);
        assert_eq!(simulation.first("DeletePod"), at(NOON), "{cause:?}");
        assert_eq!(simulation.first("DeleteMachine"), at(NOON), "{cause:?}");
        assert!(
            simulation.kinds().is_empty(),
            "{cause:?}: {:?}",
            simulation.kinds()
        );
        // The host is not used again before the schedule is disabled.
        simulation.run_until(&mut memory, "2026-03-06T12:05:00Z");
        assert!(
            simulation.kinds().is_empty(),
            "{cause:?}: {:#?}",
            simulation.log
        );
        let message = simulation.status().message.unwrap();
        assert!(
            message.contains("cannot disable the schedule:"),
            "{message}"
        );
        let tries = simulation.count("DisableSchedule");
        assert!(tries > 3, "{cause:?}: {tries}");
        simulation.failing = None;
        simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
        assert!(!simulation.sm().spec.schedule.enabled, "{cause:?}");
        assert_eq!(
            simulation.status().phase,
            Some(Phase::Disabled),
            "{cause:?}"
        );
    }
}

#[test]
fn a_schedule_that_is_disabled_late_is_recorded_during_the_shutdown() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.failing = Some((Step::DisableSchedule, Cause::Unavailable));
    simulation.is_moving = false;
    request(&mut simulation);
    simulation.settle(&mut memory);
    simulation.failing = None;
    simulation.run_until(&mut memory, "2026-03-06T12:01:00Z");
    assert_eq!(
        simulation.count("RecordDisabled"),
        1,
        "{:#?}",
        simulation.log
    );
    simulation.edit(|sm| sm.spec.schedule.enabled = true);
    simulation.is_moving = true;
    simulation.settle(&mut memory);
    assert_eq!(
        simulation.status().phase,
        Some(Phase::Active),
        "a user enabled it on purpose"
    );
}

/// A machine in service whose operator is configured to reclaim with an override of four hours.
fn with_override(memory: &mut Memory) -> Simulation {
    let mut simulation = in_service(Contract::V1Beta2, memory);
    simulation.reclaim_override = Some(SignedDuration::from_hours(4));
    simulation
}

#[test]
fn with_an_override_a_reclaim_keeps_the_spec_and_ends_with_the_override() {
    let mut memory = Memory::default();
    let mut simulation = with_override(&mut memory);
    let uid = simulation.status().machine_ref.unwrap().uid.unwrap();
    let from = simulation.log.len();
    request(&mut simulation);
    simulation.settle(&mut memory);
    assert_eq!(
        steps(&simulation, from),
        [
            "RecordReclaim",
            "CreateOverride",
            "RecordDisabled",
            "ExcludeDrain",
            "DeleteMachine",
        ]
    );
    let name = name::reclaim_override("worker", &uid);
    let stored = &simulation.objects[&("ScheduleOverride".to_owned(), name.clone())];
    assert_eq!(
        stored["spec"],
        json!({
            "targetRef": { "name": "worker" },
            "mode": "Stop",
            "endTime": "2026-03-06T16:00:00Z",
            "reason": "the host is reclaimed: 2026-03-06T12:00:00Z process-match: game",
        })
    );
    assert!(simulation.sm().spec.schedule.enabled);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
    assert_eq!(
        condition_text(&simulation, ConditionType::Scheduled),
        format!(
            "False OverrideStop: override {name} stops the machine until 2026-03-06T16:00:00Z"
        )
    );
    simulation.run_until(&mut memory, "2026-03-06T15:59:59Z");
    assert!(simulation.get("Machine").is_none());
    simulation.run_until(&mut memory, "2026-03-06T16:05:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

#[test]
fn an_override_that_a_reclaim_has_created_already_is_not_created_twice() {
    for writes in 0..12 {
        let mut memory = Memory::default();
        let mut simulation = with_override(&mut memory);
        request(&mut simulation);
        simulation.writes_left = writes;
        simulation.run_until(&mut memory, "2026-03-06T12:00:30Z");
        simulation.writes_left = usize::MAX;
        let mut memory = Memory::default();
        simulation.run_until(&mut memory, "2026-03-06T12:05:00Z");
        assert_eq!(simulation.status().phase, Some(Phase::Inactive), "{writes}");
        let ends: Vec<_> = simulation
            .schedule
            .overrides
            .iter()
            .map(|of| of.end)
            .collect();
        assert_eq!(ends, [at("2026-03-06T16:00:00Z")], "{writes}");
    }
}

#[test]
fn a_refused_override_blocks_no_reclaim_and_precedes_another_machine() {
    let mut memory = Memory::default();
    let mut simulation = with_override(&mut memory);
    simulation.failing = Some((Step::CreateOverride, Cause::Forbidden));
    request(&mut simulation);
    simulation.run_until(&mut memory, "2026-03-06T12:00:29Z");
    assert_eq!(simulation.first("DeleteMachine"), at(NOON));
    assert_eq!(simulation.count("RecordDisabled"), 0);
    simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert!(simulation.get("Machine").is_none(), "no machine is created");
    assert!(simulation.status().message.unwrap().contains("override"));
    simulation.failing = None;
    simulation.run_until(&mut memory, "2026-03-06T12:20:00Z");
    assert_eq!(simulation.schedule.overrides.len(), 1);
    assert_eq!(simulation.status().phase, Some(Phase::Inactive));
}

#[test]
fn without_the_override_of_a_reclaim_the_machine_is_created_again() {
    let mut memory = Memory::default();
    let mut simulation = with_override(&mut memory);
    request(&mut simulation);
    simulation.settle(&mut memory);
    simulation.schedule.overrides.clear();
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}
