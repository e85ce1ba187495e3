//! What the planner must never do to others: to administrators, to other machines, to those whose
//! admission was evaded.

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

/// A owned objects without its Machine, which the API server has refused.
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

/// Runs until a Machine is created; what was asked for.
fn created(world: &mut World, memory: &mut Memory) -> Value {
    world.pause(60);
    for _ in 0..20 {
        let (next, _) = world.pass(memory);
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
fn a_machine_made_only_to_be_deleted_has_nothing_of_the_template() {
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
fn what_was_begun_is_completed_for_the_cluster_on_its_own_label() {
    for contract in CONTRACTS {
        for change in [|_: &mut World| {}, |world: &mut World| world.delete_sm()] {
            let mut memory = Memory::default();
            let mut world = unfinished(contract, &mut memory);
            // An edit that got past admission; there is no such Cluster.
            world.edit(|sm| sm.spec.cluster_name = "other".to_owned());
            change(&mut world);
            let made = created(&mut world, &mut memory);
            assert_eq!(made["spec"]["clusterName"], "prod");
            assert_eq!(made["metadata"]["labels"][key::CLUSTER_NAME], "prod");
        }
    }
}

#[test]
fn a_cluster_that_the_spec_does_not_name_any_more_is_asked_about_again() {
    let mut memory = Memory::default();
    let mut world = unfinished(Contract::V1Beta2, &mut memory);
    world.edit(|sm| sm.spec.cluster_name = "other".to_owned());
    world.get_mut("Cluster").unwrap()["status"] = json!({});
    let reported = world.settle(&mut memory);
    assert_eq!(
        said(&world, ConditionType::ReferencesValid),
        "False ClusterNotReady: Cluster prod cannot take machines yet: its infrastructure is not ready"
    );
    let soon = world.now + SignedDuration::from_mins(1);
    assert!(
        reported.wake.is_some_and(|wake| wake <= soon),
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

/// Whose a Node is, how it shows that, and what is said of it.
type Stranger = (&'static str, fn(&mut World), &'static str);

/// Nodes that are not ours.
fn strangers() -> Vec<Stranger> {
    fn annotated(world: &mut World, annotation: &str, value: &str) {
        let node = world.get_mut("Node").unwrap();
        node["metadata"]["annotations"][annotation] = json!(value);
    }
    vec![
        (
            "another Machine's",
            |world| annotated(world, key::MACHINE, "victim"),
            "Node worker is annotated as that of Machine ?/victim in Cluster ?",
        ),
        (
            "another namespace's",
            |world| annotated(world, key::CLUSTER_NAMESPACE, "elsewhere"),
            "Node worker is annotated as that of Machine elsewhere/? in Cluster ?",
        ),
        (
            "another Cluster's",
            |world| annotated(world, key::CLUSTER_NAME, "other"),
            "Node worker is annotated as that of Machine ?/? in Cluster other",
        ),
        (
            "claimed by two",
            |world| world.rival = Some("victim".to_owned()),
            "Machine victim of the same Cluster claims Node worker as well",
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
fn a_node_that_others_claim_is_never_touched_and_it_is_said_why() {
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
            format!("False NodeNotOurs: {why}: it is not touched"),
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
fn a_request_on_a_node_that_others_claim_reclaims_nothing() {
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
fn only_a_cordon_marker_with_our_uid_is_taken_for_ours() {
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

/// What `clusterctl move` leaves: owner references put right, labels as they were.
fn moved(world: &mut World) {
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let labels = &mut world.get_mut(kind).unwrap()["metadata"]["labels"];
        labels[name::SCHEDULED_MACHINE_UID_LABEL] = json!("sm-0");
    }
}

/// What the garbage collector does for a deletion in the foreground or with orphans.
fn strip_owner(world: &mut World) {
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let meta = &mut world.get_mut(kind).unwrap()["metadata"];
        let owners = meta["ownerReferences"].as_array_mut().unwrap();
        owners.retain(|owner| owner["uid"] != "sm-1");
    }
}

#[test]
fn a_moved_machine_has_our_uid_before_anything_else_is_written() {
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
fn a_moved_machine_is_not_relabelled_while_paused_nor_does_a_refusal_hold_up_its_removal()
{
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
        "False NameTaken: a Machine worker is there and belongs to an earlier ScheduledMachine \
         worker (uid sm-0); if this one is its restored copy, let it take the Machine over: kubectl \
         label -n default machine.cluster.x-k8s.io worker 5spot.finos.org/scheduled-machine-uid=\
         sm-1 --overwrite"
    );
    // The command does what it says.
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
fn a_machine_whose_host_is_gone_is_not_called_ready() {
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
                 worker serves"
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
fn what_is_paused_says_what_waits_for_it() {
    let mut memory = Memory::default();
    let mut world = in_service(Contract::V1Beta2, &mut memory);
    world.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    world.settle(&mut memory);
    let message = |world: &World| world.status().message.unwrap();
    assert_eq!(
        message(&world),
        "the Cluster is paused: nothing is touched until it is resumed"
    );
    world.edit(|sm| sm.spec.kill_switch = true);
    world.settle(&mut memory);
    assert_eq!(
        message(&world),
        "the kill switch waits: the Cluster prod is paused, and nothing is touched until it is \
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
        "the deletion waits: the ScheduledMachine worker is paused, and nothing is touched until it \
         is resumed"
    );
    assert!(world.get("Machine").is_some());
}
