//! What to do next about one ScheduledMachine: pure, total, no clock and no client.
//!
//! [`plan`] is one function from everything that was seen to everything that is to be done:
//! guarded writes, the status, events, and when to ask again. It neither waits nor remembers.
//! The same facts at the same instant give the same plan, in the controller, in a test and in
//! `5spot explain`.
//!
//! # One reconcile
//! 1. Read the ScheduledMachine and its Machine; ask [`Locations::of`] where else to look, and
//!    collect the state in [`Observed`], from caches or live.
//! 2. [`Memory::observe`], then [`plan`].
//! 3. If the plan says [`confirm`](Plan::confirm), observe again, live (quorum reads), and plan
//!    again. A plan made from caches ends nothing: it reports what it sees, adds our finalizer, and
//!    creates what is on record if the [`precondition`](Plan::precondition) holds.
//! 4. Send the [`actions`](Plan::actions) in order and stop at the first that fails. A conflict
//!    (409, of whatever kind) is no failure: the objects have changed, start over with live reads.
//!    A 404 of a deletion, an eviction or a patch likewise asks for another read. An
//!    eviction that is refused (429) goes to [`Memory::refused`] and does not stop the list.
//!    Anything else goes to [`Memory::failed`]; plan once more, so that the status reports it.
//! 5. If all went well, [`Memory::succeeded`] and [`Memory::repeated`]; write the
//!    [`status`](Plan::status), guarded by the resourceVersion that was planned from, then
//!    [`Memory::status_written`], and publish the [`events`](Plan::events).
//! 6. If anything was written, start over at once. Else requeue for [`wake`](Plan::wake), or until
//!    one of the objects changes.
//!
//! After a failure (step 4) the second plan backs off from the failed step until it is due again,
//! and from what depends on it, so that the reconcile goes on at step 5 and ends.
//!
//! # Layout
//! - [`observed`]: the observed state. [`state`](observed::state) is everything that was read,
//!   `node` the workload cluster's part of it; [`location`](observed::location) says where to look;
//!   `subject` is the ScheduledMachine itself, `owned` its three objects and whose they are,
//!   `provider` what Cluster API and the providers report
//! - `decide`: the decisions. `resolve` makes the desired state of the raw spec, nothing else reads
//!   raw strings; `precedence` is the list of which the first match decides; `serve`, `shutdown`,
//!   `reclaim`, `drain`, `machine`, `taint` and `agent` are one decision each; `record` is what the
//!   status records of a machine before it is created
//! - [`act`]: actions. [`action`](act::action) and `write` are the requests;
//!   [`memory`](act::memory) is what is remembered of them between reconciles; `backoff` is what
//!   waits after a failure, `repeat` what waits because others undo it, `from_cache` what may be
//!   done on cached state
//! - [`status`]: the status and the Events: `conditions`, `phase` with `Ready`,
//!   [`event`](status::event); `debounce` delays reports of mere progress, `undrained` reports a
//!   drain that was cut off

#![deny(clippy::wildcard_enum_match_arm)]

pub mod act;
pub mod explain;
pub mod observed;
pub mod overrides;
pub mod status;

mod decide;

use fivespot_api::{ScheduledMachine, ScheduledMachineStatus, ShutdownReason};
use jiff::{SignedDuration, Timestamp};

pub use act::action::{Action, Call, Request, Side, Step, Target};
pub use act::memory::{Cause, Failure, Memory};
pub use decide::record::Precondition;
pub use explain::{Explanation, PrecedenceReport, explain};
pub use observed::location::Locations;
pub use observed::node::{AgentConfig, Node, NodeClaim, Pod, Taint};
pub use observed::state::{
    Access, Fact, Freshness, Lookup, Observed, ScheduleInputs, Specs, Unknown, Workload,
};
pub use overrides::{Matched, OverridePlan, plan_override};
pub use status::event::{Event, EventType};
pub use status::usage::usage_until;

use act::from_cache::{self, Confirmation};
use act::{backoff, memory, write};
use decide::case::{Basis, Case};
use decide::outcome::{Outcome, State};
use decide::precedence::{self, Decision};
use decide::{machine, reclaim, serve, shutdown, taint};
use status::{conditions, debounce, event, never, stalled};

/// How long until what could not be read is read again.
const REREAD: SignedDuration = SignedDuration::from_secs(30);

/// After which a removal that has not ended may be given up.
const RELEASE: SignedDuration = SignedDuration::from_hours(24);

/// What to do next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to send, in this order; evictions and deletions of pods that follow each other may be
    /// sent together. Each is guarded by the server and may be sent twice.
    pub actions: Vec<Action>,
    /// When requests to the workload cluster are given up, answered or not: the deadline that they
    /// serve. None where they serve no deadline.
    pub until: Option<Timestamp>,
    /// Why the machine leaves, if it does. What is sent to the workload cluster for one reason is
    /// given up when another holds. Known from caches, too.
    pub removal: Option<ShutdownReason>,
    /// The whole new status, after all actions have succeeded; none if it is as it was, or
    /// differs in nothing but how far Cluster API has come, and was written a moment ago.
    pub status: Option<ScheduledMachineStatus>,
    /// Whether the status says nothing new but how far Cluster API has come.
    pub is_progress: bool,
    /// What to publish once the status is written: one for each transition.
    pub events: Vec<Event>,
    /// When to ask again at the latest, if nothing is written now and nothing changes before:
    /// always in the future. None means that only a change can alter anything.
    pub wake: Option<Timestamp>,
    /// There is something to do that takes more than facts from caches: gather live and plan
    /// again.
    /// Actions, status and events are empty then.
    pub confirm: bool,
    /// What the ScheduledMachine has to be, by one quorum read right before the first of the
    /// actions is sent; if it is not, none is sent: gather live and plan again. None where
    /// nothing has to be read.
    pub precondition: Option<Precondition>,
}

impl Plan {
    /// Whether nothing is to be written: the world is as it is wanted, or has to move by itself.
    pub fn is_idle(&self) -> bool {
        self.actions.is_empty() && self.status.is_none() && !self.confirm
    }

    /// The steps of the actions, in order.
    pub fn steps(&self) -> Vec<Step> {
        self.actions.iter().map(|action| action.step).collect()
    }
}

/// Decides what to do next about `object`, which was read together with `state`.
///
/// # Guarantees
/// Total: every input gives a plan, whatever strings the object holds. Deterministic. Nothing is
/// destroyed before the commitment to leave is stored, nor from facts of a cache, nor if a fact
/// that it depends on is unknown.
pub fn plan(
    object: &ScheduledMachine,
    observed: &Observed,
    memory: &Memory,
    now: Timestamp,
) -> Plan {
    let basis = Basis::of(object, observed);
    let case = basis.case(memory, now);
    // Whoever took our finalizer off a deleted object wants to keep what is there.
    if case.subject.is_deleting && !case.subject.has_finalizer() {
        return Plan::default();
    }
    let decision = precedence::decide(&case);
    let outcome = reclaim::insist(&case, carry_out(&case, decision));
    let outcome = hold_finalizer(&case, outcome);
    let outcome = machine::relabel(&case, outcome);
    let outcome = reclaim::clean(&case, outcome);
    compose(&case, decision, outcome)
}

/// The outcome of the check that applies.
fn carry_out(case: &Case<'_>, decision: Decision<'_>) -> Outcome {
    match decision {
        Decision::Paused(what) => Outcome::of(State::Paused(what)),
        Decision::NotObservable(unknown) => not_observable(case, unknown),
        Decision::ScheduleUnknown(unknown) => nothing_touched(
            case,
            unknown,
            "the overrides and calendars of this schedule",
        ),
        Decision::ShutDown(removal) => {
            taint::last_call::withdraw(case, shutdown::shut_down(case, removal))
        }
        Decision::Disabled | Decision::Invalid => serve::maintain(case),
        Decision::Hold => serve::hold(case),
        Decision::Serve => serve::serve(case),
    }
}

/// What exists is not known, and nothing is touched.
fn not_observable(case: &Case<'_>, unknown: &Unknown) -> Outcome {
    nothing_touched(case, unknown, "the objects of this machine")
}

/// Nothing is touched, because `what`, for people, is not known.
fn nothing_touched(case: &Case<'_>, unknown: &Unknown, what: &str) -> Outcome {
    let (reason, message) = conditions::unknown_fact(unknown, what);
    Outcome::of(State::NotObservable { reason, message })
        .wake(memory::after(case.now, REREAD))
}

/// From when on the finalizer is taken off although something is left; none if it is not.
fn release_at(case: &Case<'_>) -> Option<Timestamp> {
    let shutdown = case.subject.status.shutdown.as_ref();
    let is_asked_for = case.observed.releases_stuck && case.subject.is_deleting;
    shutdown
        .filter(|_| is_asked_for)
        .map(|shutdown| memory::after(shutdown.started_at, RELEASE))
}

/// Takes the finalizer off, with a word about what may be left.
fn release(case: &Case<'_>, state: State) -> Outcome {
    let message = "the finalizer is released a day after the removal began; what is left of the \
                machine is nobody's: look for it by the label 5spot.finos.org/scheduled-machine";
    let event = Event::warning("FinalizerCleanupTimedOut", "ReleaseFinalizer", message);
    let mut outcome =
        Outcome::of(state).with(vec![write::remove_finalizer(case.subject)]);
    outcome.events.push(event);
    outcome
}

/// Sees to it that the finalizer is there before anything else, and goes after everything else.
fn hold_finalizer(case: &Case<'_>, outcome: Outcome) -> Outcome {
    let subject = case.subject;
    let is_touched = !matches!(
        outcome.state,
        State::Paused(_) | State::NotObservable { .. }
    );
    let release_at = release_at(case).filter(|_| is_touched);
    if release_at.is_some_and(|due| due <= case.now) && outcome.state != State::Idle {
        return release(case, outcome.state);
    }
    let action = if outcome.state == State::Idle && subject.is_deleting {
        Some(write::remove_finalizer(subject))
    } else if is_touched && !subject.has_finalizer() {
        Some(write::add_finalizer(subject))
    } else {
        None
    };
    match action {
        Some(action) => Outcome::of(outcome.state).with(vec![action]),
        None => Outcome {
            wakes: outcome.wakes.into_iter().chain(release_at).collect(),
            ..outcome
        },
    }
}

/// Puts a decision into a plan: what is held back after a failure, the status, the events.
fn compose(case: &Case<'_>, decision: Decision<'_>, mut outcome: Outcome) -> Plan {
    let removal = decision.shutdown_reason();
    let failure = backoff::apply(case, &mut outcome);
    backoff::delay_start(case, &mut outcome);
    let is_finalizing = is_finalizing(&outcome.actions);
    let before = &case.subject.status;
    let after = status::next(case, decision, &outcome, failure);
    let later = failure
        .is_none()
        .then(|| debounce::due(case, &after))
        .flatten();
    // An announced instant is reported anew once it has come, whatever else is delayed.
    let announced = after.next_transition.into_iter().chain(case.next_changes());
    let announced = announced.chain(stalled::due(case, &outcome));
    let wakes = outcome.wakes.iter().copied().chain(announced).chain(later);
    let is_reported = !is_finalizing && later.is_none() && after != *before;
    let status = is_reported.then_some(after);
    let wake = wakes.filter(|due| *due > case.now).min();
    let is_idle = status.is_none() && outcome.actions.is_empty();
    let precondition = match from_cache::confirmation(case, &outcome, status.as_ref()) {
        Confirmation::Precondition => Some(Precondition::of(case.subject)),
        Confirmation::NotNeeded => None,
        Confirmation::LiveRead if is_idle => None,
        Confirmation::LiveRead => {
            return Plan {
                confirm: true,
                wake,
                removal,
                ..Plan::default()
            };
        }
    };
    // What was created is reported when it is observed.
    let status = status.filter(|_| precondition.is_none());
    let mut events = outcome.events;
    if let Some(after) = &status {
        events.extend(event::between(before, after));
        events.extend(event::left_late(before, after, case.now));
        events.extend(never::event(case, before, after));
    }
    let is_progress = status
        .as_ref()
        .is_some_and(|after| debounce::is_progress(before, after));
    Plan {
        events,
        is_progress,
        actions: outcome.actions,
        status,
        wake,
        until: outcome.until,
        removal,
        confirm: false,
        precondition,
    }
}

/// Whether finalizers change. That changes the resourceVersion that guards the status, which has
/// to wait.
fn is_finalizing(actions: &[Action]) -> bool {
    let mut steps = actions.iter().map(|action| &action.step);
    steps.any(|step| matches!(step, Step::AddFinalizer | Step::RemoveFinalizer))
}
