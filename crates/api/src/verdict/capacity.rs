//! The verdict about a ScheduledCapacity, in the states of a machine.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::{
    ERROR_LIMIT, Lease, State, TOLERANCE, Verdict, spec_changed, without_an_operator,
};
use crate::condition::{Actor, Remedy, capacity_reason};
use crate::{CapacityPhase, ScheduledCapacity, ScheduledCapacityStatus};

/// The verdict about a ScheduledCapacity as it was read. One that cannot be decoded has the error
/// as its cause.
pub fn verdict_of(object: &Value, lease: &Lease, now: Timestamp) -> Verdict {
    match serde_json::from_value::<ScheduledCapacity>(object.clone()) {
        Ok(capacity) => verdict(&capacity, lease, now),
        Err(error) => Verdict::undecoded(error),
    }
}

/// The verdict about a ScheduledCapacity, from what the operator has written into its status.
///
/// The active values are Serving and the inactive ones Off. It is Blocked if the values that the
/// schedule wants are not written, and Late while a failed step is retried, or if the target is in
/// use for longer than `handback.timeout`.
pub fn verdict(object: &ScheduledCapacity, lease: &Lease, now: Timestamp) -> Verdict {
    let status = object.status.clone().unwrap_or_default();
    let ready = condition(&status, "Ready");
    let message = ready.map(|it| it.message.clone());
    let message = message.or(status.message.clone()).unwrap_or_default();
    let is_current = status.phase.is_some()
        && status.observed_generation == object.metadata.generation;
    if let Lease::NotHeld { cause, since } = lease {
        let cause = without_an_operator(cause, &message);
        return Verdict::unknown(
            &object.metadata,
            Some(Remedy::NO_OPERATOR),
            cause,
            *since,
        );
    }
    let changed = spec_changed(&object.metadata, status.observed_generation);
    let is_overdue = changed.is_some_and(|at| now.duration_since(at) > TOLERANCE);
    if status.phase.is_none() || !is_current && is_overdue {
        let cause = "the operator has not reported on the present spec yet".to_owned();
        let remedy = is_overdue.then_some(Remedy::NOT_OBSERVED);
        return Verdict::unknown(&object.metadata, remedy, cause, changed);
    }
    let contested = condition(&status, "FieldContested").filter(|_| is_true(ready));
    let (reason, cause) = match contested {
        Some(contested) => (
            contested.reason.clone(),
            format!("{message}; {}", contested.message),
        ),
        None => (
            ready.map(|it| it.reason.clone()).unwrap_or_default(),
            message,
        ),
    };
    let row = capacity_reason::row(&reason);
    Verdict {
        state: state(&status, ready, now),
        since: ready.map(|it| it.last_transition_time.0),
        cause,
        actor: row.map_or(Actor::Nobody, |row| row.actor),
        reason,
        is_stale: !is_current,
        ..Verdict::with_remedy(&object.metadata, row.and_then(|row| row.remedy))
    }
}

/// The state that the status says. Only called for one with a phase.
fn state(
    status: &ScheduledCapacityStatus,
    ready: Option<&Condition>,
    now: Timestamp,
) -> State {
    let reason = ready.map_or("", |it| it.reason.as_str());
    if ["Held", "TargetPaused"].contains(&reason) {
        return State::Held;
    }
    let has_problem =
        |it: &&Condition| !is_true(Some(it)) && it.reason != "HandbackTimedOut";
    if let Some(ready) = ready.filter(has_problem) {
        let since = ready.last_transition_time.0;
        let is_retried = ["ReadFailed", "WriteFailed"].contains(&reason);
        return if is_retried && now.duration_since(since) < ERROR_LIMIT {
            State::Late
        } else {
            State::Blocked
        };
    }
    match status.phase {
        None => State::Unknown,
        Some(CapacityPhase::Error) => State::Blocked,
        Some(CapacityPhase::HandbackTimedOut) => State::Late,
        Some(CapacityPhase::HandingBack) => State::Leaving,
        Some(CapacityPhase::Active) => State::Serving,
        Some(CapacityPhase::Pending | CapacityPhase::Inactive) => State::Off,
        Some(CapacityPhase::Disabled) => State::Disabled,
        Some(CapacityPhase::Terminated) => State::Killed,
    }
}

fn condition<'s>(
    status: &'s ScheduledCapacityStatus,
    kind: &str,
) -> Option<&'s Condition> {
    status.conditions.iter().find(|it| it.type_ == kind)
}

fn is_true(condition: Option<&Condition>) -> bool {
    condition.is_none_or(|it| it.status == "True")
}

/// Whether in this state the values that were last written are those that the schedule wants.
pub fn has_what_it_wants(state: State) -> bool {
    match state {
        State::Blocked | State::Unknown | State::Held => false,
        State::Late
        | State::Starting
        | State::Leaving
        | State::Serving
        | State::Disabled
        | State::Killed
        | State::Off => true,
    }
}
