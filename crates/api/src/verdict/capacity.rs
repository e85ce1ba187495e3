//! The verdict about a ScheduledCapacity, in the states of a machine.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::{ERROR_LIMIT, Lease, Report, State, Verdict};
use crate::condition::{Actor, capacity_reason};
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
    let report = Report {
        meta: &object.metadata,
        is_there: status.phase.is_some(),
        observed: status.observed_generation,
        message: &message,
    };
    let is_stale = !report.is_current();
    if let Some(unknown) = report.unknown(lease, now) {
        return unknown;
    }
    if !report.is_there {
        return report.not_observed(None);
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
        is_stale,
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
