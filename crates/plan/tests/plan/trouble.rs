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

use crate::world::{
    BEFORE, CONTRACTS, MONDAY, NAME, NOON, OPENS, World, at, in_service, pod,
};

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
fn an_object_that_has_our_name_is_reported_and_never_touched() {
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
fn nothing_is_created_for_a_cluster_that_is_not_ready() {
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

/// Phase, and `Ready` with its reason and message.
fn ready(world: &World) -> String {
    let status = world.status();
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
        |world: &mut World| {
            world.objects.clear();
        },
        |world: &mut World| {
            world.objects.clear();
            world.edit(|sm| sm.spec.schedule.enabled = false);
        },
        |world: &mut World| {
            world.edit(|sm| {
                sm.spec.schedule.timezone = "Mars/Olympus".to_owned();
                sm.spec.kill_switch = true;
            });
        },
    ] {
        let mut world = World::new(Contract::V1Beta2, BEFORE);
        change(&mut world);
        world.settle(&mut Memory::default());
        reported.push(ready(&world));
    }
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Cluster").unwrap()["status"] = json!({});
    world.settle(&mut memory);
    reported.push(ready(&world));
    insta::assert_snapshot!(reported.join("\n"), @r"
    Inactive False ClusterNotFound no machine is wanted until 2026-03-06T09:00:00Z; there is no Cluster prod in this namespace; create it, or correct spec.clusterName
    Disabled False ClusterNotFound the schedule is disabled; there is no Cluster prod in this namespace; create it, or correct spec.clusterName
    Terminated False UnknownTimeZone no machine runs while the kill switch is set; set spec.killSwitch to false to return to service; spec.schedule: time zone: 'Mars/Olympus' is not in the tz database; use an IANA name such as 'Europe/Zurich'
    Active False ClusterNotReady Node worker is in service until 2026-03-06T18:00:00Z; Cluster prod is not ready for machines: its infrastructure is not ready
    ");
    world.put(crate::world::cluster(Contract::V1Beta2));
    world.settle(&mut memory);
    assert_eq!(world.status().conditions[0].reason, "MachineRunning");
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
        let mut world = World::new(Contract::V1Beta2, BEFORE);
        world.edit(|sm| {
            sm.spec.schedule.days_of_week.clear();
            sm.spec.schedule.hours_of_day.clear();
            change(sm);
        });
        let mut memory = Memory::default();
        world.settle(&mut memory);
        reported.push(ready(&world));
        let warnings = |world: &World| -> Vec<String> {
            let all = world.events.iter();
            let all = all.filter(|event| event.kind == EventType::Warning);
            all.map(|event| format!("{} {}", event.reason, event.note))
                .collect()
        };
        let message = world.status().message.clone().unwrap();
        let expected = [format!("NeverNeeded {message}")];
        assert_eq!(warnings(&world), expected, "a Warning says the same");
        world.run_until(&mut memory, MONDAY);
        world.settle(&mut Memory::default());
        assert_eq!(warnings(&world), expected, "once");
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
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Node").unwrap()["status"]["conditions"][0]["status"] = json!("False");
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Active));
    assert_eq!(world.status().conditions[0].reason, "NodeNotReady");
}

#[test]
fn a_health_check_replaces_a_machine_ten_minutes_after_its_creation() {
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
fn a_replacement_is_not_cancelled_by_the_open_window() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.pods = vec![pod("a")];
    world.budget_until = Some(at("2027-01-01T00:00:00Z"));
    let uid = world.get("Machine").unwrap()["metadata"]["uid"].clone();
    world.get_mut("Machine").unwrap()["status"]["conditions"] =
        json!([{ "type": "OwnerRemediated", "status": "False" }]);
    world.settle(&mut memory);
    world.get_mut("Machine").unwrap()["status"]["conditions"] = json!([]);
    world.run_until(&mut memory, "2026-03-06T12:04:59Z");
    assert_eq!(
        world.status().shutdown.unwrap().reason,
        ShutdownReason::Remediation
    );
    world.run_until(&mut memory, "2026-03-06T12:10:00Z");
    assert_eq!(world.first("DeleteMachine"), at("2026-03-06T12:05:00Z"));
    assert_ne!(world.get("Machine").unwrap()["metadata"]["uid"], uid);
}

#[test]
fn an_object_of_an_earlier_operator_is_ours_by_its_label_and_our_machines_reference() {
    for is_labelled in [true, false] {
        let mut memory = Memory::default();
        let mut world = in_service(Contract::V1Beta2, &mut memory);
        let labels = if is_labelled {
            json!({ name::SCHEDULED_MACHINE_LABEL: NAME })
        } else {
            json!({})
        };
        let meta = &mut world.get_mut("RemoteMachine").unwrap()["metadata"];
        meta["labels"] = labels;
        meta["ownerReferences"] = json!([]);
        world.settle(&mut memory);
        let recorded = world.status().infrastructure_ref.and_then(|of| of.uid);
        let uid = world.get("RemoteMachine").unwrap()["metadata"]["uid"].clone();
        assert_eq!(recorded.as_deref(), uid.as_str(), "kept on record");
        let taken = world
            .status()
            .conditions
            .iter()
            .any(|of| of.reason == "NameTaken");
        assert_eq!(taken, !is_labelled);
    }
}

#[test]
fn a_failed_step_is_reported_and_retried_when_due() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, OPENS), Memory::default());
    world.failing = Some((Step::CreateInfrastructure, Cause::Rejected));
    world.settle(&mut memory);
    let status = world.status();
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
        world.count("CreateMachine"),
        0,
        "the steps after it have to wait"
    );
    let tries = world.count("CreateInfrastructure");
    world.settle(&mut memory);
    assert_eq!(
        world.count("CreateInfrastructure"),
        tries,
        "not before it is due"
    );
    world.failing = None;
    world.run_until(&mut memory, "2026-03-06T09:10:00Z");
    assert_eq!(world.status().phase, Some(Phase::Active));
}

#[test]
fn an_edited_spec_is_tried_at_once() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, OPENS), Memory::default());
    world.failing = Some((Step::CreateInfrastructure, Cause::Rejected));
    world.settle(&mut memory);
    world.failing = None;
    world.edit(|sm| {
        sm.spec
            .infrastructure_spec
            .spec
            .insert("port".to_owned(), json!(22));
    });
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Active));
    assert_eq!(world.get("RemoteMachine").unwrap()["spec"]["port"], 22);
}

#[test]
fn the_kill_switch_does_not_wait_for_a_step_that_failed() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.failing = Some((Step::UpdateMachine, Cause::Forbidden));
    world.edit(|sm| sm.spec.node_drain_timeout = "9m".into());
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Error));
    world.edit(|sm| sm.spec.kill_switch = true);
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Terminated));
}

#[test]
fn in_a_terminating_namespace_unfinished_objects_are_deleted_directly() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, OPENS), Memory::default());
    world.failing = Some((Step::CreateMachine, Cause::NamespaceTerminating));
    world.settle(&mut memory);
    assert!(world.get("RemoteMachine").is_some());
    world.delete_sm();
    world.run_until(&mut memory, "2026-03-06T09:10:00Z");
    assert!(world.sm.is_none());
    assert!(world.kinds().is_empty(), "{:?}", world.kinds());
}

#[test]
fn a_drain_that_the_workload_cluster_forbids_is_left_to_cluster_api() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.failing = Some((Step::CordonNode, Cause::Forbidden));
    world.pods = vec![pod("a")];
    world.is_moving = false;
    world.run_until(&mut memory, "2026-03-06T18:01:00Z");
    assert_eq!(world.first("DeleteMachine"), at("2026-03-06T18:00:00Z"));
    assert_eq!(world.count("ExcludeDrain"), 0);
}

#[test]
fn a_removal_that_has_just_begun_is_not_reported_as_stalled() {
    let (mut world, mut memory) =
        (World::new(Contract::V1Beta2, OPENS), Memory::default());
    world.failing = Some((Step::CreateInfrastructure, Cause::Rejected));
    world.settle(&mut memory);
    world.edit(|sm| sm.spec.schedule.enabled = false);
    world.run_until(&mut memory, NOON);
    world.delete_sm();
    world.run_until(&mut memory, "2026-03-06T12:01:00Z");
    assert!(world.sm.is_none());
    assert!(
        world
            .reported
            .iter()
            .all(|reported| !reported.contains("RemovalStalled")),
        "{:#?}",
        world.reported
    );
}

#[test]
fn a_kind_that_is_temporarily_not_served_replaces_no_machine() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let world = in_service(contract, &mut memory);
        let mut observed = world.observed();
        let message = "RemoteMachine of infrastructure.cluster.x-k8s.io".to_owned();
        for lookup in &mut observed.infrastructure {
            lookup.found = Fact::Unknown(Unknown::NotServed {
                message: message.clone(),
            });
        }
        let next = plan(world.sm(), &observed, &memory, world.now);
        assert_eq!(next.steps(), [], "{contract}");
        assert!(next.status.is_none_or(|status| status.shutdown.is_none()));
    }
}

#[test]
fn a_machine_that_another_process_created_is_read_live_before_it_is_recorded() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    // As before the creation: after a takeover the caches may contain a Machine that is gone.
    world.edit(|object| object.status.as_mut().unwrap().machine_ref = None);
    let plan_of = |memory: &Memory, freshness: Freshness| {
        let observed = Observed {
            freshness,
            ..world.observed()
        };
        plan(world.sm(), &observed, memory, world.now)
    };
    assert!(plan_of(&Memory::default(), Freshness::Cached).confirm);
    let live = plan_of(&Memory::default(), Freshness::Live);
    assert!(live.status.unwrap().machine_ref.is_some());
    assert!(!plan_of(&memory, Freshness::Cached).confirm);
}

/// A change of the ScheduledMachine after the plan was made.
type Change = fn(&mut ScheduledMachine);

/// A machine that is due and recorded, and the precondition of the plan made from caches.
fn due() -> (World, fivespot_plan::Precondition) {
    let mut world = World::new(Contract::V1Beta2, BEFORE);
    world.run_until(&mut Memory::default(), BEFORE);
    world.now = at(OPENS);
    let observed = Observed {
        freshness: Freshness::Cached,
        ..world.observed()
    };
    let next = plan(world.sm(), &observed, &Memory::default(), world.now);
    assert_eq!(
        next.steps(),
        [
            Step::CreateBootstrap,
            Step::CreateInfrastructure,
            Step::CreateMachine
        ]
    );
    assert_eq!(next.status, None);
    (world, next.precondition.unwrap())
}

#[test]
fn recorded_objects_are_created_from_caches_if_the_precondition_holds() {
    let (world, precondition) = due();
    assert!(precondition.holds(world.sm()));
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
        let mut stored = world.sm().clone();
        change(&mut stored);
        assert!(!precondition.holds(&stored), "{name}");
    }
    let mut stored = world.sm().clone();
    stored.metadata.resource_version = Some("99".into());
    assert!(precondition.holds(&stored), "it ignores resourceVersion");
}

#[test]
fn nothing_is_created_from_a_spec_that_is_too_large_to_be_read() {
    let mut world = World::new(Contract::V1Beta2, BEFORE);
    let reported = "spec.bootstrapSpec.spec has 300000 bytes; at most 262144 are read";
    world.specs = Specs::TooLarge {
        message: reported.to_owned(),
    };
    // Other violations of the spec are reported after this one.
    world.edit(|object| object.spec.bootstrap_spec.namespace = Some("other".to_owned()));
    let mut memory = Memory::default();
    world.run_until(&mut memory, NOON);
    assert!(world.get("Machine").is_none());
    assert!(
        !world.log.iter().any(|(_, what)| what.contains("Create")),
        "{:?}",
        world.log
    );
    for kind in [ConditionType::ReferencesValid, ConditionType::Ready] {
        let status = world.status();
        let found = condition::find(&status.conditions, kind).unwrap();
        let said = (&*found.status, &*found.reason, &*found.message);
        assert_eq!(said, ("False", "SpecTooLarge", reported));
    }
}

#[test]
fn a_machine_in_service_stays_while_its_spec_is_too_large() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.specs = Specs::TooLarge {
        message: "too large".to_owned(),
    };
    let plan = plan(world.sm(), &world.observed(), &memory, world.now);
    assert_eq!(plan.actions, []);
    let status = plan.status.unwrap();
    assert!(status.machine_ref.is_some() && status.spec_hash.is_some());
    let found = condition::find(&status.conditions, ConditionType::ReferencesValid);
    assert_eq!(found.unwrap().reason, "SpecTooLarge");
}

#[test]
fn specs_that_were_left_out_are_missing_in_the_creates() {
    let mut world = World::new(Contract::V1Beta2, BEFORE);
    let creates = |world: &World| -> Vec<Value> {
        let plan = plan(world.sm(), &world.observed(), &Memory::default(), world.now);
        let calls = plan.actions.into_iter().map(|action| action.request.call);
        let creates = calls.filter_map(|call| match call {
            Call::Create(object) => Some(object),
            _ => None,
        });
        creates.collect()
    };
    world.failing = Some((Step::CreateBootstrap, Cause::Unavailable));
    world.run_until(&mut Memory::default(), OPENS);
    let hash = SpecHash::of(&world.sm().spec).to_string();
    let mut wanted = creates(&world);
    world.specs = Specs::LeftOut { hash };
    let left_out = creates(&world);
    assert_eq!(left_out.len(), 3);
    for object in &mut wanted {
        if object["kind"] != "Machine" {
            object.as_object_mut().unwrap().remove("spec");
        }
    }
    assert_eq!(left_out, wanted);
}
