//! A model of the shipped planner in a small environment, searched exhaustively in every order of
//! events.
//!
//! The environment contains one ScheduledMachine, the objects created for it, and its Node with one
//! pod. Two caches of the operator lag independently; one write is in flight at a time; requests
//! fail or their responses are lost; the operator crashes; the user edits the spec; other clients
//! change objects; Cluster API takes its next step, or never does; the clock crosses edges of the
//! schedule. How much of each may happen is [`FaultBudget`]: within that, every order is tried.

mod changes;
mod cluster_api;
mod end;
mod environment;
mod following;
mod hosts;
mod interner;
mod invariant;
mod operator;
mod schedule_at;
mod server;
mod state;

use std::sync::Arc;

use stateright::{Checker as _, HasDiscoveries, Model as _, Property};
use strum::{IntoStaticStr, VariantArray};

use changes::{Edit, ExternalChange};
pub(crate) use environment::Environment;
use hosts::{Contest, Hosts};
use invariant::Invariant;
use operator::RequestOutcome;
pub(crate) use state::FaultBudget;
use state::{Kind, Pod, State};

/// One step of any component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The operator observes and plans, and prepares its writes.
    Pass,
    /// Its next write reaches the server, or does not.
    Send(RequestOutcome),
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
    Meddle(ExternalChange),
}

/// The model: the environment, the part where it begins, and how much may go wrong in it.
pub(crate) struct Model {
    environment: Arc<Environment>,
    part: Part,
    budget: FaultBudget,
}

/// A part of the day that is searched completely. It begins in the state that an undisturbed day
/// reaches by then, and from its states the rest of the day is followed without faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub(crate) enum Part {
    /// From before the window to a machine in service.
    #[strum(to_string = "opening")]
    Opening,
    /// A machine in service while its window is open.
    #[strum(to_string = "serving")]
    Serving,
    /// From a machine in service over the end of the window to half an hour after it.
    #[strum(to_string = "closing")]
    Closing,
    /// The opening of a machine that is created a lead time before its window.
    #[strum(to_string = "lead")]
    LeadTime,
    /// The closing of a machine with the end policy CompleteByWindowEnd.
    #[strum(to_string = "early")]
    EarlyEnd,
    /// A machine in audit mode: from before the window to half an hour after it, one that was in
    /// service when it changed to audit mode although admission rejects that, and one that changed
    /// after its window.
    #[strum(to_string = "audit")]
    Audited,
    /// A machine whose host its owner has taken back: the owner leaves and comes again. It may return,
    /// or has returned today as often as it may.
    #[strum(to_string = "lent")]
    Lent,
}

impl Part {
    /// The first and the last instant.
    fn instants(self) -> (u8, u8) {
        match self {
            Self::Opening | Self::LeadTime => (0, 1),
            Self::Serving | Self::Lent => (1, 2),
            Self::Closing => (5, 9),
            Self::EarlyEnd => (4, 7),
            Self::Audited => (0, 9),
        }
    }

    /// Whether the machine has a lead time and the end policy CompleteByWindowEnd.
    fn is_timed(self) -> bool {
        matches!(self, Self::LeadTime | Self::EarlyEnd)
    }
}

impl Model {
    /// A part of the day in which at most `budget` goes wrong.
    pub(crate) fn new(
        environment: &Arc<Environment>,
        part: Part,
        budget: FaultBudget,
    ) -> Self {
        Self {
            environment: Arc::clone(environment),
            part,
            budget,
        }
    }
}

impl stateright::Model for Model {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let first = self.environment.first(self.part.is_timed(), self.budget);
        if self.part == Part::Lent {
            let first = self.environment.lent(first);
            let begin = self.part.instants().0;
            let serving = self.environment.undisturbed(begin, first);
            let away = self.environment.reclaimed(begin, serving);
            return vec![self.environment.returned(away.clone()), away];
        }
        if self.part == Part::Audited {
            let at = |now| self.environment.undisturbed(now, first.clone());
            return [first.clone(), at(5), at(9)]
                .map(|state| self.environment.audited(state))
                .to_vec();
        }
        // The lead time has begun before the first instant.
        let first = if self.part == Part::LeadTime {
            first
        } else {
            self.environment.undisturbed(self.part.instants().0, first)
        };
        vec![first]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.pending.is_some() {
            steps.push(Step::Send(RequestOutcome::Answered));
            if state.budget.errors > 0 {
                steps.extend([
                    Step::Send(RequestOutcome::Refused),
                    Step::Send(RequestOutcome::Lost),
                ]);
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
        if state.budget.crashes > 0 {
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
        if state.budget.edits > 0 {
            steps.extend(Edit::ALL.map(Step::Edit));
        }
        if state.budget.external_changes > 0 {
            let all: &[ExternalChange] = match self.part {
                Part::Lent => &ExternalChange::OF_OWNER,
                _ => &ExternalChange::ALL,
            };
            steps.extend(all.iter().copied().map(Step::Meddle));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let environment = &self.environment;
        match step {
            Step::Pass => {
                environment.run_operator(&mut state);
            }
            Step::Send(outcome) => {
                environment.apply_cached(&mut state, step, |state| {
                    environment.send(state, outcome);
                    true
                });
                if outcome != RequestOutcome::Answered {
                    state.budget.errors -= 1;
                }
            }
            Step::SeeMachine => state.cached_sm = state.sm,
            Step::SeeObjects => {
                state.cached = state.managed();
                state.cached_override = state.overriding;
            }
            Step::Crash => {
                environment.crash(&mut state);
                state.catch_up();
                state.budget.crashes -= 1;
            }
            Step::HandOver => {
                environment.crash(&mut state);
                state.is_cache_behind = false;
                state.budget.crashes -= 1;
            }
            Step::Reconcile => {
                environment
                    .apply_cached(&mut state, step, |state| environment.reconcile(state));
            }
            Step::EndPod => {
                Environment::end_pod(&mut state);
            }
            Step::Unguard => state.is_guarded = false,
            Step::Wait => state.now += 1,
            Step::Edit(edit) => {
                environment.apply_cached(&mut state, step, |state| {
                    environment.edit(state, edit);
                    true
                });
                state.budget.edits -= 1;
            }
            Step::Meddle(external_change) => {
                let apply_external_change = |state: &mut State| {
                    environment.apply_external_change(state, external_change)
                };
                if !environment.apply_cached(&mut state, step, apply_external_change) {
                    return None;
                }
                state.budget.external_changes -= 1;
            }
        }
        if state.is_caught_up() {
            state.is_cache_behind = false;
        }
        if state.at(Kind::Node).is_none() {
            state.pod = Pod::None;
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn keeps<const N: usize>(_: &Model, state: &State) -> bool {
            state.broken != Some(Invariant::VARIANTS[N])
        }
        fn ends(model: &Model, state: &State) -> bool {
            model.environment.reaches_desired_state(state)
        }
        macro_rules! invariants {
            ($($place:literal)*) => {
                vec![
                    $(Property::always(Invariant::VARIANTS[$place].into(), keeps::<$place>),)*
                    Property::always(ENDS, ends),
                ]
            };
        }
        invariants!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38)
    }
}

/// The law of liveness.
const ENDS: &str = "L1-L8 every state leads to the desired end state in time";

/// The result of a search.
pub(crate) struct SearchResult {
    pub(crate) unique: usize,
    pub(crate) generated: usize,
    pub(crate) depth: usize,
    /// Each violated law, and the shortest sequence of steps to it.
    pub(crate) broken: Vec<(&'static str, Vec<String>)>,
}

/// How many laws are checked, in one model or the other.
pub(crate) fn invariant_count() -> usize {
    let budget = FaultBudget::default();
    let day = Model::new(&Arc::default(), Part::Opening, budget).properties();
    day.len() + Hosts::new(Contest::TwoForOne, budget).properties().len()
}

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A part of the day of one machine.
    Day(Part),
    /// Machines that compete for hosts.
    Hosts(Contest),
}

impl Subject {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Day(part) => part.into(),
            Self::Hosts(contest) => contest.into(),
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        let days = Part::VARIANTS.iter().copied().map(Self::Day);
        days.chain(Contest::VARIANTS.iter().copied().map(Self::Hosts))
    }
}

/// What is searched, and how much may go wrong in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchScope {
    pub(crate) subject: Subject,
    pub(crate) budget: FaultBudget,
}

impl std::fmt::Display for SearchScope {
    /// The subject's name, and how many errors, crashes, edits and changes by others: the format
    /// that `from_str` parses.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FaultBudget {
            errors,
            crashes,
            edits,
            external_changes,
        } = self.budget;
        let subject = self.subject.name();
        write!(
            out,
            "{subject} {errors} {crashes} {edits} {external_changes}"
        )
    }
}

impl std::str::FromStr for SearchScope {
    type Err = String;

    /// Words after the first five are ignored.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let subject = Subject::all().find(|subject| subject.name() == name);
        let subject = subject.ok_or_else(|| {
            let known: Vec<&str> = Subject::all().map(Subject::name).collect();
            format!("{name:?} is not a part: use one of {}", known.join(", "))
        })?;
        let mut budget = [0; 4];
        for number in &mut budget {
            let word = words.next().unwrap_or_default();
            *number = word.parse().map_err(|_| {
                format!("{word:?} is not a number; expected the numbers of errors, crashes, edits and interferences")
            })?;
        }
        Ok(scope(subject, budget))
    }
}

impl SearchScope {
    /// The stored results of a search.
    pub(crate) fn to_value(&self, result: &SearchResult) -> serde_json::Value {
        serde_json::json!({
            "part": self.subject.name(),
            "errors": self.budget.errors,
            "crashes": self.budget.crashes,
            "edits": self.budget.edits,
            "meddling": self.budget.external_changes,
            "states": result.unique,
            "generated": result.generated,
            "depth": result.depth,
        })
    }
}

const fn scope(
    subject: Subject,
    [errors, crashes, edits, external_changes]: [u8; 4],
) -> SearchScope {
    SearchScope {
        subject,
        budget: FaultBudget {
            errors,
            crashes,
            edits,
            external_changes,
        },
    }
}

const fn day(part: Part, budget: [u8; 4]) -> SearchScope {
    scope(Subject::Day(part), budget)
}

const fn hosts(contest: Contest, budget: [u8; 4]) -> SearchScope {
    scope(Subject::Hosts(contest), budget)
}

/// The scopes that are searched completely on every change, the smallest first.
pub(crate) const USUAL: &[SearchScope] = &[
    hosts(Contest::TwoForOne, [0, 1, 0, 0]),
    hosts(Contest::TwoForOne, [0, 0, 0, 1]),
    hosts(Contest::TwoForOne, [0, 0, 1, 0]),
    hosts(Contest::TwoForTwo, [0, 0, 0, 0]),
    hosts(Contest::ThreeForOne, [0, 0, 0, 0]),
    day(Part::Opening, [1, 1, 0, 0]),
    day(Part::Serving, [0, 0, 1, 0]),
    day(Part::Serving, [0, 0, 0, 1]),
    day(Part::Opening, [0, 0, 0, 1]),
    day(Part::Opening, [0, 0, 1, 0]),
    day(Part::Closing, [0, 0, 0, 0]),
    day(Part::LeadTime, [1, 1, 0, 0]),
    day(Part::EarlyEnd, [0, 0, 0, 0]),
    day(Part::Audited, [0, 1, 0, 0]),
    day(Part::Audited, [0, 0, 1, 0]),
    day(Part::Lent, [0, 0, 0, 5]),
    day(Part::Lent, [0, 0, 1, 2]),
    day(Part::Lent, [1, 1, 0, 2]),
    day(Part::Serving, [1, 1, 1, 0]),
    day(Part::Serving, [0, 0, 2, 0]),
    day(Part::Opening, [0, 1, 1, 0]),
    day(Part::Closing, [0, 1, 0, 0]),
    day(Part::Closing, [1, 0, 0, 0]),
    day(Part::Serving, [1, 1, 0, 1]),
    day(Part::Opening, [1, 1, 0, 1]),
];

/// The scopes that are searched in addition when there is time.
pub(crate) const DEEP: &[SearchScope] = &[
    day(Part::Closing, [0, 0, 1, 0]),
    day(Part::Closing, [0, 0, 0, 1]),
    day(Part::Opening, [1, 1, 1, 0]),
    day(Part::Serving, [0, 0, 1, 1]),
    day(Part::Closing, [1, 1, 0, 0]),
    day(Part::Closing, [1, 0, 0, 1]),
    day(Part::Closing, [0, 1, 1, 0]),
    day(Part::Closing, [0, 0, 1, 1]),
    day(Part::Serving, [0, 0, 0, 2]),
    day(Part::LeadTime, [0, 0, 1, 0]),
    day(Part::EarlyEnd, [0, 0, 1, 0]),
    day(Part::EarlyEnd, [1, 1, 0, 0]),
    day(Part::Audited, [0, 0, 0, 1]),
    hosts(Contest::TwoForOne, [0, 1, 1, 1]),
    hosts(Contest::TwoForTwo, [0, 1, 0, 0]),
    hosts(Contest::TwoForTwo, [0, 0, 1, 0]),
    hosts(Contest::ThreeForTwo, [0, 0, 0, 0]),
];

/// The extent of a search.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SearchLimits {
    /// Ends after about so many states, counted each time they are reached.
    pub(crate) limit: Option<usize>,
    /// Ends at the first violation.
    pub(crate) ends_at_first: bool,
    /// How many threads search; `None` for as many as there are cores.
    pub(crate) threads: Option<usize>,
}

/// Searches every state that can be reached in a scope, within `limits`. The effects of the
/// steps in `environment` are computed once, for all searches in it.
pub(crate) fn search(
    environment: &Arc<Environment>,
    scope: &SearchScope,
    limits: SearchLimits,
) -> SearchResult {
    match scope.subject {
        Subject::Day(part) => {
            let model = Model::new(environment, part, scope.budget);
            check(model, limits, |model, last| {
                model.environment.describe_end(last)
            })
        }
        Subject::Hosts(contest) => {
            let model = Hosts::new(contest, scope.budget);
            check(model, limits, |model, last| {
                model.environment.describe_end(last)
            })
        }
    }
}

/// Searches a model. `describe_end` says what a state leads to.
fn check<M>(
    model: M,
    limits: SearchLimits,
    describe_end: impl Fn(&M, &M::State) -> Vec<String>,
) -> SearchResult
where
    M: stateright::Model + Send + Sync + 'static,
    M::State: Clone + std::fmt::Debug + std::hash::Hash + PartialEq + Send + Sync,
    M::Action: std::fmt::Debug + Clone + PartialEq,
{
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut checker = model
        .checker()
        .threads(limits.threads.unwrap_or_else(cores));
    if let Some(limit) = limits.limit {
        checker = checker.target_state_count(limit);
    }
    if limits.ends_at_first {
        checker = checker.finish_when(HasDiscoveries::Any);
    }
    let checker = checker.spawn_bfs().join();
    let broken = checker
        .discoveries()
        .into_iter()
        .map(|(invariant, path)| {
            let last = path.last_state().clone();
            let steps = path.into_actions();
            let steps = steps.iter().map(|step| format!("{step:?}"));
            let end = if [ENDS, hosts::ENDS].contains(&invariant) {
                describe_end(checker.model(), &last)
            } else {
                Vec::new()
            };
            (invariant, steps.chain(end).collect())
        })
        .collect();
    SearchResult {
        unique: checker.unique_state_count(),
        generated: checker.state_count(),
        depth: checker.max_depth(),
        broken,
    }
}
