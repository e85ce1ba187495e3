//! The table of decisions: the steps and the requeue for each pair of window and machine.

use fivespot_api::{Shutdown, ShutdownReason, name};
use fivespot_capi::Contract;
use fivespot_plan::{Access, Memory, Step, plan};
use jiff::Timestamp;
use serde_json::json;

use crate::world::{NAME, World, at, pod};
use Step::{
    AddFinalizer, CordonNode, CreateBootstrap, CreateInfrastructure, CreateMachine,
    DeleteBootstrap, DeleteInfrastructure, DeleteMachine, EvictPod, ExcludeDrain,
    RemoveFinalizer, UncordonNode, UpdateMachine,
};

/// A Friday inside the window, which closes at 18:00.
const OPEN: &str = "2026-03-06T12:00:00Z";
const CLOSES: &str = "2026-03-06T18:00:00Z";
/// The same evening; the window opens on Monday at 9:00.
const CLOSED: &str = "2026-03-06T20:00:00Z";
const OPENS: &str = "2026-03-09T09:00:00Z";

/// One row: a situation, the instant, the steps, and the next requeue.
struct Row {
    name: &'static str,
    now: &'static str,
    given: fn(&mut World),
    steps: &'static [Step],
    requeue_at: Option<&'static str>,
}

/// All objects exist and the machine is in service, as in the middle of a window.
fn in_service(world: &mut World) {
    let now = world.now;
    world.now = at("2026-03-06T09:00:00Z");
    world.settle(&mut Memory::default());
    world.now = now;
}

/// The same, with a shutdown committed at 20:00 and five minutes to drain.
fn leaving(world: &mut World) {
    in_service(world);
    let uid = world.get("Machine").unwrap()["metadata"]["uid"].clone();
    commit(world, uid.as_str().unwrap(), "2026-03-06T20:00:00Z");
}

fn commit(world: &mut World, uid: &str, started: &str) {
    let status = world.sm.as_mut().unwrap().status.get_or_insert_default();
    status.shutdown = Some(Shutdown {
        machine_uid: uid.to_owned(),
        started_at: at(started),
        deadline: at(started) + jiff::SignedDuration::from_mins(5),
        reason: ShutdownReason::ScheduleEnded,
        window_end: None,
    });
}

fn cordoned(world: &mut World) {
    leaving(world);
    let node = world.get_mut("Node").unwrap();
    node["spec"]["unschedulable"] = json!(true);
    node["metadata"]["annotations"] = json!({ name::CORDONED_ANNOTATION: "sm-1" });
}

/// A Machine that is being deleted, kept by its finalizer.
fn machine_deleting(world: &mut World) {
    world.delete(&("Machine".to_owned(), NAME.to_owned()), None);
}

fn held(world: &mut World) {
    world.sm.as_mut().unwrap().metadata.finalizers =
        Some(vec![name::FINALIZER.to_owned()]);
}

/// The first `writes` of an opening have been sent, and nothing changed since.
fn opened_as_far_as(world: &mut World, writes: usize) {
    let now = world.now;
    world.now = at("2026-03-06T09:00:00Z");
    world.is_moving = false;
    world.writes_left = writes;
    world.settle(&mut Memory::default());
    world.writes_left = usize::MAX;
    world.now = now;
}

const ROWS: &[Row] = &[
    // Window open.
    Row {
        name: "a finalizer comes before everything",
        now: OPEN,
        given: |_| {},
        steps: &[AddFinalizer],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "planned objects are recorded first",
        now: OPEN,
        given: held,
        steps: &[],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "once recorded all three are created",
        now: OPEN,
        given: |world| opened_as_far_as(world, 2),
        steps: &[CreateBootstrap, CreateInfrastructure, CreateMachine],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "unfinished owned objects are completed",
        now: OPEN,
        given: |world| opened_as_far_as(world, 4),
        steps: &[CreateMachine],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a bootstrap object of an older spec is created again",
        now: OPEN,
        given: |world| {
            opened_as_far_as(world, 3);
            world.edit(|sm| sm.spec.bootstrap_spec.spec.clear());
        },
        steps: &[DeleteBootstrap],
        requeue_at: Some("2026-03-06T12:00:10Z"),
    },
    Row {
        name: "with an infrastructure object it is completed as it is",
        now: OPEN,
        given: |world| {
            opened_as_far_as(world, 4);
            world.edit(|sm| sm.spec.bootstrap_spec.spec.clear());
        },
        steps: &[CreateMachine],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a leftover is deleted before anything is created",
        now: OPEN,
        given: |world| {
            opened_as_far_as(world, 4);
            let owners = &mut world.get_mut("RemoteMachine").unwrap()["metadata"]["ownerReferences"];
            owners.as_array_mut().unwrap().push(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "name": NAME, "uid": "gone", "controller": true,
            }));
        },
        steps: &[DeleteInfrastructure],
        requeue_at: Some("2026-03-06T12:00:10Z"),
    },
    Row {
        name: "a leftover that is being deleted is waited for",
        now: OPEN,
        given: |world| {
            opened_as_far_as(world, 4);
            let object = world.get_mut("RemoteMachine").unwrap();
            object["metadata"]["deletionTimestamp"] = json!(OPEN);
        },
        steps: &[],
        requeue_at: Some("2026-03-06T12:00:10Z"),
    },
    Row {
        name: "nothing is created while an earlier Machine is still recorded",
        now: OPEN,
        given: |world| {
            in_service(world);
            world.objects.retain(|(kind, _), _| kind == "Cluster");
        },
        steps: &[],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a machine in service needs nothing until the window closes",
        now: OPEN,
        given: in_service,
        steps: &[],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "an edited timeout goes to the Machine at once",
        now: OPEN,
        given: |world| {
            in_service(world);
            world.edit(|sm| sm.spec.node_drain_timeout = "9m".into());
        },
        steps: &[UpdateMachine],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a Machine under deletion is waited for",
        now: OPEN,
        given: |world| {
            in_service(world);
            machine_deleting(world);
        },
        steps: &[],
        requeue_at: Some("2026-03-06T12:10:00Z"),
    },
    Row {
        name: "a commitment is cancelled in its order",
        now: OPEN,
        given: |world| {
            cordoned(world);
            world.get_mut("Machine").unwrap()["metadata"]["annotations"]["machine.cluster.x-k8s.io/exclude-node-draining"] =
                json!("5spot-controller");
        },
        steps: &[UpdateMachine, UncordonNode],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a commitment is not cancelled once the Machine is being deleted",
        now: "2026-03-06T12:01:00Z",
        given: |world| {
            in_service(world);
            let uid = world.get("Machine").unwrap()["metadata"]["uid"].clone();
            commit(world, uid.as_str().unwrap(), OPEN);
            machine_deleting(world);
        },
        steps: &[],
        requeue_at: Some("2026-03-06T12:05:00Z"),
    },
    // Window closed.
    Row {
        name: "nothing exists and nothing is wanted until the window opens",
        now: CLOSED,
        given: held,
        steps: &[],
        requeue_at: Some("2026-03-09T09:00:00Z"),
    },
    Row {
        name: "the commitment comes before everything",
        now: CLOSED,
        given: in_service,
        steps: &[],
        requeue_at: Some("2026-03-06T20:05:00Z"),
    },
    Row {
        name: "the Node is cordoned and its pods evicted",
        now: CLOSED,
        given: |world| {
            leaving(world);
            world.pods = vec![pod("a"), pod("b")];
        },
        steps: &[CordonNode, EvictPod, EvictPod],
        requeue_at: Some("2026-03-06T20:00:05Z"),
    },
    Row {
        name: "an empty Node is cordoned before it counts as empty",
        now: CLOSED,
        given: leaving,
        steps: &[CordonNode],
        requeue_at: Some("2026-03-06T20:00:05Z"),
    },
    Row {
        name: "terminating pods are waited for",
        now: CLOSED,
        given: |world| {
            cordoned(world);
            world.pods = vec![pod("a")];
            world.pods[0].is_deleting = true;
        },
        steps: &[],
        requeue_at: Some("2026-03-06T20:00:05Z"),
    },
    Row {
        name: "an empty Node ends the drain",
        now: CLOSED,
        given: cordoned,
        steps: &[ExcludeDrain, DeleteMachine],
        requeue_at: Some("2026-03-06T20:05:00Z"),
    },
    Row {
        name: "at the deadline the Machine is deleted, with or without pods",
        now: "2026-03-06T20:05:00Z",
        given: |world| {
            cordoned(world);
            world.pods = vec![pod("a")];
        },
        steps: &[ExcludeDrain, DeleteMachine],
        requeue_at: Some(OPENS),
    },
    Row {
        name: "a shorter grace brings the deadline forward",
        now: "2026-03-06T20:01:00Z",
        given: |world| {
            cordoned(world);
            world.pods = vec![pod("a")];
            world.edit(|sm| sm.spec.graceful_shutdown_timeout = "1m".into());
        },
        steps: &[ExcludeDrain, DeleteMachine],
        requeue_at: Some(OPENS),
    },
    Row {
        name: "a longer grace does not extend the deadline",
        now: "2026-03-06T20:05:00Z",
        given: |world| {
            cordoned(world);
            world.pods = vec![pod("a")];
            world.edit(|sm| sm.spec.graceful_shutdown_timeout = "20m".into());
            world.edit(|sm| sm.spec.node_drain_timeout = "20m".into());
        },
        steps: &[ExcludeDrain, DeleteMachine],
        requeue_at: Some(OPENS),
    },
    Row {
        name: "an unreachable cluster is read again",
        now: CLOSED,
        given: |world| {
            leaving(world);
            world.access = Access::Unreachable {
                message: "no route".to_owned(),
            };
        },
        steps: &[],
        requeue_at: Some("2026-03-06T20:00:05Z"),
    },
    Row {
        name: "without access to the Node the Machine is deleted at once",
        now: CLOSED,
        given: |world| {
            leaving(world);
            world.access = Access::Unauthorized {
                message: "401".to_owned(),
            };
        },
        steps: &[DeleteMachine],
        requeue_at: Some("2026-03-06T20:05:00Z"),
    },
    Row {
        name: "a Machine under deletion is waited for until the deadline",
        now: CLOSED,
        given: |world| {
            leaving(world);
            machine_deleting(world);
        },
        steps: &[],
        requeue_at: Some("2026-03-06T20:05:00Z"),
    },
    Row {
        name: "at the deadline Cluster API is made to skip its drain",
        now: "2026-03-06T20:05:00Z",
        given: |world| {
            leaving(world);
            machine_deleting(world);
        },
        steps: &[ExcludeDrain],
        requeue_at: Some("2026-03-06T20:15:00Z"),
    },
    Row {
        name: "a bootstrap object alone is deleted directly",
        now: CLOSED,
        given: |world| opened_as_far_as(world, 3),
        steps: &[DeleteBootstrap],
        requeue_at: Some("2026-03-06T20:00:10Z"),
    },
    Row {
        name: "an infrastructure object gets a Machine, and both are deleted",
        now: CLOSED,
        given: |world| opened_as_far_as(world, 4),
        steps: &[CreateMachine],
        requeue_at: Some(OPENS),
    },
    Row {
        name: "without a Cluster both are deleted directly",
        now: CLOSED,
        given: |world| {
            opened_as_far_as(world, 4);
            world.objects.retain(|(kind, _), _| kind != "Cluster");
        },
        steps: &[DeleteBootstrap, DeleteInfrastructure],
        requeue_at: Some("2026-03-06T20:00:10Z"),
    },
    // Whatever the window.
    Row {
        name: "the kill switch waits for nothing",
        now: OPEN,
        given: |world| {
            in_service(world);
            world.pods = vec![pod("a")];
            world.edit(|sm| sm.spec.kill_switch = true);
            let uid = world.get("Machine").unwrap()["metadata"]["uid"].clone();
            commit(world, uid.as_str().unwrap(), OPEN);
            let shutdown = world
                .sm
                .as_mut()
                .unwrap()
                .status
                .as_mut()
                .unwrap()
                .shutdown
                .as_mut();
            shutdown.unwrap().reason = ShutdownReason::KillSwitch;
        },
        steps: &[ExcludeDrain, DeleteMachine],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a disabled schedule has no requeue",
        now: OPEN,
        given: |world| {
            in_service(world);
            world.edit(|sm| sm.spec.schedule.enabled = false);
        },
        steps: &[],
        requeue_at: None,
    },
    Row {
        name: "the finalizer of a deleted object with nothing left is removed",
        now: OPEN,
        given: |world| {
            held(world);
            world.delete_sm();
        },
        steps: &[RemoveFinalizer],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a paused object is left alone",
        now: CLOSED,
        given: |world| {
            in_service(world);
            let paused = [("cluster.x-k8s.io/paused".to_owned(), String::new())];
            world.edit(|sm| sm.metadata.annotations = Some(paused.into()));
        },
        steps: &[],
        requeue_at: Some(OPENS),
    },
];

#[test]
fn every_row_of_the_table_holds() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        for row in ROWS {
            let mut world = World::new(contract, row.now);
            (row.given)(&mut world);
            let mut memory = Memory::default();
            let observed = world.observed();
            memory.observe(world.sm().metadata.generation, &observed, world.now);
            let next = plan(world.sm(), &observed, &memory, world.now);
            let requeue_at = row.requeue_at.map(at);
            let got: (Vec<Step>, Option<Timestamp>) = (next.steps(), next.requeue_at);
            assert_eq!(
                got,
                (row.steps.to_vec(), requeue_at),
                "{} ({contract})",
                row.name
            );
        }
    }
}
