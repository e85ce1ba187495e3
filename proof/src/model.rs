//! A model of the shipped planner in a small world, searched exhaustively in every order of
//! events.
//!
//! The world contains one ScheduledMachine, the objects created for it, and its Node with one
//! pod. Two caches of the operator lag independently; one write is in flight at a time; requests
//! fail or their responses are lost; the operator crashes; the user edits the spec; other clients
//! change objects; Cluster API takes its next step, or never does; the clock crosses edges of the
//! schedule. How much of each may happen is [`Left`]: within that, every order is tried.

mod cluster_api;
mod end;
mod law;
mod operator;
mod people;
mod pool;
mod server;
mod state;
mod wanted;
mod world;

use std::sync::Arc;

use stateright::{Checker as _, HasDiscoveries, Model as _, Property};

use law::Law;
use operator::Fate;
use people::{Edit, Meddling};
pub(crate) use state::Left;
use state::{Kind, Pod, State};
pub(crate) use world::World;

/// One step of any component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The operator observes and plans, and prepares its writes.
    Pass,
    /// Its next write reaches the server, or does not.
    Send(Fate),
    /// Its cache of ScheduledMachines catches up.
    SeeMachine,
    /// Its cache of all other objects catches up.
    SeeObjects,
    /// It crashes and restarts.
    Crash,
    /// Another replica takes over. Its caches lag in the same way, and its memory has none of the
    /// writes.
    HandOver,
    /// Cluster API and the provider take their next step.
    Reconcile,
    /// The evicted pod terminates.
    EndPod,
    /// The disruption budget allows evictions.
    Unguard,
    /// The clock advances to the next instant.
    Wait,
    Edit(Edit),
    Meddle(Meddling),
}

/// The model: the world, the part where it begins, and how much may go wrong in it.
pub(crate) struct Model {
    world: Arc<World>,
    part: Part,
    left: Left,
}

/// A part of the day that is searched completely. It begins in the state that an undisturbed day
/// reaches by then, and from its states the rest of the day is followed without faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// From before the window to a machine in service.
    Opening,
    /// A machine in service while its window is open.
    Serving,
    /// From a machine in service over the end of the window to half an hour after it.
    Closing,
    /// The opening of a machine that is created a lead time before its window.
    LeadTime,
    /// The closing of a machine with the end policy CompleteByWindowEnd.
    EarlyEnd,
}

impl Part {
    /// The part's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Opening => "opening",
            Self::Serving => "serving",
            Self::Closing => "closing",
            Self::LeadTime => "lead",
            Self::EarlyEnd => "early",
        }
    }

    /// The first and the last instant.
    fn instants(self) -> (u8, u8) {
        match self {
            Self::Opening | Self::LeadTime => (0, 1),
            Self::Serving => (1, 2),
            Self::Closing => (5, 9),
            Self::EarlyEnd => (4, 7),
        }
    }

    /// Whether the machine has a lead time and the end policy CompleteByWindowEnd.
    fn is_timed(self) -> bool {
        matches!(self, Self::LeadTime | Self::EarlyEnd)
    }
}

impl Model {
    /// A part of the day in which at most `left` goes wrong.
    pub(crate) fn new(world: &Arc<World>, part: Part, left: Left) -> Self {
        Self {
            world: Arc::clone(world),
            part,
            left,
        }
    }
}

impl stateright::Model for Model {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let first = self.world.first(self.part.is_timed(), self.left);
        // The lead time has begun before the first instant.
        let first = if self.part == Part::LeadTime {
            first
        } else {
            self.world.undisturbed(self.part.instants().0, first)
        };
        vec![first]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.flight.is_some() {
            steps.push(Step::Send(Fate::Answered));
            if state.left.errors > 0 {
                steps.extend([Step::Send(Fate::Refused), Step::Send(Fate::Lost)]);
            }
        } else {
            steps.push(Step::Pass);
        }
        if state.cached_sm != state.sm {
            steps.push(Step::SeeMachine);
        }
        if state.cached != state.managed() || state.cached_override != state.overriding {
            steps.push(Step::SeeObjects);
        }
        if state.left.crashes > 0 {
            steps.extend([Step::Crash, Step::HandOver]);
        }
        steps.push(Step::Reconcile);
        if state.pod == Pod::Leaving {
            steps.push(Step::EndPod);
        }
        if state.is_guarded && state.pod == Pod::Running {
            steps.push(Step::Unguard);
        }
        if state.now < self.part.instants().1 {
            steps.push(Step::Wait);
        }
        if state.left.edits > 0 {
            steps.extend(Edit::ALL.map(Step::Edit));
        }
        if state.left.meddling > 0 {
            steps.extend(Meddling::ALL.map(Step::Meddle));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let world = &self.world;
        match step {
            Step::Pass => {
                world.run_operator(&mut state);
            }
            Step::Send(fate) => {
                world.once(&mut state, step, |state| {
                    world.send(state, fate);
                    true
                });
                if fate != Fate::Answered {
                    state.left.errors -= 1;
                }
            }
            Step::SeeMachine => state.cached_sm = state.sm,
            Step::SeeObjects => {
                state.cached = state.managed();
                state.cached_override = state.overriding;
            }
            Step::Crash => {
                world.crash(&mut state);
                state.catch_up();
                state.left.crashes -= 1;
            }
            Step::HandOver => {
                world.crash(&mut state);
                state.owes = false;
                state.left.crashes -= 1;
            }
            Step::Reconcile => {
                world.once(&mut state, step, |state| world.reconcile(state));
            }
            Step::EndPod => {
                World::end_pod(&mut state);
            }
            Step::Unguard => state.is_guarded = false,
            Step::Wait => state.now += 1,
            Step::Edit(edit) => {
                world.once(&mut state, step, |state| {
                    world.edit(state, edit);
                    true
                });
                state.left.edits -= 1;
            }
            Step::Meddle(meddling) => {
                let meddle = |state: &mut State| world.meddle(state, meddling);
                if !world.once(&mut state, step, meddle) {
                    return None;
                }
                state.left.meddling -= 1;
            }
        }
        if state.is_caught_up() {
            state.owes = false;
        }
        if state.at(Kind::Node).is_none() {
            state.pod = Pod::None;
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn keeps<const N: usize>(_: &Model, state: &State) -> bool {
            state.broken != Some(Law::ALL[N])
        }
        fn ends(model: &Model, state: &State) -> bool {
            model.world.ends_well(state)
        }
        macro_rules! laws {
            ($($place:literal)*) => {
                vec![
                    $(Property::always(Law::ALL[$place].text(), keeps::<$place>),)*
                    Property::always(ENDS, ends),
                ]
            };
        }
        laws!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36)
    }
}

/// The law of liveness.
const ENDS: &str = "L1-L8 every state leads to the desired end state in time";

/// The result of a search.
pub(crate) struct Found {
    pub(crate) unique: usize,
    pub(crate) generated: usize,
    pub(crate) depth: usize,
    /// Each violated law, and the shortest sequence of steps to it.
    pub(crate) broken: Vec<(&'static str, Vec<String>)>,
}

/// How many laws are checked in each state.
pub(crate) fn laws() -> usize {
    Model::new(&Arc::default(), Part::Opening, Left::default())
        .properties()
        .len()
}

/// A part of the day, and how much may go wrong in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Campaign {
    pub(crate) part: Part,
    pub(crate) left: Left,
}

impl std::fmt::Display for Campaign {
    /// The part's name, and how many errors, crashes, edits and changes by others: the format
    /// that `from_str` parses.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Left {
            errors,
            crashes,
            edits,
            meddling,
        } = self.left;
        let part = self.part.name();
        write!(out, "{part} {errors} {crashes} {edits} {meddling}")
    }
}

impl std::str::FromStr for Campaign {
    type Err = String;

    /// Words after the first five are ignored.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let all = [
            Part::Opening,
            Part::Serving,
            Part::Closing,
            Part::LeadTime,
            Part::EarlyEnd,
        ];
        let part = all.into_iter().find(|part| part.name() == name);
        let part = part.ok_or_else(|| {
            format!(
                "{name:?} is not a part: use opening, serving, closing, lead or early"
            )
        })?;
        let mut left = [0; 4];
        for number in &mut left {
            let word = words.next().unwrap_or_default();
            *number = word.parse().map_err(|_| {
                format!("{word:?} is not a number; expected the numbers of errors, crashes, edits and interferences")
            })?;
        }
        Ok(campaign(part, left))
    }
}

impl Campaign {
    /// The stored results of a campaign.
    pub(crate) fn to_value(&self, found: &Found) -> serde_json::Value {
        serde_json::json!({
            "part": self.part.name(),
            "errors": self.left.errors,
            "crashes": self.left.crashes,
            "edits": self.left.edits,
            "meddling": self.left.meddling,
            "states": found.unique,
            "generated": found.generated,
            "depth": found.depth,
        })
    }
}

const fn campaign(part: Part, [errors, crashes, edits, meddling]: [u8; 4]) -> Campaign {
    Campaign {
        part,
        left: Left {
            errors,
            crashes,
            edits,
            meddling,
        },
    }
}

/// The campaigns that are searched completely on every change, the smallest first.
pub(crate) const USUAL: &[Campaign] = &[
    campaign(Part::Opening, [1, 1, 0, 0]),
    campaign(Part::Serving, [0, 0, 1, 0]),
    campaign(Part::Serving, [0, 0, 0, 1]),
    campaign(Part::Opening, [0, 0, 0, 1]),
    campaign(Part::Opening, [0, 0, 1, 0]),
    campaign(Part::Closing, [0, 0, 0, 0]),
    campaign(Part::LeadTime, [1, 1, 0, 0]),
    campaign(Part::EarlyEnd, [0, 0, 0, 0]),
    campaign(Part::Serving, [1, 1, 1, 0]),
    campaign(Part::Serving, [0, 0, 2, 0]),
    campaign(Part::Opening, [0, 1, 1, 0]),
    campaign(Part::Closing, [0, 1, 0, 0]),
    campaign(Part::Closing, [1, 0, 0, 0]),
    campaign(Part::Serving, [1, 1, 0, 1]),
    campaign(Part::Opening, [1, 1, 0, 1]),
];

/// The campaigns that are searched in addition when there is time.
pub(crate) const DEEP: &[Campaign] = &[
    campaign(Part::Closing, [0, 0, 1, 0]),
    campaign(Part::Closing, [0, 0, 0, 1]),
    campaign(Part::Opening, [1, 1, 1, 0]),
    campaign(Part::Serving, [0, 0, 1, 1]),
    campaign(Part::Closing, [1, 1, 0, 0]),
    campaign(Part::Closing, [1, 0, 0, 1]),
    campaign(Part::Closing, [0, 1, 1, 0]),
    campaign(Part::Closing, [0, 0, 1, 1]),
    campaign(Part::Serving, [0, 0, 0, 2]),
    campaign(Part::LeadTime, [0, 0, 1, 0]),
    campaign(Part::EarlyEnd, [0, 0, 1, 0]),
    campaign(Part::EarlyEnd, [1, 1, 0, 0]),
];

/// The extent of a search.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// Ends after about so many states, counted each time they are reached.
    pub(crate) limit: Option<usize>,
    /// Ends at the first violation.
    pub(crate) ends_at_first: bool,
    /// How many threads search; `None` for as many as there are cores.
    pub(crate) threads: Option<usize>,
}

/// Searches every state that can be reached in a campaign, within `extent`. The effects of the
/// steps in `world` are computed once, for all searches in it.
pub(crate) fn search(world: &Arc<World>, campaign: &Campaign, extent: Extent) -> Found {
    let model = Model::new(world, campaign.part, campaign.left);
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut checker = model
        .checker()
        .threads(extent.threads.unwrap_or_else(cores));
    if let Some(limit) = extent.limit {
        checker = checker.target_state_count(limit);
    }
    if extent.ends_at_first {
        checker = checker.finish_when(HasDiscoveries::Any);
    }
    let checker = checker.spawn_bfs().join();
    let broken = checker
        .discoveries()
        .into_iter()
        .map(|(law, path)| {
            let last = path.last_state().clone();
            let steps = path.into_actions();
            let steps = steps.iter().map(|step| format!("{step:?}"));
            let end = if law == ENDS {
                checker.model().world.describe_end(&last)
            } else {
                Vec::new()
            };
            (law, steps.chain(end).collect())
        })
        .collect();
    Found {
        unique: checker.unique_state_count(),
        generated: checker.state_count(),
        depth: checker.max_depth(),
        broken,
    }
}
