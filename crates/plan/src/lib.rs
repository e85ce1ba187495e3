//! Decides what to do next about one ScheduledMachine: pure, total, no clock and no client.
//!
//! [`plan`] is one function from all observed state to all that must be done: guarded writes, the
//! status, events, and when to requeue. It neither waits nor keeps state. The same facts at the
//! same instant give the same plan, in the controller, in a test and in `5spot explain`.
//!
//! # One reconcile
//! 1. Read the ScheduledMachine and its Machine. Get the other objects to read from
//!    [`Locations::of`], and collect the state in [`Observed`], from caches or live.
//! 2. [`Memory::observe`], then [`plan`].
//! 3. If the plan has [`confirm`](Plan::confirm) set, observe again with live (quorum) reads, and
//!    plan again. A plan made from caches ends nothing: it reports what was observed, adds our
//!    finalizer, and creates the recorded objects if the [`precondition`](Plan::precondition)
//!    holds.
//! 4. Send the [`actions`](Plan::actions) in order and stop at the first that fails. A conflict
//!    (409 of any kind) is not a failure: the objects have changed, start over with live reads. A
//!    404 of a deletion, an eviction or a patch likewise requires another read. An eviction that
//!    is refused (429) goes to [`Memory::refused`] and does not stop the list. Any other error
//!    goes to [`Memory::failed`]; plan once more, so that the status reports it.
//! 5. If every action succeeded, call [`Memory::succeeded`] and [`Memory::repeated`]; write the
//!    [`status`](Plan::status), guarded by the resourceVersion that the plan was made from, then
//!    call [`Memory::status_written`], and publish the [`events`](Plan::events).
//! 6. If anything was written, reconcile again at once. Otherwise requeue at
//!    [`requeue_at`](Plan::requeue_at), or when one of the objects changes.
//!
//! After a failure (step 4) the second plan leaves out the failed step until its backoff is over,
//! and the steps that depend on it, so that the reconcile continues at step 5 and ends.
//!
//! # Layout
//! - [`capacity`]: the decisions about a ScheduledCapacity, which has no machine
//! - [`set`]: those about a ScheduledMachineSet, which has many
//! - [`limits`]: which machines of a class may be made
//! - [`rates`]: when the machines of a class begin and leave
//! - [`observed`]: the observed state. [`state`](observed::state) is everything that was read,
//!   `node` the workload cluster's part of it; [`location`](observed::location) lists which
//!   objects to read; `subject` is the ScheduledMachine itself, `owned` its three objects and who
//!   owns them, `provider` what Cluster API and the providers report
//! - `decide`: the decisions. `resolve` turns the raw spec into the desired state, no other
//!   module reads raw strings; `precedence` is the list of rules, the first match decides;
//!   `serve`, `shutdown`, `reclaim`, `drain`, `machine`, `taint` and `agent` are one decision
//!   each; `record` is what the status records of a machine before it is created; `audit` leaves
//!   out the writes of a machine in audit mode
//! - [`act`]: actions. [`action`](act::action) and `write` are the requests;
//!   [`memory`](act::memory) is the state kept in memory between reconciles; `backoff` is what
//!   waits after a failure, `repeat` what waits because another client undoes it, `from_cache`
//!   which writes are allowed on cached state
//! - [`status`]: the status and the Events: `conditions`, `phase` with `Ready`,
//!   [`event`](status::event); `debounce` delays status writes that report only progress,
//!   `undrained` reports a drain that was cut off
//! - `why`: a reason and its message, in which decisions and conditions are explained

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test of many steps is read from its top"
    )
)]
#![deny(clippy::wildcard_enum_match_arm)]

pub mod act;
pub mod capacity;
pub mod explain;
pub mod limits;
pub mod merge_patch;
pub mod observed;
pub mod overrides;
pub mod rates;
pub mod set;
pub mod spot_schedule;
pub mod status;

mod condition;
mod decide;
mod why;

use fivespot_api::{ScheduledMachine, ScheduledMachineStatus, ShutdownReason};
use fivespot_schedule::Steps;
use jiff::{SignedDuration, Timestamp};

pub use act::action::{Action, Call, Request, Side, Step, Target};
pub use act::memory::{Cause, Failure, Memory};
pub use capacity::{CapacityFacts, CapacityPlan, CapacityWrite, plan_capacity};
pub use decide::jitter::{Delayed, delay_of};
pub use decide::record::Precondition;
pub use explain::{Explanation, PrecedenceReport, explain};
pub use observed::hosts::{Hosts, StoredClaim};
pub use observed::location::Locations;
pub use observed::node::{AgentConfig, Node, NodeClaim, Pod, Taint};
pub use observed::state::{
    Access, Fact, Freshness, Lookup, Observed, ReclaimStop, ScheduleInputs, Specs,
    Unknown, Workload,
};
pub use overrides::{LimitingClass, Matched, OverridePlan, plan_override};
pub use set::{SetAction, SetFacts, SetMachine, SetPlan, Unanswered, plan_set};
pub use spot_schedule::{SpotSchedule, SpotSchedulePlan, plan_spot_schedule};
pub use status::event::{Event, EventType};
pub use status::usage::usage_until;

use act::from_cache::{self, Confirmation};
use act::{backoff, memory, write};
use decide::case::{Case, CaseInputs};
use decide::outcome::{Outcome, State};
use decide::precedence::{self, Decision};
use decide::{
    audit, host, host_claims, host_return, machine, pace_claim, reclaim, serve, shutdown,
    taint, turn,
};
use status::{conditions, debounce, event, never_needed, stalled, undrained};

/// How long until a failed read is repeated.
const FAILED_READ_REQUEUE: SignedDuration = SignedDuration::from_secs(30);

/// How long after the start of a removal the finalizer may be released although it has not ended.
const RELEASE: SignedDuration = SignedDuration::from_hours(24);

/// How many steps one plan may take to evaluate its schedule: less than 4 ms, at the 40 to 65 ns of
/// a step in a release. They suffice for every window of two days, whatever the schedule; what is
/// further ahead is evaluated again in time.
pub const MAX_STEPS: u64 = 60_000;

/// How many of them the decision leaves for the times that the status announces, and these for the
/// account of its usage.
const KEPT_FOR_STATUS: u64 = MAX_STEPS / 2;
const KEPT_FOR_USAGE: u64 = MAX_STEPS / 4;

/// What to do next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to send, in this order; evictions and deletions of pods that follow each other may be
    /// sent concurrently. Each is guarded by the server and may be sent twice.
    pub actions: Vec<Action>,
    /// The deadline at which requests to the workload cluster are cancelled, whether the server
    /// has responded or not. `None` if they have no deadline.
    pub until: Option<Timestamp>,
    /// Why the machine is shut down. `None` if it is not. Requests to the workload cluster are
    /// cancelled when the reason changes. Also set in a plan made from caches.
    pub removal: Option<ShutdownReason>,
    /// The whole new status, to be written after all actions have succeeded. `None` if it is
    /// unchanged, or differs only in Cluster API's progress and a status was written a moment
    /// ago.
    pub status: Option<ScheduledMachineStatus>,
    /// Whether the status differs only in Cluster API's progress.
    pub is_progress: bool,
    /// What to publish once the status is written: one for each transition.
    pub events: Vec<Event>,
    /// When to requeue at the latest, if nothing is written now and no object changes before:
    /// always in the future. `None` if only a change of an object can alter the plan.
    pub requeue_at: Option<Timestamp>,
    /// Whether there is something to do that facts from caches do not suffice for: read live and
    /// plan again. Actions, status and events are empty then.
    pub confirm: bool,
    /// What the ScheduledMachine must match, checked by one quorum read right before the first
    /// action is sent. If it does not match, no action is sent: read live and plan again. `None`
    /// if no read is needed.
    pub precondition: Option<Precondition>,
    /// Whether the machine waits for a host of its class: offer one with [`Memory::offer_host`] and
    /// plan again.
    pub seeks_host: bool,
}

impl Plan {
    /// Whether there is nothing to write: the desired state is reached, or another component has
    /// to act.
    pub fn is_idle(&self) -> bool {
        self.actions.is_empty() && self.status.is_none() && !self.confirm
    }

    /// The steps of the actions, in order.
    pub fn steps(&self) -> Vec<Step> {
        self.actions.iter().map(|action| action.step).collect()
    }
}

/// Decides what to do next about `object`, which was read together with `observed`.
///
/// # Guarantees
/// Total: every input gives a plan, whatever strings the object contains. Deterministic. Nothing
/// is destroyed before the shutdown record is stored, nor from facts of a cache, nor if a
/// fact that it depends on is unknown.
pub fn plan(
    object: &ScheduledMachine,
    observed: &Observed,
    memory: &Memory,
    now: Timestamp,
) -> Plan {
    plan_within(object, observed, memory, now, &Steps::at_most(MAX_STEPS))
}

/// As [`plan`], with another number of steps for the evaluation of the schedule than
/// [`MAX_STEPS`], and to read how many it took.
pub fn plan_within(
    object: &ScheduledMachine,
    observed: &Observed,
    memory: &Memory,
    now: Timestamp,
    steps: &Steps,
) -> Plan {
    let inputs = CaseInputs::of(object, observed);
    let case = inputs.case(memory, now, steps);
    // A user who removes our finalizer from a deleted object keeps the objects that exist.
    if case.subject.is_deleting && !case.subject.has_finalizer() {
        return Plan::default();
    }
    let decision = precedence::decide(&case);
    if case.desired.is_audited {
        let outcome = audit::only_report(&case, carry_out(&case, decision));
        let outcome = host_claims::settle(&case, outcome);
        return compose(&case, decision, outcome);
    }
    let outcome = reclaim::retry_disabling(&case, carry_out(&case, decision));
    let outcome = host_claims::settle(&case, outcome);
    let outcome = hold_finalizer(&case, outcome);
    let outcome = machine::relabel(&case, outcome);
    let outcome = reclaim::clear_request(&case, outcome);
    let outcome = reclaim::end_stop(&case, outcome);
    compose(&case, decision, outcome)
}

/// What the machine claims of the limits of its class, for [`limits::rule`]. `None` if it has no
/// class, or one that does not limit when machines are made.
pub fn claim(
    object: &ScheduledMachine,
    observed: &Observed,
    now: Timestamp,
) -> Option<limits::Claim> {
    object.spec.class.as_ref()?.limits.as_ref()?;
    let inputs = CaseInputs::of(object, observed);
    let memory = Memory::default();
    turn::claim(&inputs.case(&memory, now, &Steps::at_most(MAX_STEPS)))
}

/// What the machine claims of the rates of its class, for [`rates::rule`]. `turn` is whether the limits
/// of the class let it be made, as far as that is known. `None` if it has no class, or one without
/// rates.
pub fn rates_claim(
    object: &ScheduledMachine,
    observed: &Observed,
    now: Timestamp,
    turn: Option<limits::Turn>,
) -> Option<rates::Claim> {
    let class = object.spec.class.as_ref();
    class.filter(|class| class.rates.holds_anything())?;
    let inputs = CaseInputs::of(object, observed);
    let mut memory = Memory::default();
    memory.give_turn(turn);
    let steps = Steps::at_most(MAX_STEPS);
    Some(pace_claim::claim(&inputs.case(&memory, now, &steps)))
}

/// The outcome of a decision.
fn carry_out(case: &Case<'_>, decision: Decision<'_>) -> Outcome {
    match decision {
        Decision::Paused(what) => Outcome::of(State::Paused(what)),
        Decision::NotObservable(unknown) => not_observable(case, unknown),
        Decision::ScheduleUnknown(unknown) => nothing_touched(
            case,
            unknown,
            "the overrides and calendars of this schedule",
        ),
        Decision::ShutDown(reason) => {
            taint::last_call::remove(case, shutdown::shut_down(case, reason))
        }
        Decision::Disabled | Decision::Invalid => serve::maintain(case),
        Decision::Hold => serve::hold(case),
        Decision::Serve => serve::serve(case),
    }
}

/// The outcome where the observed state is incomplete: nothing is touched.
fn not_observable(case: &Case<'_>, unknown: &Unknown) -> Outcome {
    nothing_touched(case, unknown, "the objects of this machine")
}

/// The outcome where `what`, in words for users, could not be read: nothing is touched.
fn nothing_touched(case: &Case<'_>, unknown: &Unknown, what: &str) -> Outcome {
    Outcome::of(State::NotObservable(conditions::unknown_fact(
        unknown, what,
    )))
    .requeue_at(memory::after(case.now, FAILED_READ_REQUEUE))
}

/// The instant from which the finalizer is released although objects are left; `None` if it is
/// not.
fn release_at(case: &Case<'_>) -> Option<Timestamp> {
    let shutdown = case.subject.status.shutdown.as_ref();
    let is_asked_for = case.observed.releases_stuck && case.subject.is_deleting;
    shutdown
        .filter(|_| is_asked_for)
        .map(|shutdown| memory::after(shutdown.started_at, RELEASE))
}

/// Removes the finalizer, with a Warning about objects that may be left.
fn release(case: &Case<'_>, state: State) -> Outcome {
    let message = "the finalizer is removed a day after the removal began; objects of the machine \
                may remain: find them by the label 5spot.finos.org/scheduled-machine";
    let event = Event::warning("FinalizerCleanupTimedOut", "ReleaseFinalizer", message);
    let mut outcome =
        Outcome::of(state).with(vec![write::remove_finalizer(case.subject)]);
    outcome.events.push(event);
    outcome
}

/// Ensures that the finalizer is added before any other write and removed after all others.
fn hold_finalizer(case: &Case<'_>, outcome: Outcome) -> Outcome {
    let subject = case.subject;
    let is_touched = outcome.state.is_observed();
    let release_at = release_at(case).filter(|_| is_touched);
    if release_at.is_some_and(|due| due <= case.now) && outcome.state != State::Idle {
        return release(case, outcome.state);
    }
    let is_released = !host::is_held(case);
    let action = if outcome.state == State::Idle && subject.is_deleting && is_released {
        Some(write::remove_finalizer(subject))
    } else if is_touched && !subject.has_finalizer() {
        Some(write::add_finalizer(subject))
    } else {
        None
    };
    match action {
        Some(action) => Outcome::of(outcome.state).with(vec![action]),
        None => Outcome {
            requeues: outcome.requeues.into_iter().chain(release_at).collect(),
            ..outcome
        },
    }
}

/// Composes the plan of a decision: holds back what waits after a failure, and adds the status
/// and the events.
fn compose(case: &Case<'_>, decision: Decision<'_>, mut outcome: Outcome) -> Plan {
    let is_enforced = !case.desired.is_audited;
    let removal = decision.shutdown_reason().filter(|_| is_enforced);
    let failure = backoff::apply(case, &mut outcome);
    backoff::delay_start(case, &mut outcome);
    let is_partial = is_partial(&outcome.actions);
    let before = &case.subject.status;
    let after = status::next(case, decision, &outcome, failure);
    let later = failure
        .is_none()
        .then(|| debounce::due(case, &after))
        .flatten();
    // An announced instant is reported again when it is reached, whatever else is delayed.
    let announced = after.next_transition.into_iter().chain(case.next_changes());
    let announced = announced
        .chain(stalled::due(case, &outcome))
        .chain(host_return::next_changes(case));
    let requeues = outcome
        .requeues
        .iter()
        .copied()
        .chain(announced)
        .chain(later);
    let is_reported = !is_partial && later.is_none() && after != *before;
    let status = is_reported.then_some(after);
    let requeue_at = requeues.filter(|due| *due > case.now).min();
    let is_idle = status.is_none() && outcome.actions.is_empty();
    let precondition = match from_cache::confirmation(case, &outcome, status.as_ref()) {
        Confirmation::Precondition => Some(Precondition::of(case.subject)),
        Confirmation::NotNeeded => None,
        Confirmation::LiveRead if is_idle => None,
        Confirmation::LiveRead => {
            return Plan {
                confirm: true,
                requeue_at,
                seeks_host: outcome.seeks_host,
                removal,
                ..Plan::default()
            };
        }
    };
    // Created objects are reported when they are observed.
    let status = status.filter(|_| precondition.is_none());
    let mut events = outcome.events;
    events.extend(outcome.undrained.as_deref().map(undrained::event));
    if let Some(after) = &status {
        events.extend(event::between(before, after));
        events.extend(event::left_late(before, after, case.now));
        events.extend(event::omitted(before, after, &outcome.state));
        events.extend(never_needed::event(case, before, after));
    }
    let is_progress = status
        .as_ref()
        .is_some_and(|after| debounce::is_progress(before, after));
    Plan {
        events,
        is_progress,
        actions: outcome.actions,
        status,
        requeue_at,
        until: outcome.until,
        removal,
        confirm: false,
        precondition,
        seeks_host: outcome.seeks_host,
    }
}

/// Whether the status write has to wait for the next plan. A change of finalizers changes the
/// resourceVersion that guards it; a claim is reported together with its host.
fn is_partial(actions: &[Action]) -> bool {
    let mut steps = actions.iter().map(|action| &action.step);
    steps.any(|step| {
        matches!(
            step,
            Step::AddFinalizer | Step::RemoveFinalizer | Step::ClaimHost
        )
    })
}
