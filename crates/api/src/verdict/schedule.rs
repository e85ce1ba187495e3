//! The verdict about a schedule that objects share, in the states of a machine.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Lease, Report, State, Verdict};
use crate::SpotScheduleStatus;
use crate::condition::{Actor, schedule_reason};

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
    let report = Report {
        meta,
        is_there: ready.is_some(),
        observed: status.observed_generation,
        message,
    };
    if let Some(unknown) = report.unknown(lease, now) {
        return unknown;
    }
    let Some(ready) = ready else {
        return report.not_observed(None);
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
        is_stale: !report.is_current(),
        ..Verdict::with_remedy(meta, row.and_then(|row| row.remedy))
    }
}
