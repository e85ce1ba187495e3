//! Failures, and the recovery from them.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::spec_hash::SpecHash;
use fivespot_api::{
    EndPolicy, ExceptionAction, Phase, ScheduleException, ScheduledMachine,
    ShutdownReason, name,
};
use fivespot_capi::Contract;
use fivespot_plan::{
    Call, Cause, EventType, Fact, Freshness, Memory, Observed, Specs, Step, Unknown, plan,
};
use serde_json::{Value, json};

use crate::simulation::{
    BEFORE, CONTRACTS, MONDAY, NAME, NOON, OPENS, Simulation, at, in_service, pod,
};

#[test]
fn an_invalid_schedule_touches_nothing() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| sm.spec.schedule.timezone = "Mars/Olympus".to_owned());
    let before = simulation.log.len();
    simulation.run_until(&mut memory, MONDAY);
    assert_eq!(simulation.status().phase, Some(Phase::Error));
    assert!(
        simulation.log[before..]
            .iter()
            .all(|(_, step)| step == "Status")
    );
    assert!(simulation.get("Machine").is_some());
}

#[test]
fn an_object_that_has_our_name_is_reported_and_never_touched() {
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let (mut simulation, mut memory) = (
            Simulation::new(Contract::V1Beta2, BEFORE),
            Memory::default(),
        );
        let group = match kind {
            "Machine" => "cluster.x-k8s.io/v1beta2",
            "K0sWorkerConfig" => "bootstrap.cluster.x-k8s.io/v1beta1",
            _ => "infrastructure.cluster.x-k8s.io/v1beta1",
        };
        simulation.put(json!({
            "apiVersion": group, "kind": kind,
            "metadata": { "name": NAME, "namespace": "default", "finalizers": ["keep"] },
        }));
        let before = simulation.get(kind).cloned();
        simulation.run_until(&mut memory, NOON);
        assert_eq!(simulation.status().phase, Some(Phase::Error), "{kind}");
        let ready = simulation.status().conditions[0].clone();
        assert_eq!(ready.reason, "NameTaken", "{}", ready.message);
        simulation.delete_sm();
        simulation.settle(&mut memory);
        assert!(simulation.sm.is_none());
        assert_eq!(simulation.get(kind), before.as_ref());
        assert_eq!(simulation.kinds(), [kind]);
    }
}

#[test]
fn nothing_is_created_for_a_cluster_that_is_not_ready() {
    let (mut simulation, mut memory) =
        (Simulation::new(Contract::V1Beta1, OPENS), Memory::default());
    simulation.get_mut("Cluster").unwrap()["status"]["conditions"] = json!([]);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Pending));
    assert_eq!(simulation.status().conditions[0].reason, "ClusterNotReady");
    assert!(simulation.kinds().is_empty());
    simulation.get_mut("Cluster").unwrap()["status"]["conditions"] =
        json!([{ "type": "ControlPlaneInitialized", "status": "True" }]);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

/// Phase, and `Ready` with its reason and message.
fn ready(simulation: &Simulation) -> String {
    let status = simulation.status();
    let ready = &status.conditions[0];
    let phase = status.phase.unwrap();
    format!(
        "{phase} {} {} {}",
        ready.status, ready.reason, ready.message
    )
}

#[test]
fn nothing_is_ready_while_a_reference_or_the_schedule_is_invalid() {
    let mut reported = Vec::new();
    for change in [
        |simulation: &mut Simulation| {
            simulation.objects.clear();
        },
        |simulation: &mut Simulation| {
            simulation.objects.clear();
            simulation.edit(|sm| sm.spec.schedule.enabled = false);
        },
        |simulation: &mut Simulation| {
            simulation.edit(|sm| {
                sm.spec.schedule.timezone = "Mars/Olympus".to_owned();
                sm.spec.kill_switch = true;
            });
        },
    ] {
        let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
        change(&mut simulation);
        simulation.settle(&mut Memory::default());
        reported.push(ready(&simulation));
    }
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Cluster").unwrap()["status"] = json!({});
    simulation.settle(&mut memory);
    reported.push(ready(&simulation));
    insta::assert_snapshot!(reported.join("\n"), @r"
    Inactive False ClusterNotFound no machine is wanted until 2026-03-06T09:00:00Z; there is no Cluster prod in this namespace; create it, or correct spec.clusterName
    Disabled False ClusterNotFound the schedule is disabled; there is no Cluster prod in this namespace; create it, or correct spec.clusterName
    Terminated False UnknownTimeZone no machine runs while the kill switch is set; set spec.killSwitch to false to return to service; spec.schedule: time zone: 'Mars/Olympus' is not in the tz database; use an IANA name such as 'Europe/Zurich'
    Active False ClusterNotReady Node worker is in service until 2026-03-06T18:00:00Z; Cluster prod is not ready for machines: its infrastructure is not ready
    ");
    simulation.put(crate::simulation::cluster(Contract::V1Beta2));
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().conditions[0].reason, "MachineRunning");
}

#[test]
fn a_schedule_that_never_needs_a_machine_reports_why_and_what_to_do() {
    let mut reported = Vec::new();
    for change in [
        |sm: &mut ScheduledMachine| {
            sm.spec.schedule.cron = Some("0 0 30 2 *".to_owned());
        },
        |sm: &mut ScheduledMachine| {
            sm.spec.schedule.cron = Some("0 9 * * 1-5".to_owned());
            sm.spec.shutdown.end_policy = EndPolicy::CompleteByWindowEnd;
            sm.spec.graceful_shutdown_timeout = "2h".to_owned();
        },
        |sm: &mut ScheduledMachine| {
            sm.spec.schedule.cron = Some("0 9 1 1 *".to_owned());
            sm.spec.schedule.exceptions = Some(vec![ScheduleException {
                name: "closed".to_owned(),
                action: ExceptionAction::Stop,
                calendar_ref: None,
                start_date: Some("2026-01-01".to_owned()),
                end_date: Some("2099-12-31".to_owned()),
            }]);
        },
    ] {
        let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
        simulation.edit(|sm| {
            sm.spec.schedule.days_of_week.clear();
            sm.spec.schedule.hours_of_day.clear();
            change(sm);
        });
        let mut memory = Memory::default();
        simulation.settle(&mut memory);
        reported.push(ready(&simulation));
        let warnings = |simulation: &Simulation| -> Vec<String> {
            let all = simulation.events.iter();
            let all = all.filter(|event| event.kind == EventType::Warning);
            all.map(|event| format!("{} {}", event.reason, event.note))
                .collect()
        };
        let message = simulation.status().message.clone().unwrap();
        let expected = [format!("NeverNeeded {message}")];
        assert_eq!(warnings(&simulation), expected, "a Warning says the same");
        simulation.run_until(&mut memory, MONDAY);
        simulation.settle(&mut Memory::default());
        assert_eq!(warnings(&simulation), expected, "once");
    }
    insta::assert_snapshot!(reported.join("\n"), @r"
    Inactive True Inactive no machine is wanted: the cron expression '0 0 30 2 *' never fires: that day does not exist in the months that it names; correct spec.schedule.cron
    Inactive True Inactive no machine is wanted: no window is longer than spec.gracefulShutdownTimeout (2h), which endPolicy CompleteByWindowEnd leaves for the shutdown; lengthen the windows, or shorten the timeout
    Inactive True Inactive no machine is wanted: no window opens within ten years; correct spec.schedule, or its exceptions
    ");
}

#[test]
fn a_machine_whose_node_loses_readiness_stays_active_and_reports_it() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Node").unwrap()["status"]["conditions"][0]["status"] =
        json!("False");
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(simulation.status().conditions[0].reason, "NodeNotReady");
}

#[test]
fn a_health_check_replaces_a_machine_ten_minutes_after_its_creation() {
    let mut memory = Memory::default();
    let mut simulation = Simulation::new(Contract::V1Beta2, OPENS);
    simulation.settle(&mut memory);
    let uid = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
    let conditions = &mut simulation.get_mut("Machine").unwrap()["status"]["conditions"];
    conditions.as_array_mut().unwrap().push(json!({
        "type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation",
    }));
    simulation.run_until(&mut memory, "2026-03-06T09:09:59Z");
    assert_eq!(simulation.get("Machine").unwrap()["metadata"]["uid"], uid);
    simulation.run_until(&mut memory, "2026-03-06T09:30:00Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T09:10:00Z")
    );
    assert_ne!(simulation.get("Machine").unwrap()["metadata"]["uid"], uid);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

#[test]
fn a_replacement_is_not_cancelled_by_the_open_window() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.pods = vec![pod("a")];
    simulation.budget_until = Some(at("2027-01-01T00:00:00Z"));
    let uid = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
    simulation.get_mut("Machine").unwrap()["status"]["conditions"] =
        json!([{ "type": "OwnerRemediated", "status": "False" }]);
    simulation.settle(&mut memory);
    simulation.get_mut("Machine").unwrap()["status"]["conditions"] = json!([]);
    simulation.run_until(&mut memory, "2026-03-06T12:04:59Z");
    assert_eq!(
        simulation.status().shutdown.unwrap().reason,
        ShutdownReason::Remediation
    );
    simulation.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T12:05:00Z")
    );
    assert_ne!(simulation.get("Machine").unwrap()["metadata"]["uid"], uid);
}

#[test]
fn an_object_of_an_earlier_operator_is_ours_by_its_label_and_our_machines_reference() {
    for is_labelled in [true, false] {
        let mut memory = Memory::default();
        let mut simulation = in_service(Contract::V1Beta2, &mut memory);
        let labels = if is_labelled {
            json!({ name::SCHEDULED_MACHINE_LABEL: NAME })
        } else {
            json!({})
        };
        let meta = &mut simulation.get_mut("RemoteMachine").unwrap()["metadata"];
        meta["labels"] = labels;
        meta["ownerReferences"] = json!([]);
        simulation.settle(&mut memory);
        let recorded = simulation.status().infrastructure_ref.and_then(|of| of.uid);
        let uid = simulation.get("RemoteMachine").unwrap()["metadata"]["uid"].clone();
        assert_eq!(recorded.as_deref(), uid.as_str(), "kept on record");
        let taken = simulation
            .status()
            .conditions
            .iter()
            .any(|of| of.reason == "NameTaken");
        assert_eq!(taken, !is_labelled);
    }
}

#[test]
fn a_failed_step_is_reported_and_retried_when_due() {
    let (mut simulation, mut memory) =
        (Simulation::new(Contract::V1Beta2, OPENS), Memory::default());
    simulation.failing = Some((Step::CreateInfrastructure, Cause::Rejected));
    simulation.settle(&mut memory);
    let status = simulation.status();
    assert_eq!(status.phase, Some(Phase::Error));
    let found = |kind: &str| {
        let condition = status
            .conditions
            .iter()
            .find(|of| of.type_ == kind)
            .unwrap();
        (condition.status.clone(), condition.reason.clone())
    };
    assert_eq!(
        found("Ready"),
        ("False".into(), "InfrastructureCreationFailed".into())
    );
    assert_eq!(
        found("ReferencesValid"),
        ("False".into(), "Rejected".into())
    );
    assert_eq!(
        simulation.count("CreateMachine"),
        0,
        "the steps after it have to wait"
    );
    let tries = simulation.count("CreateInfrastructure");
    simulation.settle(&mut memory);
    assert_eq!(
        simulation.count("CreateInfrastructure"),
        tries,
        "not before it is due"
    );
    simulation.failing = None;
    simulation.run_until(&mut memory, "2026-03-06T09:10:00Z");
    assert_eq!(simulation.status().phase, Some(Phase::Active));
}

#[test]
fn an_edited_spec_is_tried_at_once() {
    let (mut simulation, mut memory) =
        (Simulation::new(Contract::V1Beta2, OPENS), Memory::default());
    simulation.failing = Some((Step::CreateInfrastructure, Cause::Rejected));
    simulation.settle(&mut memory);
    simulation.failing = None;
    simulation.edit(|sm| {
        sm.spec
            .infrastructure_spec
            .spec
            .insert("port".to_owned(), json!(22));
    });
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(simulation.get("RemoteMachine").unwrap()["spec"]["port"], 22);
}

#[test]
fn the_kill_switch_does_not_wait_for_a_step_that_failed() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.failing = Some((Step::UpdateMachine, Cause::Forbidden));
    simulation.edit(|sm| sm.spec.node_drain_timeout = "9m".into());
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Error));
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Terminated));
}

#[test]
fn in_a_terminating_namespace_unfinished_objects_are_deleted_directly() {
    let (mut simulation, mut memory) =
        (Simulation::new(Contract::V1Beta2, OPENS), Memory::default());
    simulation.failing = Some((Step::CreateMachine, Cause::NamespaceTerminating));
    simulation.settle(&mut memory);
    assert!(simulation.get("RemoteMachine").is_some());
    simulation.delete_sm();
    simulation.run_until(&mut memory, "2026-03-06T09:10:00Z");
    assert!(simulation.sm.is_none());
    assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
}

#[test]
fn a_drain_that_the_workload_cluster_forbids_is_left_to_cluster_api() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.failing = Some((Step::CordonNode, Cause::Forbidden));
    simulation.pods = vec![pod("a")];
    simulation.is_moving = false;
    simulation.run_until(&mut memory, "2026-03-06T18:01:00Z");
    assert_eq!(
        simulation.first("DeleteMachine"),
        at("2026-03-06T18:00:00Z")
    );
    assert_eq!(simulation.count("ExcludeDrain"), 0);
}

#[test]
fn a_removal_that_has_just_begun_is_not_reported_as_stalled() {
    let (mut simulation, mut memory) =
        (Simulation::new(Contract::V1Beta2, OPENS), Memory::default());
    simulation.failing = Some((Step::CreateInfrastructure, Cause::Rejected));
    simulation.settle(&mut memory);
    simulation.edit(|sm| sm.spec.schedule.enabled = false);
    simulation.run_until(&mut memory, NOON);
    simulation.delete_sm();
    simulation.run_until(&mut memory, "2026-03-06T12:01:00Z");
    assert!(simulation.sm.is_none());
    assert!(
        simulation
            .reported
            .iter()
            .all(|reported| !reported.contains("RemovalStalled")),
        "{:#?}",
        simulation.reported
    );
}

#[test]
fn a_kind_that_is_temporarily_not_served_replaces_no_machine() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let simulation = in_service(contract, &mut memory);
        let mut observed = simulation.observed();
        let message = "RemoteMachine of infrastructure.cluster.x-k8s.io".to_owned();
        for lookup in &mut observed.infrastructure {
            lookup.found = Fact::Unknown(Unknown::NotServed {
                message: message.clone(),
            });
        }
        let next = plan(simulation.sm(), &observed, &memory, simulation.now);
        assert_eq!(next.steps(), [], "{contract:?}");
        assert!(next.status.is_none_or(|status| status.shutdown.is_none()));
    }
}

#[test]
fn a_machine_that_another_process_created_is_read_live_before_it_is_recorded() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    // As before the creation: after a takeover the caches may contain a Machine that is gone.
    simulation.edit(|object| object.status.as_mut().unwrap().machine_ref = None);
    let plan_of = |memory: &Memory, freshness: Freshness| {
        let observed = Observed {
            freshness,
            ..simulation.observed()
        };
        plan(simulation.sm(), &observed, memory, simulation.now)
    };
    assert!(plan_of(&Memory::default(), Freshness::Cached).confirm);
    let live = plan_of(&Memory::default(), Freshness::Live);
    assert!(live.status.unwrap().machine_ref.is_some());
    assert!(!plan_of(&memory, Freshness::Cached).confirm);
}

/// A change of the ScheduledMachine after the plan was made.
type Change = fn(&mut ScheduledMachine);

/// A machine that is due and recorded, and the precondition of the plan made from caches.
fn due() -> (Simulation, fivespot_plan::Precondition) {
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    simulation.run_until(&mut Memory::default(), BEFORE);
    simulation.now = at(OPENS);
    let observed = Observed {
        freshness: Freshness::Cached,
        ..simulation.observed()
    };
    let next = plan(
        simulation.sm(),
        &observed,
        &Memory::default(),
        simulation.now,
    );
    assert_eq!(
        next.steps(),
        [
            Step::CreateBootstrap,
            Step::CreateInfrastructure,
            Step::CreateMachine
        ]
    );
    assert_eq!(next.status, None);
    (simulation, next.precondition.unwrap())
}

#[test]
fn recorded_objects_are_created_from_caches_if_the_precondition_holds() {
    let (simulation, precondition) = due();
    assert!(precondition.holds(simulation.sm()));
    let changes: [(&str, Change); 7] = [
        ("another object", |sm| sm.metadata.uid = Some("sm-2".into())),
        ("edited", |sm| sm.metadata.generation = Some(99)),
        ("being deleted", |sm| {
            let then = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(NOON));
            sm.metadata.deletion_timestamp = Some(then);
        }),
        ("paused", |sm| {
            let pause = [("cluster.x-k8s.io/paused".to_owned(), String::new())];
            sm.metadata.annotations = Some(pause.into());
        }),
        ("another hash", |sm| {
            sm.status.as_mut().unwrap().spec_hash = Some("another".into());
        }),
        ("another place", |sm| {
            let status = sm.status.as_mut().unwrap();
            status.bootstrap_ref.as_mut().unwrap().kind = "Other".into();
        }),
        ("an earlier Machine", |sm| {
            let status = sm.status.as_mut().unwrap();
            status.machine_ref = status.bootstrap_ref.clone();
        }),
    ];
    for (name, change) in changes {
        let mut stored = simulation.sm().clone();
        change(&mut stored);
        assert!(!precondition.holds(&stored), "{name}");
    }
    let mut stored = simulation.sm().clone();
    stored.metadata.resource_version = Some("99".into());
    assert!(precondition.holds(&stored), "it ignores resourceVersion");
}

#[test]
fn nothing_is_created_from_a_spec_that_is_too_large_to_be_read() {
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    let reported = "spec.bootstrapSpec.spec has 300000 bytes; at most 262144 are read";
    simulation.specs = Specs::TooLarge {
        message: reported.to_owned(),
    };
    // Other violations of the spec are reported after this one.
    simulation
        .edit(|object| object.spec.bootstrap_spec.namespace = Some("other".to_owned()));
    let mut memory = Memory::default();
    simulation.run_until(&mut memory, NOON);
    assert!(simulation.get("Machine").is_none());
    assert!(
        !simulation
            .log
            .iter()
            .any(|(_, what)| what.contains("Create")),
        "{:?}",
        simulation.log
    );
    for kind in [ConditionType::ReferencesValid, ConditionType::Ready] {
        let status = simulation.status();
        let found = condition::find(&status.conditions, kind).unwrap();
        let reported_condition = (&*found.status, &*found.reason, &*found.message);
        assert_eq!(reported_condition, ("False", "SpecTooLarge", reported));
    }
}

#[test]
fn a_machine_in_service_stays_while_its_spec_is_too_large() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.specs = Specs::TooLarge {
        message: "too large".to_owned(),
    };
    let plan = plan(
        simulation.sm(),
        &simulation.observed(),
        &memory,
        simulation.now,
    );
    assert_eq!(plan.actions, []);
    let status = plan.status.unwrap();
    assert!(status.machine_ref.is_some() && status.spec_hash.is_some());
    let found = condition::find(&status.conditions, ConditionType::ReferencesValid);
    assert_eq!(found.unwrap().reason, "SpecTooLarge");
}

#[test]
fn specs_that_were_left_out_are_missing_in_the_creates() {
    let mut simulation = Simulation::new(Contract::V1Beta2, BEFORE);
    let creates = |simulation: &Simulation| -> Vec<Value> {
        let plan = plan(
            simulation.sm(),
            &simulation.observed(),
            &Memory::default(),
            simulation.now,
        );
        let calls = plan.actions.into_iter().map(|action| action.request.call);
        let creates = calls.filter_map(|call| match call {
            Call::Create(object) => Some(object),
            _ => None,
        });
        creates.collect()
    };
    simulation.failing = Some((Step::CreateBootstrap, Cause::Unavailable));
    simulation.run_until(&mut Memory::default(), OPENS);
    let hash = SpecHash::of(&simulation.sm().spec).to_string();
    let mut wanted = creates(&simulation);
    simulation.specs = Specs::LeftOut { hash };
    let left_out = creates(&simulation);
    assert_eq!(left_out.len(), 3);
    for object in &mut wanted {
        if object["kind"] != "Machine" {
            object.as_object_mut().unwrap().remove("spec");
        }
    }
    assert_eq!(left_out, wanted);
}
