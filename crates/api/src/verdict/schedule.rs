//! The verdict about a schedule that objects share, in the states of a machine.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Lease, State, TOLERANCE, Verdict, spec_changed, without_an_operator};
use crate::SpotScheduleStatus;
use crate::condition::{Actor, Remedy, schedule_reason};

/// The verdict about a shared schedule, from what the operator has published: Serving while it is
/// open, Off while it is closed, Blocked if it cannot be evaluated.
pub fn verdict(
    meta: &ObjectMeta,
    status: &SpotScheduleStatus,
    lease: &Lease,
    now: Timestamp,
) -> Verdict {
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    let message = ready.map_or("", |it| it.message.as_str());
    if let Lease::NotHeld { cause, since } = lease {
        let cause = without_an_operator(cause, message);
        return Verdict::unknown(meta, Some(Remedy::NO_OPERATOR), cause, *since);
    }
    let is_current = status.observed_generation == meta.generation;
    let changed = spec_changed(meta, status.observed_generation);
    let is_overdue = changed.is_some_and(|at| now.duration_since(at) > TOLERANCE);
    let Some(ready) = ready.filter(|_| is_current || !is_overdue) else {
        let cause = "the operator has not reported on the present spec yet".to_owned();
        let remedy = is_overdue.then_some(Remedy::NOT_OBSERVED);
        return Verdict::unknown(meta, remedy, cause, changed);
    };
    let row = schedule_reason::row(&ready.reason);
    let state = match status.active {
        Some(_) | None if ready.status != "True" => State::Blocked,
        Some(true) => State::Serving,
        Some(false) => State::Off,
        None => State::Unknown,
    };
    Verdict {
        state,
        since: if state == State::Blocked {
            Some(ready.last_transition_time.0)
        } else {
            status.last_transition_time
        },
        reason: ready.reason.clone(),
        cause: ready.message.clone(),
        actor: row.map_or(Actor::Nobody, |row| row.actor),
        is_stale: !is_current,
        ..Verdict::with_remedy(meta, row.and_then(|row| row.remedy))
    }
}
