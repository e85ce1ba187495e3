//! The table of decisions: the steps and the requeue for each pair of window and machine.

use fivespot_api::{Shutdown, ShutdownReason, name};
use fivespot_capi::Contract;
use fivespot_plan::{Access, Memory, Step, plan};
use jiff::Timestamp;
use serde_json::json;

use crate::simulation::{NAME, Simulation, at, pod};
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
    given: fn(&mut Simulation),
    steps: &'static [Step],
    requeue_at: Option<&'static str>,
}

/// All objects exist and the machine is in service, as in the middle of a window.
fn in_service(simulation: &mut Simulation) {
    let now = simulation.now;
    simulation.now = at("2026-03-06T09:00:00Z");
    simulation.settle(&mut Memory::default());
    simulation.now = now;
}

/// The same, with a shutdown recorded at 20:00 and five minutes to drain.
fn leaving(simulation: &mut Simulation) {
    in_service(simulation);
    let uid = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
    record_shutdown(simulation, uid.as_str().unwrap(), "2026-03-06T20:00:00Z");
}

fn record_shutdown(simulation: &mut Simulation, uid: &str, started: &str) {
    let status = simulation
        .sm
        .as_mut()
        .unwrap()
        .status
        .get_or_insert_default();
    status.shutdown = Some(Shutdown {
        machine_uid: uid.to_owned(),
        started_at: at(started),
        deadline: at(started) + jiff::SignedDuration::from_mins(5),
        reason: ShutdownReason::ScheduleEnded,
        window_end: None,
    });
}

fn cordoned(simulation: &mut Simulation) {
    leaving(simulation);
    let node = simulation.get_mut("Node").unwrap();
    node["spec"]["unschedulable"] = json!(true);
    node["metadata"]["annotations"] = json!({ name::CORDONED_ANNOTATION: "sm-1" });
}

/// A Machine that is being deleted, kept by its finalizer.
fn machine_deleting(simulation: &mut Simulation) {
    simulation.delete(&("Machine".to_owned(), NAME.to_owned()), None);
}

fn held(simulation: &mut Simulation) {
    simulation.sm.as_mut().unwrap().metadata.finalizers =
        Some(vec![name::FINALIZER.to_owned()]);
}

/// The first `writes` of an opening have been sent, and nothing changed since.
fn opened_as_far_as(simulation: &mut Simulation, writes: usize) {
    let now = simulation.now;
    simulation.now = at("2026-03-06T09:00:00Z");
    simulation.is_moving = false;
    simulation.writes_left = writes;
    simulation.settle(&mut Memory::default());
    simulation.writes_left = usize::MAX;
    simulation.now = now;
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
        given: |simulation| opened_as_far_as(simulation, 2),
        steps: &[CreateBootstrap, CreateInfrastructure, CreateMachine],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "unfinished owned objects are completed",
        now: OPEN,
        given: |simulation| opened_as_far_as(simulation, 4),
        steps: &[CreateMachine],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a bootstrap object of an older spec is created again",
        now: OPEN,
        given: |simulation| {
            opened_as_far_as(simulation, 3);
            simulation.edit(|sm| sm.spec.bootstrap_spec.spec.clear());
        },
        steps: &[DeleteBootstrap],
        requeue_at: Some("2026-03-06T12:00:10Z"),
    },
    Row {
        name: "with an infrastructure object it is completed as it is",
        now: OPEN,
        given: |simulation| {
            opened_as_far_as(simulation, 4);
            simulation.edit(|sm| sm.spec.bootstrap_spec.spec.clear());
        },
        steps: &[CreateMachine],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a leftover is deleted before anything is created",
        now: OPEN,
        given: |simulation| {
            opened_as_far_as(simulation, 4);
            let owners = &mut simulation.get_mut("RemoteMachine").unwrap()["metadata"]["ownerReferences"];
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
        given: |simulation| {
            opened_as_far_as(simulation, 4);
            let object = simulation.get_mut("RemoteMachine").unwrap();
            object["metadata"]["deletionTimestamp"] = json!(OPEN);
        },
        steps: &[],
        requeue_at: Some("2026-03-06T12:00:10Z"),
    },
    Row {
        name: "nothing is created while an earlier Machine is still recorded",
        now: OPEN,
        given: |simulation| {
            in_service(simulation);
            simulation.objects.retain(|(kind, _), _| kind == "Cluster");
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
        given: |simulation| {
            in_service(simulation);
            simulation.edit(|sm| sm.spec.node_drain_timeout = "9m".into());
        },
        steps: &[UpdateMachine],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a Machine under deletion is waited for",
        now: OPEN,
        given: |simulation| {
            in_service(simulation);
            machine_deleting(simulation);
        },
        steps: &[],
        requeue_at: Some("2026-03-06T12:10:00Z"),
    },
    Row {
        name: "a shutdown is cancelled in its order",
        now: OPEN,
        given: |simulation| {
            cordoned(simulation);
            simulation.get_mut("Machine").unwrap()["metadata"]["annotations"]["machine.cluster.x-k8s.io/exclude-node-draining"] =
                json!("5spot-controller");
        },
        steps: &[UpdateMachine, UncordonNode],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a shutdown is not cancelled once the Machine is being deleted",
        now: "2026-03-06T12:01:00Z",
        given: |simulation| {
            in_service(simulation);
            let uid = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
            record_shutdown(simulation, uid.as_str().unwrap(), OPEN);
            machine_deleting(simulation);
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
        name: "the shutdown record comes before everything",
        now: CLOSED,
        given: in_service,
        steps: &[],
        requeue_at: Some("2026-03-06T20:05:00Z"),
    },
    Row {
        name: "the Node is cordoned and its pods evicted",
        now: CLOSED,
        given: |simulation| {
            leaving(simulation);
            simulation.pods = vec![pod("a"), pod("b")];
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
        given: |simulation| {
            cordoned(simulation);
            simulation.pods = vec![pod("a")];
            simulation.pods[0].is_deleting = true;
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
        given: |simulation| {
            cordoned(simulation);
            simulation.pods = vec![pod("a")];
        },
        steps: &[ExcludeDrain, DeleteMachine],
        requeue_at: Some(OPENS),
    },
    Row {
        name: "a shorter grace brings the deadline forward",
        now: "2026-03-06T20:01:00Z",
        given: |simulation| {
            cordoned(simulation);
            simulation.pods = vec![pod("a")];
            simulation.edit(|sm| sm.spec.graceful_shutdown_timeout = "1m".into());
        },
        steps: &[ExcludeDrain, DeleteMachine],
        requeue_at: Some(OPENS),
    },
    Row {
        name: "a longer grace does not extend the deadline",
        now: "2026-03-06T20:05:00Z",
        given: |simulation| {
            cordoned(simulation);
            simulation.pods = vec![pod("a")];
            simulation.edit(|sm| sm.spec.graceful_shutdown_timeout = "20m".into());
            simulation.edit(|sm| sm.spec.node_drain_timeout = "20m".into());
        },
        steps: &[ExcludeDrain, DeleteMachine],
        requeue_at: Some(OPENS),
    },
    Row {
        name: "an unreachable cluster is read again",
        now: CLOSED,
        given: |simulation| {
            leaving(simulation);
            simulation.access = Access::Unreachable {
                message: "no route".to_owned(),
            };
        },
        steps: &[],
        requeue_at: Some("2026-03-06T20:00:05Z"),
    },
    Row {
        name: "without access to the Node the Machine is deleted at once",
        now: CLOSED,
        given: |simulation| {
            leaving(simulation);
            simulation.access = Access::Unauthorized {
                message: "401".to_owned(),
            };
        },
        steps: &[DeleteMachine],
        requeue_at: Some("2026-03-06T20:05:00Z"),
    },
    Row {
        name: "a Machine under deletion is waited for until the deadline",
        now: CLOSED,
        given: |simulation| {
            leaving(simulation);
            machine_deleting(simulation);
        },
        steps: &[],
        requeue_at: Some("2026-03-06T20:05:00Z"),
    },
    Row {
        name: "at the deadline Cluster API is made to skip its drain",
        now: "2026-03-06T20:05:00Z",
        given: |simulation| {
            leaving(simulation);
            machine_deleting(simulation);
        },
        steps: &[ExcludeDrain],
        requeue_at: Some("2026-03-06T20:15:00Z"),
    },
    Row {
        name: "a bootstrap object alone is deleted directly",
        now: CLOSED,
        given: |simulation| opened_as_far_as(simulation, 3),
        steps: &[DeleteBootstrap],
        requeue_at: Some("2026-03-06T20:00:10Z"),
    },
    Row {
        name: "an infrastructure object gets a Machine, and both are deleted",
        now: CLOSED,
        given: |simulation| opened_as_far_as(simulation, 4),
        steps: &[CreateMachine],
        requeue_at: Some(OPENS),
    },
    Row {
        name: "without a Cluster both are deleted directly",
        now: CLOSED,
        given: |simulation| {
            opened_as_far_as(simulation, 4);
            simulation.objects.retain(|(kind, _), _| kind != "Cluster");
        },
        steps: &[DeleteBootstrap, DeleteInfrastructure],
        requeue_at: Some("2026-03-06T20:00:10Z"),
    },
    // Whatever the window.
    Row {
        name: "the kill switch waits for nothing",
        now: OPEN,
        given: |simulation| {
            in_service(simulation);
            simulation.pods = vec![pod("a")];
            simulation.edit(|sm| sm.spec.kill_switch = true);
            let uid = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
            record_shutdown(simulation, uid.as_str().unwrap(), OPEN);
            let shutdown = simulation
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
        given: |simulation| {
            in_service(simulation);
            simulation.edit(|sm| sm.spec.schedule.enabled = false);
        },
        steps: &[],
        requeue_at: None,
    },
    Row {
        name: "the finalizer of a deleted object with nothing left is removed",
        now: OPEN,
        given: |simulation| {
            held(simulation);
            simulation.delete_sm();
        },
        steps: &[RemoveFinalizer],
        requeue_at: Some(CLOSES),
    },
    Row {
        name: "a paused object is left alone",
        now: CLOSED,
        given: |simulation| {
            in_service(simulation);
            let paused = [("cluster.x-k8s.io/paused".to_owned(), String::new())];
            simulation.edit(|sm| sm.metadata.annotations = Some(paused.into()));
        },
        steps: &[],
        requeue_at: Some(OPENS),
    },
];

#[test]
fn every_row_of_the_table_holds() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        for row in ROWS {
            let mut simulation = Simulation::new(contract, row.now);
            (row.given)(&mut simulation);
            let mut memory = Memory::default();
            let observed = simulation.observed();
            memory.observe(
                simulation.sm().metadata.generation,
                &observed,
                simulation.now,
            );
            let next = plan(simulation.sm(), &observed, &memory, simulation.now);
            let requeue_at = row.requeue_at.map(at);
            let got: (Vec<Step>, Option<Timestamp>) = (next.steps(), next.requeue_at);
            assert_eq!(
                got,
                (row.steps.to_vec(), requeue_at),
                "{} ({contract:?})",
                row.name
            );
        }
    }
}
