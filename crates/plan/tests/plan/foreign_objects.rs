//! What the planner must never do to others: to administrators, to other machines, and to users
//! whose admission was evaded.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{NodeTaint, Phase, TaintEffect, name};
use fivespot_capi::{Contract, key};
use fivespot_plan::{Call, Cause, Memory, Step};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::simulation::{
    CONTRACTS, EVENING, NAME, NOON, OPENS, Simulation, at, in_service, pod,
};

fn condition_text(simulation: &Simulation, kind: ConditionType) -> String {
    let status = simulation.status();
    condition::find(&status.conditions, kind).map_or_else(String::new, |found| {
        format!("{} {}: {}", found.status, found.reason, found.message)
    })
}

/// Owned objects without their Machine, which the API server has refused.
fn unfinished(contract: Contract, memory: &mut Memory) -> Simulation {
    let mut simulation = Simulation::new(contract, OPENS);
    simulation.edit(|sm| {
        let template = &mut sm.spec.machine_template;
        template.labels.insert("team".to_owned(), "a".to_owned());
        template
            .annotations
            .insert("note".to_owned(), "b".to_owned());
    });
    simulation.failing = Some((Step::CreateMachine, Cause::Unavailable));
    simulation.settle(memory);
    assert!(simulation.get("RemoteMachine").is_some());
    assert!(simulation.get("Machine").is_none());
    simulation.failing = None;
    simulation
}

/// Runs until a Machine is created; returns the requested object.
fn created(simulation: &mut Simulation, memory: &mut Memory) -> Value {
    simulation.pause(60);
    for _ in 0..20 {
        let (next, _) = simulation.reconcile(memory);
        let mut all = next.actions.into_iter();
        if let Some(create) = all.find(|action| action.step == Step::CreateMachine)
            && let Call::Create(object) = create.request.call
        {
            return object;
        }
    }
    panic!("no Machine is created: {:#?}", simulation.log);
}

#[test]
fn a_provider_object_gets_the_labels_and_annotations_of_its_spec() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = Simulation::new(contract, OPENS);
        simulation.edit(|sm| {
            let metadata = json!({
                "labels": {"rack": "7"},
                "annotations": {"note": "b"},
            });
            sm.spec.infrastructure_spec.metadata =
                serde_json::from_value(metadata).unwrap();
        });
        simulation.settle(&mut memory);
        let metadata = |kind: &str| simulation.get(kind).unwrap()["metadata"].clone();
        let made = metadata("RemoteMachine");
        assert_eq!(made["labels"]["rack"], "7");
        assert_eq!(made["labels"][key::CLUSTER_NAME], "prod");
        assert_eq!(made["annotations"]["note"], "b");
        let hash = &made["annotations"][name::SPEC_HASH_ANNOTATION];
        assert_eq!(*hash, json!(simulation.status().spec_hash.unwrap()));
        let other = metadata("K0sWorkerConfig");
        assert_eq!(other["labels"].get("rack"), None);
        assert_eq!(other["annotations"].get("note"), None);
    }
}

#[test]
fn a_machine_created_only_to_be_deleted_ignores_the_template() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = unfinished(contract, &mut memory);
        let serving = created(&mut simulation, &mut memory);
        assert_eq!(serving["metadata"]["labels"]["team"], "a");
        for change in [
            |simulation: &mut Simulation| simulation.delete_sm(),
            |simulation: &mut Simulation| {
                simulation.edit(|sm| sm.spec.kill_switch = true);
            },
        ] {
            let mut memory = Memory::default();
            let mut simulation = unfinished(contract, &mut memory);
            change(&mut simulation);
            let going = created(&mut simulation, &mut memory);
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
            simulation.run_until(&mut memory, NOON);
            assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
        }
    }
}

#[test]
fn unfinished_objects_are_completed_for_the_cluster_on_their_own_label() {
    for contract in CONTRACTS {
        for change in [
            |_: &mut Simulation| {},
            |simulation: &mut Simulation| simulation.delete_sm(),
        ] {
            let mut memory = Memory::default();
            let mut simulation = unfinished(contract, &mut memory);
            // An edit that evaded admission; that Cluster does not exist.
            simulation.edit(|sm| sm.spec.cluster_name = "other".to_owned());
            change(&mut simulation);
            let made = created(&mut simulation, &mut memory);
            assert_eq!(made["spec"]["clusterName"], "prod");
            assert_eq!(made["metadata"]["labels"][key::CLUSTER_NAME], "prod");
        }
    }
}

#[test]
fn a_cluster_that_is_no_longer_in_the_spec_is_read_again() {
    let mut memory = Memory::default();
    let mut simulation = unfinished(Contract::V1Beta2, &mut memory);
    simulation.edit(|sm| sm.spec.cluster_name = "other".to_owned());
    simulation.get_mut("Cluster").unwrap()["status"] = json!({});
    let reported = simulation.settle(&mut memory);
    assert_eq!(
        condition_text(&simulation, ConditionType::ReferencesValid),
        "False ClusterNotReady: Cluster prod is not ready for machines: its infrastructure is not ready"
    );
    let soon = simulation.now + SignedDuration::from_mins(1);
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
        let mut simulation = unfinished(contract, &mut memory);
        let before = simulation.count("CreateMachine");
        simulation.delete_sm();
        simulation.edit(|sm| {
            let labels = &mut sm.spec.machine_template.labels;
            labels.insert("cluster.x-k8s.io/control-plane".to_owned(), String::new());
        });
        simulation.run_until(&mut memory, NOON);
        assert_eq!(
            simulation.count("CreateMachine"),
            before,
            "{:#?}",
            simulation.log
        );
        assert!(simulation.count("DeleteInfrastructure") > 0);
        assert!(simulation.sm.is_none());
        assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
    }
}

/// The owner of a Node, the change that shows it, and the message about it.
type ForeignOwner = (&'static str, fn(&mut Simulation), &'static str);

/// Nodes of other owners.
fn foreign_owners() -> Vec<ForeignOwner> {
    fn annotated(simulation: &mut Simulation, annotation: &str, value: &str) {
        let node = simulation.get_mut("Node").unwrap();
        node["metadata"]["annotations"][annotation] = json!(value);
    }
    vec![
        (
            "another Machine's",
            |simulation| annotated(simulation, key::MACHINE, "victim"),
            "Node worker has the annotations of Machine ?/victim in Cluster ?",
        ),
        (
            "another namespace's",
            |simulation| annotated(simulation, key::CLUSTER_NAMESPACE, "elsewhere"),
            "Node worker has the annotations of Machine elsewhere/? in Cluster ?",
        ),
        (
            "another Cluster's",
            |simulation| annotated(simulation, key::CLUSTER_NAME, "other"),
            "Node worker has the annotations of Machine ?/? in Cluster other",
        ),
        (
            "claimed by two",
            |simulation| simulation.conflicting_machine = Some("victim".to_owned()),
            "Machine victim of the same Cluster also claims Node worker",
        ),
        (
            "a control plane's by its label",
            |simulation| {
                let node = simulation.get_mut("Node").unwrap();
                let role = "node-role.kubernetes.io/control-plane";
                node["metadata"]["labels"][role] = json!("");
            },
            "Node worker has a control-plane role",
        ),
        (
            "a control plane's by its taint",
            |simulation| {
                simulation.get_mut("Node").unwrap()["spec"]["taints"] = json!([
                    { "key": "node-role.kubernetes.io/master", "effect": "NoSchedule" },
                ]);
            },
            "Node worker has a control-plane role",
        ),
    ]
}

#[test]
fn a_node_of_another_machine_is_not_changed_and_the_reason_is_reported() {
    for (what, change, why) in foreign_owners() {
        let mut memory = Memory::default();
        let mut simulation = in_service(Contract::V1Beta2, &mut memory);
        change(&mut simulation);
        let before = simulation.get("Node").cloned();
        simulation.edit(|sm| {
            sm.spec.kill_if_commands = Some(vec!["game".to_owned()]);
            sm.spec.node_taints = vec![NodeTaint {
                key: "evil".to_owned(),
                value: String::new(),
                effect: TaintEffect::NoExecute,
            }];
        });
        simulation.pods = vec![pod("a")];
        simulation.settle(&mut memory);
        assert_eq!(simulation.get("Node").cloned(), before, "{what}");
        assert_eq!(
            condition_text(&simulation, ConditionType::NodeAccess),
            format!("False NodeNotOurs: {why}: it is not changed"),
            "{what}"
        );
        let message = simulation.status().message.unwrap_or_default();
        let said = format!("; {why}: it is neither changed nor drained");
        let is_in_service = message.starts_with("Node worker is in service");
        assert_eq!(message.ends_with(&said), is_in_service, "{what}: {message}");
        assert_eq!(
            condition_text(&simulation, ConditionType::NodeTainted),
            format!("Unknown NoNodeYet: {why}"),
            "{what}"
        );
        simulation.is_moving = false;
        simulation.run_until(&mut memory, EVENING);
        assert_eq!(
            simulation.first("DeleteMachine"),
            at("2026-03-06T18:00:00Z"),
            "{what}"
        );
        assert_eq!(simulation.get("Node").cloned(), before, "{what}");
        assert_eq!(
            simulation.count("EvictPod") + simulation.count("ExcludeDrain"),
            1,
            "{what}"
        );
    }
}

#[test]
fn a_request_on_a_node_of_another_machine_reclaims_nothing() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.conflicting_machine = Some("victim".to_owned());
    let node = simulation.get_mut("Node").unwrap();
    node["metadata"]["annotations"][name::RECLAIM_REQUESTED_ANNOTATION] = json!("true");
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    assert_eq!(
        simulation.count("RecordReclaim") + simulation.count("ClearRequest"),
        0
    );
}

#[test]
fn only_a_node_with_our_uid_in_the_cordon_marker_is_uncordoned() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    let node = simulation.get_mut("Node").unwrap();
    node["spec"]["unschedulable"] = json!(true);
    node["metadata"]["annotations"][name::CORDONED_ANNOTATION] = json!("forged");
    simulation.settle(&mut memory);
    assert_eq!(simulation.count("UncordonNode"), 0);
    let node = simulation.get_mut("Node").unwrap();
    node["metadata"]["annotations"][name::CORDONED_ANNOTATION] = json!("sm-1");
    simulation.settle(&mut memory);
    assert_eq!(simulation.count("UncordonNode"), 1);
}

/// Changes the objects as `clusterctl move` does: the owner references are updated, the labels
/// are not.
fn moved(simulation: &mut Simulation) {
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let labels = &mut simulation.get_mut(kind).unwrap()["metadata"]["labels"];
        labels[name::SCHEDULED_MACHINE_UID_LABEL] = json!("sm-0");
    }
}

/// Changes the objects as the garbage collector does after a foreground or orphan deletion.
fn strip_owner(simulation: &mut Simulation) {
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let meta = &mut simulation.get_mut(kind).unwrap()["metadata"];
        let owners = meta["ownerReferences"].as_array_mut().unwrap();
        owners.retain(|owner| owner["uid"] != "sm-1");
    }
}

#[test]
fn a_moved_machine_gets_our_uid_before_any_other_write() {
    for contract in CONTRACTS {
        let mut memory = Memory::default();
        let mut simulation = in_service(contract, &mut memory);
        moved(&mut simulation);
        let from = simulation.log.len();
        simulation.edit(|sm| {
            sm.spec.node_drain_timeout = "9m".to_owned();
        });
        simulation.settle(&mut memory);
        assert_eq!(
            simulation.log[from].1,
            "RelabelMachine",
            "{:#?}",
            &simulation.log[from..]
        );
        let labels = &simulation.get("Machine").unwrap()["metadata"]["labels"];
        assert_eq!(labels[name::SCHEDULED_MACHINE_UID_LABEL], "sm-1");
        assert_eq!(simulation.count("RelabelMachine"), 1);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
        simulation.delete_sm();
        strip_owner(&mut simulation);
        simulation.run_until(&mut memory, EVENING);
        assert!(simulation.sm.is_none());
        assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
    }
}

#[test]
fn a_moved_machine_is_not_relabelled_while_paused_and_a_refusal_blocks_nothing() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    moved(&mut simulation);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    simulation.settle(&mut memory);
    assert_eq!(simulation.count("RelabelMachine"), 0);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    simulation.failing = Some((Step::RelabelMachine, Cause::Rejected));
    simulation.settle(&mut memory);
    let message = simulation.status().message.unwrap();
    assert!(message.contains("cannot change the Machine"), "{message}");
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Terminated));
    assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
}

#[test]
fn objects_of_an_earlier_scheduled_machine_are_left_alone_and_the_command_is_reported() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    moved(&mut simulation);
    for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
        let owners =
            &mut simulation.get_mut(kind).unwrap()["metadata"]["ownerReferences"];
        for owner in owners.as_array_mut().unwrap() {
            if owner["uid"] == "sm-1" {
                owner["uid"] = json!("sm-0");
            }
        }
    }
    let from = simulation.log.len();
    simulation.settle(&mut memory);
    let written: Vec<_> = simulation.log[from..]
        .iter()
        .map(|(_, step)| step)
        .collect();
    assert!(written.iter().all(|step| *step == "Status"), "{written:?}");
    assert_eq!(
        condition_text(&simulation, ConditionType::ReferencesValid),
        "False NameTaken: a Machine worker exists and belongs to an earlier ScheduledMachine \
         worker (uid sm-0); if this one is its restored copy, transfer the Machine to it: kubectl \
         label -n default machine.cluster.x-k8s.io worker 5spot.finos.org/scheduled-machine-uid=\
         sm-1 --overwrite"
    );
    // The reported command has the described effect.
    let labels = &mut simulation.get_mut("Machine").unwrap()["metadata"]["labels"];
    labels[name::SCHEDULED_MACHINE_UID_LABEL] = json!("sm-1");
    simulation.settle(&mut memory);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    simulation.delete_sm();
    simulation.run_until(&mut memory, EVENING);
    assert!(simulation.sm.is_none());
    assert_eq!(simulation.kinds(), [NAME; 0]);
}

#[test]
fn a_machine_whose_host_is_gone_is_not_ready() {
    for kind in ["RemoteMachine", "K0sWorkerConfig"] {
        let mut memory = Memory::default();
        let mut simulation = Simulation::new(Contract::V1Beta2, OPENS);
        simulation.settle(&mut memory);
        let uid = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
        simulation
            .objects
            .remove(&(kind.to_owned(), NAME.to_owned()));
        simulation.settle(&mut memory);
        assert_eq!(simulation.status().phase, Some(Phase::Active));
        assert_eq!(
            condition_text(&simulation, ConditionType::Ready),
            format!(
                "False InfrastructureMissing: {kind} worker of Machine worker is gone while Node \
                 worker is in service"
            )
        );
        simulation.edit(|sm| sm.spec.schedule.enabled = false);
        simulation.settle(&mut memory);
        assert_eq!(simulation.status().phase, Some(Phase::Disabled));
        let ready = condition_text(&simulation, ConditionType::Ready);
        assert!(ready.starts_with("False InfrastructureMissing"), "{ready}");
        simulation.edit(|sm| sm.spec.schedule.enabled = true);
        simulation.run_until(&mut memory, NOON);
        assert_ne!(simulation.get("Machine").unwrap()["metadata"]["uid"], uid);
        let ready = condition_text(&simulation, ConditionType::Ready);
        assert!(ready.starts_with("True MachineRunning"), "{ready}");
    }
}

#[test]
fn the_message_of_a_pause_reports_what_waits() {
    let mut memory = Memory::default();
    let mut simulation = in_service(Contract::V1Beta2, &mut memory);
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(true);
    simulation.settle(&mut memory);
    let message = |simulation: &Simulation| simulation.status().message.unwrap();
    assert_eq!(
        message(&simulation),
        "the Cluster is paused: nothing is changed until it is resumed"
    );
    simulation.edit(|sm| sm.spec.kill_switch = true);
    simulation.settle(&mut memory);
    assert_eq!(
        message(&simulation),
        "the kill switch waits: the Cluster prod is paused, and nothing is changed until it is \
         resumed"
    );
    simulation.get_mut("Cluster").unwrap()["spec"]["paused"] = json!(false);
    simulation.edit(|sm| {
        let paused = (key::PAUSED.to_owned(), String::new());
        sm.metadata.annotations = Some([paused].into());
    });
    simulation.delete_sm();
    simulation.settle(&mut memory);
    assert_eq!(
        message(&simulation),
        "the deletion waits: the ScheduledMachine worker is paused, and nothing is changed until it \
         is resumed"
    );
    assert!(simulation.get("Machine").is_some());
}
