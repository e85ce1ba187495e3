//! Random scenarios: random edits of users, changes of Nodes and crashes of the operator. Once
//! they have ended, the desired state is reached.

use fivespot_api::{Phase, name};
use fivespot_capi::{Contract, key};
use fivespot_plan::{Access, Cause, Memory, Step};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::simulation::{CONTRACTS, NAME, Simulation, at, cluster, pod};

/// How many scenarios are run.
const CASES: u32 = 32;

/// A random action of a user, a component or a fault.
#[derive(Clone, Copy, Debug)]
enum Action {
    Kill(bool),
    Enable(bool),
    Hours(&'static str),
    Grace(&'static str),
    Drain(&'static str),
    Edit(u16),
    Zone(&'static str),
    PauseCluster(bool),
    TakeCluster,
    GiveCluster,
    DeleteMachine,
    AddPods,
    HoldPods,
    LetPodsGo,
    Access(u8),
    Move(bool),
    Fail(Option<(Step, Cause)>),
    Crash(usize),
    Restart,
    LoseStatus,
    DropFinalizer,
}

fn action() -> impl Strategy<Value = Action> {
    let causes = select(vec![
        Cause::Unavailable,
        Cause::Forbidden,
        Cause::Rejected,
        Cause::NamespaceTerminating,
    ]);
    let steps = select(vec![
        Step::CreateInfrastructure,
        Step::CreateMachine,
        Step::UpdateMachine,
        Step::ExcludeDrain,
        Step::CordonNode,
        Step::EvictPod,
        Step::UncordonNode,
        Step::DeleteMachine,
    ]);
    prop_oneof![
        2 => any::<bool>().prop_map(Action::Kill),
        1 => any::<bool>().prop_map(Action::Enable),
        4 => select(vec!["9-17", "0-23", "9-10", "3"]).prop_map(Action::Hours),
        2 => select(vec!["0s", "1m", "5m", "2h"]).prop_map(Action::Grace),
        2 => select(vec!["0s", "1m", "5m", "2h"]).prop_map(Action::Drain),
        1 => any::<u16>().prop_map(Action::Edit),
        1 => select(vec!["UTC", "Mars/Olympus"]).prop_map(Action::Zone),
        1 => any::<bool>().prop_map(Action::PauseCluster),
        1 => Just(Action::TakeCluster),
        1 => Just(Action::GiveCluster),
        2 => Just(Action::DeleteMachine),
        2 => Just(Action::AddPods),
        2 => Just(Action::HoldPods),
        1 => Just(Action::LetPodsGo),
        2 => (0..4_u8).prop_map(Action::Access),
        3 => any::<bool>().prop_map(Action::Move),
        2 => proptest::option::of((steps, causes)).prop_map(Action::Fail),
        4 => (0..4_usize).prop_map(Action::Crash),
        1 => Just(Action::Restart),
        1 => Just(Action::LoseStatus),
        1 => Just(Action::DropFinalizer),
    ]
}

fn act(simulation: &mut Simulation, memory: &mut Memory, action: Action) {
    match action {
        Action::Kill(is_set) => simulation.edit(|sm| sm.spec.kill_switch = is_set),
        Action::Enable(is_set) => simulation.edit(|sm| sm.spec.schedule.enabled = is_set),
        Action::Hours(hours) => {
            simulation.edit(|sm| sm.spec.schedule.hours_of_day = vec![hours.to_owned()]);
        }
        Action::Grace(text) => {
            simulation.edit(|sm| sm.spec.graceful_shutdown_timeout = text.into());
        }
        Action::Drain(text) => {
            simulation.edit(|sm| sm.spec.node_drain_timeout = text.into());
        }
        Action::Edit(port) => simulation.edit(|sm| {
            let spec = &mut sm.spec.infrastructure_spec.spec;
            spec.insert("port".to_owned(), json!(port));
        }),
        Action::Zone(zone) => {
            simulation.edit(|sm| zone.clone_into(&mut sm.spec.schedule.timezone));
        }
        Action::PauseCluster(is_set) => {
            if let Some(cluster) = simulation.get_mut("Cluster") {
                cluster["spec"]["paused"] = json!(is_set);
            }
        }
        Action::TakeCluster => {
            simulation.objects.retain(|(kind, _), _| kind != "Cluster");
        }
        Action::GiveCluster => simulation.put(cluster(simulation.contract)),
        Action::DeleteMachine => {
            simulation.delete(&("Machine".to_owned(), NAME.to_owned()), None);
        }
        Action::AddPods => simulation.pods = vec![pod("a"), pod("b")],
        Action::HoldPods => simulation.budget_until = Some(at("2030-01-01T00:00:00Z")),
        Action::LetPodsGo => simulation.budget_until = None,
        Action::Access(which) => {
            let message = "why".to_owned();
            simulation.access = match which {
                0 => Access::Unreachable { message },
                1 => Access::KubeconfigMissing { message },
                2 => Access::Unauthorized { message },
                _ => Access::Connected,
            };
        }
        Action::Move(is_moving) => simulation.is_moving = is_moving,
        Action::Fail(failing) => simulation.failing = failing,
        Action::Crash(writes) => {
            simulation.writes_left = writes;
            simulation.settle(memory);
            simulation.writes_left = usize::MAX;
            *memory = Memory::default();
        }
        Action::Restart => *memory = Memory::default(),
        Action::LoseStatus => simulation.edit(|sm| sm.status = None),
        Action::DropFinalizer => simulation.edit(|sm| sm.metadata.finalizers = None),
    }
}

/// Ends all faults and obstacles.
fn calm(simulation: &mut Simulation, memory: &mut Memory) {
    for action in [
        Action::Kill(false),
        Action::Enable(true),
        Action::Zone("UTC"),
        Action::GiveCluster,
        Action::LetPodsGo,
        Action::Access(3),
        Action::Move(true),
        Action::Fail(None),
        Action::Grace("5m"),
        Action::Drain("5m"),
    ] {
        act(simulation, memory, action);
    }
}

fn hours_later(simulation: &Simulation, hours: i64) -> String {
    (simulation.now + jiff::SignedDuration::from_hours(hours)).to_string()
}

fn is_marked(node: &Value) -> bool {
    let annotations = &node["metadata"]["annotations"];
    annotations[name::CORDONED_ANNOTATION].is_string()
        || node["spec"]["unschedulable"] == true
}

fn actions() -> impl Strategy<Value = Vec<(Action, i64)>> {
    proptest::collection::vec((action(), 0..40_i64), 0..25)
}

/// Takes the actions, with some minutes after each.
fn run(contract: Contract, actions: Vec<(Action, i64)>) -> (Simulation, Memory) {
    let mut simulation = Simulation::new(contract, "2026-03-04T08:00:00Z");
    let mut memory = Memory::default();
    for (action, minutes) in actions {
        act(&mut simulation, &mut memory, action);
        let until = simulation.now + jiff::SignedDuration::from_mins(minutes);
        simulation.run_until(&mut memory, &until.to_string());
    }
    (simulation, memory)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn after_random_actions_a_wanted_machine_serves_and_an_unwanted_one_is_gone(
        contract in select(CONTRACTS.to_vec()),
        actions in actions(),
    ) {
        let (mut simulation, mut memory) = run(contract, actions);
        calm(&mut simulation, &mut memory);
        act(&mut simulation, &mut memory, Action::Hours("0-23"));
        let until = hours_later(&simulation, 3);
        simulation.run_until(&mut memory, &until);
        prop_assert_eq!(simulation.status().phase, Some(Phase::Active), "{:#?}", simulation.reported);
        prop_assert_eq!(simulation.status().shutdown, None);
        prop_assert!(!is_marked(simulation.get("Node").unwrap()));
        let annotations = &simulation.get("Machine").unwrap()["metadata"]["annotations"];
        prop_assert!(annotations[key::EXCLUDE_NODE_DRAINING].is_null());
        prop_assert!(annotations[key::EXCLUDE_VOLUME_DETACH].is_null());
        act(&mut simulation, &mut memory, Action::Hours("3"));
        simulation.now = at("2026-03-05T04:00:00Z").max(simulation.now);
        let until = hours_later(&simulation, 1);
        simulation.run_until(&mut memory, &until);
        prop_assert_eq!(simulation.status().phase, Some(Phase::Inactive), "{:#?}", simulation.reported);
        prop_assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
        simulation.delete_sm();
        simulation.settle(&mut memory);
        prop_assert!(simulation.sm.is_none());
    }
    #[test]
    fn after_random_actions_a_deleted_object_leaves_nothing_behind(
        contract in select(CONTRACTS.to_vec()), actions in actions(), is_killed in any::<bool>(),
    ) {
        let (mut simulation, mut memory) = run(contract, actions);
        let is_held = simulation.sm().metadata.finalizers.is_some();
        let before = simulation.kinds().join(" ");
        simulation.delete_sm();
        if !is_held {
            simulation.settle(&mut memory);
            prop_assert!(simulation.sm.is_none());
            prop_assert_eq!(simulation.kinds().join(" "), before);
            return Ok(());
        }
        calm(&mut simulation, &mut memory);
        simulation.edit(|sm| sm.spec.kill_switch = is_killed);
        let until = hours_later(&simulation, 1);
        simulation.run_until(&mut memory, &until);
        prop_assert!(simulation.sm.is_none(), "{:#?}", simulation.reported);
        prop_assert!(simulation.kinds().is_empty(), "{:?}", simulation.kinds());
    }
}
