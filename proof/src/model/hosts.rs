//! A smaller model of machines that compete for the hosts of one class, searched exhaustively in every
//! order of events.
//!
//! The environment contains a ScheduledMachineClass, two or three ScheduledMachines of it with different
//! priorities, the objects created for each, and the Leases of the hosts. One cache of Leases lags. A
//! machine that waits may be offered any host that the caches do not show as taken, whoever's turn it is:
//! what is safe then is safe with every order of turns. The operator crashes; another replica takes over
//! while a write of the former one is still on its way; the class and the machines are edited and
//! deleted; hosts are reclaimed; the window closes. One machine with all its faults, what the operator
//! remembers of it, its Node and its pods are in the model beside this one.

mod end;
mod operator;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::{PreparedClass, ScheduledMachine, ScheduledMachineClassSpec, name};
use jiff::Timestamp;
use serde_json::{Value, json};
use stateright::Property;
use strum::{IntoStaticStr, VariantArray};

use super::following::Settled;
use super::interner::{Id, Interner, Memo};
use super::state::{FaultBudget, Kind};
use operator::{PendingWrites, PlanInput, PlanOutcome};

/// The instants that the clock steps through: before a window, in it, at its end and after it, and the
/// same on the next day with a window.
const INSTANTS: [&str; 8] = [
    "2026-03-06T08:59:30Z",
    "2026-03-06T09:00:00Z",
    "2026-03-06T18:00:00Z",
    "2026-03-06T18:30:00Z",
    "2026-03-09T09:00:00Z",
    "2026-03-09T09:30:00Z",
    "2026-03-09T18:00:00Z",
    "2026-03-09T18:30:00Z",
];

/// The last instant that is searched; the rest is followed without faults.
const LAST_SEARCHED: u8 = 2;

/// The instants at which all that the last edge requires is done.
const SETTLED: [u8; 5] = [1, 3, 4, 5, 7];

/// The name of the class.
const CLASS: &str = "desks";

/// The hosts, in the order in which they are taken.
const HOSTS: [&str; 2] = ["desk-1", "desk-2"];

/// The names of the ScheduledMachines, from the highest priority to the lowest.
const NAMES: [&str; 3] = ["first", "second", "third"];

/// How many objects a machine has, of the first kinds.
const CREATED: usize = 3;

/// How many ScheduledMachines want how many hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub(crate) enum Contest {
    #[strum(to_string = "2-for-1")]
    TwoForOne,
    #[strum(to_string = "2-for-2")]
    TwoForTwo,
    #[strum(to_string = "3-for-1")]
    ThreeForOne,
    #[strum(to_string = "3-for-2")]
    ThreeForTwo,
}

impl Contest {
    fn machines(self) -> usize {
        match self {
            Self::TwoForOne | Self::TwoForTwo => 2,
            Self::ThreeForOne | Self::ThreeForTwo => 3,
        }
    }

    fn hosts(self) -> usize {
        match self {
            Self::TwoForOne | Self::ThreeForOne => 1,
            Self::TwoForTwo | Self::ThreeForTwo => 2,
        }
    }
}

/// A law about hosts, with its text. Checked at each write, when it reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
pub(crate) enum Law {
    #[strum(to_string = "H1 no two machines have objects on one host")]
    OneMachine,
    #[strum(to_string = "H2 nothing is created before its host is claimed and recorded")]
    Recorded,
    #[strum(to_string = "H3 a host is given back once all three objects are gone")]
    GivenBack,
    #[strum(
        to_string = "H4 a machine that exists loses its host to no edit of its class"
    )]
    Kept,
}

/// The law of liveness.
pub(crate) const ENDS: &str = "H5 a free host is taken by the highest priority that wants one, and each host is given back in time";

/// The Lease of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Lease {
    /// The number of the machine that holds it.
    holder: u8,
    /// The how manieth Lease of the host it is.
    uid: u8,
}

/// The Lease of each host.
type Leases = [Option<Lease>; HOSTS.len()];

/// The class on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Class {
    Whole,
    /// With the second host alone.
    Reduced,
    Deleted,
}

/// One of the machines, with what the operator keeps about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Competitor {
    sm: Option<Id>,
    objects: [Option<Id>; CREATED],
    /// How many objects of it there have been: their uids.
    created: u8,
    /// The host that it was offered, until the cache shows its claim.
    offered: Option<u8>,
    /// Whether the cache of Leases may lack a write for it.
    is_cache_behind: bool,
    /// The writes that the operator is about to send.
    pending: Option<Pending>,
}

/// The writes of a plan, and how many of them have been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Pending {
    plan: Id,
    sent: u8,
}

/// A write that a replica has sent before another one took over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LateWrite {
    machine: u8,
    pending: Pending,
}

/// One state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    now: u8,
    class: Class,
    machines: Vec<Competitor>,
    leases: Leases,
    /// The operator's cache of Leases.
    cached_leases: Leases,
    /// How many Leases of each host there have been.
    lease_counts: [u8; HOSTS.len()],
    late: Option<LateWrite>,
    budget: FaultBudget,
    broken: Option<Law>,
}

/// An edit of the class, or of the machine with that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Edit {
    RemoveHost,
    DeleteClass,
    Kill(u8),
    Delete(u8),
}

/// One step of any component. Machines and hosts are given by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The operator observes and plans, and prepares its writes. If the machine waits for a host, it
    /// is offered this one, if any.
    Pass(u8, Option<u8>),
    /// Its next write for a machine reaches the server.
    Send(u8),
    /// Its cache of Leases catches up.
    SeeLeases,
    /// It crashes and restarts.
    Crash,
    /// Another replica takes over; the next write for this machine is on its way.
    HandOver(u8),
    /// That write reaches the server.
    Arrive,
    /// Cluster API and the provider take their next step for a machine.
    Reconcile(u8),
    /// The clock advances to the next instant.
    Wait,
    Edit(Edit),
    /// The owner of a machine's host takes it back.
    Reclaim(u8),
}

/// Shared by all states: the objects that any of them contains, and the planner's answers.
pub(crate) struct Environment {
    classes: [Option<PreparedClass>; 3],
    objects: Interner<Value>,
    machines: Interner<ScheduledMachine>,
    pending_writes: Interner<PendingWrites>,
    plan_outcomes: Memo<PlanInput, PlanOutcome>,
    /// The ScheduledMachine with the status that a plan writes.
    reported: Memo<Id, Id>,
    settled: Settled,
}

/// The model.
pub(crate) struct Hosts {
    contest: Contest,
    budget: FaultBudget,
    pub(crate) environment: Arc<Environment>,
}

impl Hosts {
    pub(crate) fn new(contest: Contest, budget: FaultBudget) -> Self {
        let environment = Arc::new(Environment::new(contest.hosts()));
        Self {
            contest,
            budget,
            environment,
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u8> + use<> {
        (0..self.contest.machines()).filter_map(|at| u8::try_from(at).ok())
    }
}

impl stateright::Model for Hosts {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let first = self.environment.first(self.contest.machines());
        let idle = self.environment.rested(first);
        vec![State {
            budget: self.budget,
            ..idle
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for at in self.numbers() {
            let machine = &state.machines[usize::from(at)];
            if machine.pending.is_some() {
                steps.push(Step::Send(at));
                if state.budget.crashes > 0 && state.late.is_none() {
                    steps.push(Step::HandOver(at));
                }
            } else if machine.sm.is_some() {
                steps.push(Step::Pass(at, None));
                let free = self.environment.free_hosts(state, at);
                steps.extend(free.map(|host| Step::Pass(at, Some(host))));
            }
            steps.push(Step::Reconcile(at));
            if state.budget.external_changes > 0 {
                steps.push(Step::Reclaim(at));
            }
            if state.budget.edits > 0 {
                let edits = [Edit::Kill(at), Edit::Delete(at)];
                steps.extend(edits.map(Step::Edit));
            }
        }
        if state.budget.edits > 0 {
            let edits = [Edit::RemoveHost, Edit::DeleteClass];
            steps.extend(edits.map(Step::Edit));
        }
        if state.budget.crashes > 0 {
            steps.push(Step::Crash);
        }
        if state.late.is_some() {
            steps.push(Step::Arrive);
        }
        if state.cached_leases != state.leases {
            steps.push(Step::SeeLeases);
        }
        if state.now < LAST_SEARCHED {
            steps.push(Step::Wait);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let environment = &self.environment;
        match step {
            Step::Pass(at, offer) => {
                environment.pass(&mut state, at, offer).then_some(())?;
            }
            Step::Send(at) => environment.send(&mut state, at),
            Step::SeeLeases => state.see_leases(),
            Step::Crash => {
                state.restart();
                state.budget.crashes -= 1;
            }
            Step::HandOver(at) => {
                let pending = state.machines[usize::from(at)].pending?;
                state.restart();
                state.late = Some(LateWrite {
                    machine: at,
                    pending,
                });
                state.budget.crashes -= 1;
            }
            Step::Arrive => environment.arrive(&mut state),
            Step::Reconcile(at) => {
                environment.reconcile(&mut state, at);
            }
            Step::Wait => state.now += 1,
            Step::Edit(edit) => {
                environment.edit(&mut state, edit).then_some(())?;
                state.budget.edits -= 1;
            }
            Step::Reclaim(at) => {
                environment.reclaim(&mut state, at).then_some(())?;
                state.budget.external_changes -= 1;
            }
        }
        if environment.is_doubled(&state) {
            state.broken = Some(Law::OneMachine);
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn keeps<const N: usize>(_: &Hosts, state: &State) -> bool {
            state.broken != Some(Law::VARIANTS[N])
        }
        fn ends(model: &Hosts, state: &State) -> bool {
            model.environment.reaches_desired_state(state)
        }
        vec![
            Property::always(Law::VARIANTS[0].into(), keeps::<0>),
            Property::always(Law::VARIANTS[1].into(), keeps::<1>),
            Property::always(Law::VARIANTS[2].into(), keeps::<2>),
            Property::always(Law::VARIANTS[3].into(), keeps::<3>),
            Property::always(ENDS, ends),
        ]
    }
}

impl State {
    fn see_leases(&mut self) {
        self.cached_leases = self.leases;
        for machine in &mut self.machines {
            machine.is_cache_behind = false;
            machine.offered = None;
        }
    }

    /// The operator starts: it remembers nothing, and its caches are filled.
    fn restart(&mut self) {
        for machine in &mut self.machines {
            machine.pending = None;
        }
        self.see_leases();
    }

    fn now(&self) -> Timestamp {
        instant(self.now)
    }
}

/// The instant with this number; past the end, the last.
fn instant(number: u8) -> Timestamp {
    let text = INSTANTS[usize::from(number).min(INSTANTS.len() - 1)];
    text.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

impl Environment {
    fn new(hosts: usize) -> Self {
        // A class without hosts would make as many machines as there are.
        let whole = HOSTS.get(..hosts).unwrap_or(&HOSTS);
        Self {
            classes: [class(whole), class(&HOSTS[1..]), None],
            objects: Interner::default(),
            machines: Interner::default(),
            pending_writes: Interner::default(),
            plan_outcomes: Memo::default(),
            reported: Memo::default(),
            settled: Settled::default(),
        }
    }

    /// The ScheduledMachines as they are created, before a window.
    fn first(&self, machines: usize) -> State {
        let machine = |at: usize| Competitor {
            sm: scheduled_machine(at).map(|sm| self.machines.intern(sm)),
            objects: Default::default(),
            created: 0,
            offered: None,
            is_cache_behind: false,
            pending: None,
        };
        State {
            now: 0,
            class: Class::Whole,
            machines: (0..machines).map(machine).collect(),
            leases: Leases::default(),
            cached_leases: Leases::default(),
            lease_counts: Default::default(),
            late: None,
            budget: FaultBudget::default(),
            broken: None,
        }
    }

    fn class(&self, state: &State) -> Option<&PreparedClass> {
        self.classes[state.class as usize].as_ref()
    }

    /// A ScheduledMachine with what its class sets.
    fn resolved(&self, id: Id, class: Class) -> ScheduledMachine {
        let mut sm = (*self.machines.of(id)).clone();
        let class = self.classes[class as usize].as_ref();
        sm.spec.resolve(class, &BTreeMap::new());
        sm
    }

    fn get(&self, state: &State, at: u8, kind: Kind) -> Option<Value> {
        let id = state.machines[usize::from(at)].objects[kind as usize]?;
        Some((*self.objects.of(id)).clone())
    }
}

/// The class with these hosts.
fn class(hosts: &[&str]) -> Option<PreparedClass> {
    let hosts = hosts.iter().map(|host| {
        json!({"name": host, "infrastructure": {"address": format!("{host}.example")}})
    });
    let spec: Option<ScheduledMachineClassSpec> = serde_json::from_value(json!({
        "clusterNames": ["prod"],
        "bootstrapSpec": {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "K0sWorkerConfig",
            "spec": {},
        },
        "infrastructureSpec": {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine",
            "spec": { "port": 22 },
        },
        "hosts": hosts.collect::<Vec<_>>(),
    }))
    .ok();
    spec.map(PreparedClass::from)
}

/// The ScheduledMachine with this number.
fn scheduled_machine(at: usize) -> Option<ScheduledMachine> {
    let sm: Option<ScheduledMachine> = serde_json::from_value(json!({
        "apiVersion": name::API_VERSION,
        "kind": name::KIND,
        "metadata": {
            "name": NAMES.get(at)?, "namespace": "default",
            "uid": format!("sm-{at}"), "generation": 1,
        },
        "spec": {
            "priority": 90 - 10 * at,
            "schedule": { "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"] },
            "classRef": { "name": CLASS },
        },
    }))
    .ok();
    sm
}
