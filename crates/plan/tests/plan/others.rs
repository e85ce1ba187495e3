//! What the planner must never do to others: to administrators, to other machines, and to users
//! whose admission was evaded.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{NodeTaint, Phase, TaintEffect, name};
use fivespot_capi::{Contract, key};
use fivespot_plan::{Call, Cause, Memory, Step};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::world::{CONTRACTS, EVENING, NAME, NOON, OPENS, World, at, in_service, pod};

fn said(world: &World, kind: ConditionType) -> String {
    let status = world.status();
    condition::find(&status.conditions, kind).map_or_else(String::new, |found| {
        format!("{} {}: {}", found.status, found.reason, found.message)
    })
}

/// Owned objects without their Machine, which the API server has refused.
fn unfinished(contract: Contract, memory: &mut Memory) -> World {
    let mut world = World::new(contract, OPENS);
    world.edit(|sm| {
        let template = &mut sm.spec.machine_template;
        template.labels.insert("team".to_owned(), "a".to_owned());
        template
            .annotations
            .insert("note".to_owned(), "b".to_owned());
    });
    world.failing = Some((Step::CreateMachine, Cause::Unavailable));
    world.settle(memory);
    assert!(world.get("RemoteMachine").is_some());
    assert!(world.get("Machine").is_none());
    world.failing = None;
    world
}

/// Runs until a Machine is created; returns the requested object.
fn created(world: &mut World, memory: &mut Memory) -> Value {
    world.pause(60);
    for _ in 0..20 {
        let (next, _) = world.reconcile(memory);
        let mut all = next.actions.into_iter();
        if let Some(create) = all.find(|action| action.step == Step::CreateMachine)
            && let Call::Create(object) = create.request.call
        {
            return object;
        }
    }
    panic!("no Machine is created: {:#?}", world.log);
}

#[test]
fn a_machine_created_only_to_be_deleted_ignores_the_template() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = unfinished(contract, &mut memory);
        let serving = created(&mut world, &mut memory);
        assert_eq!(serving["metadata"]["labels"]["team"], "a");
        for change in [
            |world: &mut World| world.delete_sm(),
            |world: &mut World| {
                world.edit(|sm| sm.spec.kill_switch = true);
            },
        ] {
            let mut memory = Memory::default();
            let mut world = unfinished(contract, &mut memory);
            change(&mut world);
            let going = created(&mut world, &mut memory);
            let keys = |field: &str| -> Vec<String> {
                let all = going["metadata"][field].as_object().unwrap();
                all.keys().cloned().collect()
            };
            let mut labels = keys("labels");
            labels.sort();
            assert_eq!(
                labels,
                [
                    name::SCHEDULED_MACHINE_LABEL,
                    name::SCHEDULED_MACHINE_UID_LABEL,
                    key::CLUSTER_NAME,
                ]
            );
            assert_eq!(keys("annotations"), [name::SPEC_HASH_ANNOTATION]);
            world.run_until(&mut memory, NOON);
            assert!(world.kinds().is_empty(), "{:?}", world.kinds());
        }
    }
}

#[test]
fn unfinished_objects_are_completed_for_the_cluster_on_their_own_label() {
    for contract in CONTRACTS {
        for change in [|_: &mut World| {}, |world: &mut World| world.delete_sm()] {
            let mut memory = Memory::default();
            let mut world = unfinished(contract, &mut memory);
            // An edit that evaded admission; that Cluster does not exist.
            world.edit(|sm| sm.spec.cluster_name = "other".to_owned());
            change(&mut world);
            let made = created(&mut world, &mut memory);
            assert_eq!(made["spec"]["clusterName"], "prod");
            assert_eq!(made["metadata"]["labels"][key::CLUSTER_NAME], "prod");
        }
    }
}

#[test]
fn a_cluster_that_is_no_longer_in_the_spec_is_read_again() {
    let mut memory = Memory::default();
    let mut world = unfinished(Contract::V1Beta2, &mut memory);
    world.edit(|sm| sm.spec.cluster_name = "other".to_owned());
    world.get_mut("Cluster").unwrap()["status"] = json!({});
    let reported = world.settle(&mut memory);
    assert_eq!(
        said(&world, ConditionType::ReferencesValid),
        "False ClusterNotReady: Cluster prod is not ready for machines: its infrastructure is not ready"
    );
    let soon = world.now + SignedDuration::from_mins(1);
    assert!(
        reported
            .requeue_at
            .is_some_and(|requeue_at| requeue_at <= soon),
        "{reported:?}"
    );
}

#[test]
fn a_spec_that_breaks_a_rule_while_it_is_deleted_gets_no_machine_at_all() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = unfinished(contract, &mut memory);
        let before = world.count("CreateMachine");
        world.delete_sm();
        world.edit(|sm| {
            let labels = &mut sm.spec.machine_template.labels;
            labels.insert("cluster.x-k8s.io/control-plane".to_owned(), String::new());
        });
        world.run_until(&mut memory, NOON);
        assert_eq!(world.count("CreateMachine"), before, "{:#?}", world.log);
        assert!(world.count("DeleteInfrastructure") > 0);
        assert!(world.sm.is_none());
        assert!(world.kinds().is_empty(), "{:?}", world.kinds());
    }
}

/// The owner of a Node, the change that shows it, and the message about it.
type Stranger = (&'static str, fn(&mut World), &'static str);

/// Nodes of other owners.
fn strangers() -> Vec<Stranger> {
    fn annotated(world: &mut World, annotation: &str, value: &str) {
        let node = world.get_mut("Node").unwrap();
        node["metadata"]["annotations"][annotation] = json!(value);
    }
    vec![
        (
            "another Machine's",
            |world| annotated(world, key::MACHINE, "victim"),
            "Node worker has the annotations of Machine ?/victim in Cluster ?",
        ),
        (
            "another namespace's",
            |world| annotated(world, key::CLUSTER_NAMESPACE, "elsewhere"),
            "Node worker has the annotations of Machine elsewhere/? in Cluster ?",
        ),
        (
            "another Cluster's",
            |world| annotated(world, key::CLUSTER_NAME, "other"),
            "Node worker has the annotations of Machine ?/? in Cluster other",
        ),
        (
            "claimed by two",
            |world| world.rival = Some("victim".to_owned()),
            "Machine victim of the same Cluster also claims Node worker",
        ),
        (
            "a control plane's by its label",
            |world| {
                let node = world.get_mut("Node").unwrap();
                let role = "node-role.kubernetes.io/control-plane";
                node["metadata"]["labels"][role] = json!("");
            },
            "Node worker has a control-plane role",
        ),
        (
            "a control plane's by its taint",
            |world| {
                world.get_mut("Node").unwrap()["spec"]["taints"] = json!([
                    { "key": "node-role.kubernetes.io/master", "effect": "NoSchedule" },
                ]);
            },
            "Node worker has a control-plane role",
        ),
    ]
}

#[test]
fn a_node_of_another_machine_is_not_changed_and_the_reason_is_reported() {
    for (what, change, why) in strangers() {
        let mut memory = Memory::default();
        let mut world = in_service(Contract::V1Beta2, &mut memory);
        change(&mut world);
        let before = world.get("Node").cloned();
        world.edit(|sm| {
            sm.spec.kill_if_commands = Some(vec!["game".to_owned()]);
            sm.spec.node_taints = vec![NodeTaint {
                key: "evil".to_owned(),
                value: String::new(),
                effect: TaintEffect::NoExecute,
            }];
        });
        world.pods = vec![pod("a")];
        world.settle(&mut memory);
        assert_eq!(world.get("Node").cloned(), before, "{what}");
        assert_eq!(
            said(&world, ConditionType::NodeAccess),
            format!("False NodeNotOurs: {why}: it is not changed"),
            "{what}"
        );
        assert_eq!(
            said(&world, ConditionType::NodeTainted),
            format!("Unknown NoNodeYet: {why}"),
            "{what}"
        );
        world.is_moving = false;
        world.run_until(&mut memory, EVENING);
        assert_eq!(
            world.first("DeleteMachine"),
            at("2026-03-06T18:00:00Z"),
            "{what}"
        );
        assert_eq!(world.get("Node").cloned(), before, "{what}");
        assert_eq!(
            world.count("EvictPod") + world.count("ExcludeDrain"),
            1,
            "{what}"
        );
    }
}

#[test]
fn a_request_on_a_node_of_another_machine_reclaims_nothing() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.rival = Some("victim".to_owned());
    let node = world.get_mut("Node").unwrap();
    node["metadata"]["annotations"][name::RECLAIM_REQUESTED_ANNOTATION] = json!("true");
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Active));
    assert_eq!(
        world.count("CommitReclaim") + world.count("ClearRequest"),
        0
    );
}

#[test]
fn only_a_node_with_our_uid_in_the_cordon_marker_is_uncordoned() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    let node = world.get_mut("Node").unwrap();
    node["spec"]["unschedulable"] = json!(true);
    node["metadata"]["annotations"][name::CORDONED_ANNOTATION] = json!("forged");
    world.settle(&mut memory);
    assert_eq!(world.count("UncordonNode"), 0);
    let node = world.get_mut("Node").unwrap();
    node["metadata"]["annotations"][name::CORDONED_ANNOTATION] = json!("sm-1");
    world.settle(&mut memory);
    assert_eq!(world.count("UncordonNode"), 1);
}

/// Changes the objects as `clusterctl move` does: the owner references are updated, the labels
/// are not.
fn moved(world: &mut World) {
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let labels = &mut world.get_mut(kind).unwrap()["metadata"]["labels"];
        labels[name::SCHEDULED_MACHINE_UID_LABEL] = json!("sm-0");
    }
}

/// Changes the objects as the garbage collector does after a foreground or orphan deletion.
fn strip_owner(world: &mut World) {
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let meta = &mut world.get_mut(kind).unwrap()["metadata"];
        let owners = meta["ownerReferences"].as_array_mut().unwrap();
        owners.retain(|owner| owner["uid"] != "sm-1");
    }
}

#[test]
fn a_moved_machine_gets_our_uid_before_any_other_write() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut world = in_service(contract, &mut memory);
        moved(&mut world);
        let from = world.log.len();
        world.edit(|sm| {
            sm.spec.node_drain_timeout = "9m".to_owned();
        });
        world.settle(&mut memory);
        assert_eq!(
            world.log[from].1,
            "RelabelMachine",
            "{:#?}",
            &world.log[from..]
        );
        let labels = &world.get("Machine").unwrap()["metadata"]["labels"];
        assert_eq!(labels[name::SCHEDULED_MACHINE_UID_LABEL], "sm-1");
        assert_eq!(world.count("RelabelMachine"), 1);
        assert_eq!(world.status().phase, Some(Phase::Active));
        world.delete_sm();
        strip_owner(&mut world);
        world.run_until(&mut memory, EVENING);
        assert!(world.sm.is_none());
        assert!(world.kinds().is_empty(), "{:?}", world.kinds());
    }
}

#[test]
fn a_moved_machine_is_not_relabelled_while_paused_and_a_refusal_blocks_nothing() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    moved(&mut world);
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    world.settle(&mut memory);
    assert_eq!(world.count("RelabelMachine"), 0);
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    world.failing = Some((Step::RelabelMachine, Cause::Rejected));
    world.settle(&mut memory);
    let message = world.status().message.unwrap();
    assert!(message.contains("cannot change the Machine"), "{message}");
    world.edit(|sm| sm.spec.kill_switch = true);
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Terminated));
    assert!(world.kinds().is_empty(), "{:?}", world.kinds());
}

#[test]
fn objects_of_an_earlier_scheduled_machine_are_left_alone_and_the_command_is_reported() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    moved(&mut world);
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let owners = &mut world.get_mut(kind).unwrap()["metadata"]["ownerReferences"];
        for owner in owners.as_array_mut().unwrap() {
            if owner["uid"] == "sm-1" {
                owner["uid"] = json!("sm-0");
            }
        }
    }
    let from = world.log.len();
    world.settle(&mut memory);
    let written: Vec<_> = world.log[from..].iter().map(|(_, step)| step).collect();
    assert!(written.iter().all(|step| *step == "Status"), "{written:?}");
    assert_eq!(
        said(&world, ConditionType::ReferencesValid),
        "False NameTaken: a Machine worker exists and belongs to an earlier ScheduledMachine \
         worker (uid sm-0); if this one is its restored copy, transfer the Machine to it: kubectl \
         label -n default machine.cluster.x-k8s.io worker 5spot.finos.org/scheduled-machine-uid=\
         sm-1 --overwrite"
    );
    // The reported command has the described effect.
    let labels = &mut world.get_mut("Machine").unwrap()["metadata"]["labels"];
    labels[name::SCHEDULED_MACHINE_UID_LABEL] = json!("sm-1");
    world.settle(&mut memory);
    assert_eq!(world.status().phase, Some(Phase::Active));
    world.delete_sm();
    world.run_until(&mut memory, EVENING);
    assert!(world.sm.is_none());
    assert_eq!(world.kinds(), [NAME; 0]);
}

#[test]
fn a_machine_whose_host_is_gone_is_not_ready() {
    for kind in ["RemoteMachine", "K0sWorkerConfig"] {
        let mut memory = Memory::default();
        let mut world = World::new(Contract::V1Beta2, OPENS);
        world.settle(&mut memory);
        let uid = world.get("Machine").unwrap()["metadata"]["uid"].clone();
        world.objects.remove(&(kind.to_owned(), NAME.to_owned()));
        world.settle(&mut memory);
        assert_eq!(world.status().phase, Some(Phase::Active));
        assert_eq!(
            said(&world, ConditionType::Ready),
            format!(
                "False InfrastructureMissing: {kind} worker of Machine worker is gone while Node \
                 worker is in service"
            )
        );
        world.edit(|sm| sm.spec.schedule.enabled = false);
        world.settle(&mut memory);
        assert_eq!(world.status().phase, Some(Phase::Disabled));
        let ready = said(&world, ConditionType::Ready);
        assert!(ready.starts_with("False InfrastructureMissing"), "{ready}");
        world.edit(|sm| sm.spec.schedule.enabled = true);
        world.run_until(&mut memory, NOON);
        assert_ne!(world.get("Machine").unwrap()["metadata"]["uid"], uid);
        let ready = said(&world, ConditionType::Ready);
        assert!(ready.starts_with("True MachineRunning"), "{ready}");
    }
}

#[test]
fn the_message_of_a_pause_reports_what_waits() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    world.settle(&mut memory);
    let message = |world: &World| world.status().message.unwrap();
    assert_eq!(
        message(&world),
        "the Cluster is paused: nothing is changed until it is resumed"
    );
    world.edit(|sm| sm.spec.kill_switch = true);
    world.settle(&mut memory);
    assert_eq!(
        message(&world),
        "the kill switch waits: the Cluster prod is paused, and nothing is changed until it is \
         resumed"
    );
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    world.edit(|sm| {
        let paused = (key::PAUSED.to_owned(), String::new());
        sm.metadata.annotations = Some([paused].into());
    });
    world.delete_sm();
    world.settle(&mut memory);
    assert_eq!(
        message(&world),
        "the deletion waits: the ScheduledMachine worker is paused, and nothing is changed until it \
         is resumed"
    );
    assert!(world.get("Machine").is_some());
}
