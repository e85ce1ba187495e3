//! The condition `Stalled`: no progress is expected without a user. It changes no decision.

use fivespot_api::condition::{ConditionStatus, ConditionType, Reason};
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;
use crate::decide::case::Case;
use crate::decide::outcome::{Outcome, State};
use crate::status::{ConditionChange, conditions};
use crate::why::Why;
use crate::{Cause, Failure, Step};

/// How long a step may be refused before it is reported as Stalled.
const REFUSALS: SignedDuration = SignedDuration::from_mins(5);

/// How long the schedule that a machine follows may be unresolved before that is reported as
/// Stalled.
const UNRESOLVED: SignedDuration = SignedDuration::from_mins(10);

/// The change of the condition: it is absent if progress is possible without a user.
pub(crate) fn condition(
    case: &Case<'_>,
    outcome: &Outcome,
    failure: Option<&Failure>,
) -> ConditionChange {
    if !outcome.state.is_observed() {
        return unobserved_condition(case, outcome);
    }
    let found = invalid_schedule(case)
        .or_else(|| unresolved(case))
        .or_else(|| missing(case, failure))
        .or_else(|| refused(case, failure))
        .or_else(|| removal(outcome))
        .or_else(|| provisioning(case, outcome));
    match found {
        None => ConditionChange::Remove,
        Some(why) => ConditionChange::Set(why.condition(ConditionType::Stalled, true)),
    }
}

/// The change of the condition if a read failed, so that no other fact is available: the
/// condition stays as it is, unless the read has been forbidden for five minutes.
fn unobserved_condition(case: &Case<'_>, outcome: &Outcome) -> ConditionChange {
    let State::NotObservable(Why { reason, message }) = &outcome.state else {
        return ConditionChange::Keep;
    };
    let is_over = forbidden_until(case).is_some_and(|due| due <= case.now);
    if *reason != Reason::Forbidden || !is_over {
        return ConditionChange::Keep;
    }
    let why = Why::new(reason.clone(), long_refused(message));
    ConditionChange::Set(why.condition(ConditionType::Stalled, true))
}

/// Until when a forbidden read is not reported yet.
fn forbidden_until(case: &Case<'_>) -> Option<Timestamp> {
    let since = case.memory.forbidden_since;
    since.map(|since| after(since, REFUSALS))
}

fn long_refused(message: &str) -> String {
    format!("refused for five minutes, and still retried: {message}")
}

/// When the condition may become true as time passes; `None` if it does not.
pub(crate) fn due(case: &Case<'_>, outcome: &Outcome) -> Option<Timestamp> {
    let refusals = Step::CREATIONS.into_iter().filter_map(|step| {
        let since = case.memory.failing_since(step)?;
        Some(after(since, REFUSALS))
    });
    let is_awaited = is_provisioning(case, outcome);
    let timeout = is_awaited.then(|| timeout_at(case)).flatten();
    let all = refusals
        .chain(timeout)
        .chain(forbidden_until(case))
        .chain(unresolved_until(case));
    all.filter(|due| *due > case.now).min()
}

fn invalid_schedule(case: &Case<'_>) -> Option<Why> {
    let Why { reason, message } = case.desired.schedule.as_ref().err()?;
    let message = format!("{message}; correct spec.schedule");
    Some(Why::new(reason.clone(), message))
}

/// Until when it is not reported yet that the schedule which the machine follows is unresolved.
fn unresolved_until(case: &Case<'_>) -> Option<Timestamp> {
    let found = case.subject.reported(ConditionType::SpotScheduleResolved);
    let since = found.filter(|of| of.status == "False")?;
    Some(after(since.last_transition_time.0, UNRESOLVED))
}

/// The schedule that the machine follows has been unresolved for ten minutes.
fn unresolved(case: &Case<'_>) -> Option<Why> {
    let Why { reason, message } = case.desired.unresolved()?;
    let is_long = unresolved_until(case).is_some_and(|due| due <= case.now);
    is_long.then(|| Why::new(reason.clone(), format!("for ten minutes: {message}")))
}

/// An object that the spec refers to is missing, or not ours.
fn missing(case: &Case<'_>, failure: Option<&Failure>) -> Option<Why> {
    let found = conditions::references(case, failure);
    let is_needed = case.is_wanted() && !case.desired.is_killed;
    let permanent = [
        Reason::ClassNotFound,
        Reason::ClassNotAllowed,
        Reason::HostNotFound,
        Reason::KindNotServed,
        Reason::NameTaken,
        Reason::SpecTooLarge,
    ];
    let is_permanent = permanent.contains(&found.reason)
        || found.reason == Reason::ClusterNotFound && is_needed;
    let is_stalled = found.status == ConditionStatus::False && is_permanent;
    is_stalled.then(|| Why::new(found.reason, found.message))
}

/// A step has been refused for five minutes.
fn refused(case: &Case<'_>, failure: Option<&Failure>) -> Option<Why> {
    let failure = failure?;
    let since = case.memory.failing_since(failure.step)?;
    let is_long = after(since, REFUSALS) <= case.now;
    let message = &failure.message;
    let (reason, message) = match failure.cause {
        Cause::Forbidden => (Reason::Forbidden, conditions::forbidden(message)),
        Cause::Rejected => {
            let remedy = "correct the spec, or the cause of the rejection";
            (Reason::Rejected, format!("{message}; {remedy}"))
        }
        Cause::NotServed => (Reason::KindNotServed, message.clone()),
        Cause::NamespaceTerminating | Cause::Unavailable => return None,
    };
    is_long.then(|| Why::new(reason, long_refused(&message)))
}

fn removal(outcome: &Outcome) -> Option<Why> {
    let State::Stalled(message) = &outcome.state else {
        return None;
    };
    let message = format!(
        "{message}; look for the cause at the provider, and remove a finalizer only if the host is \
         not in use"
    );
    Some(Why::new(Reason::RemovalStalled, message))
}

/// The Node is not ready within the provisioning timeout.
fn provisioning(case: &Case<'_>, outcome: &Outcome) -> Option<Why> {
    let is_over = timeout_at(case).is_some_and(|due| due <= case.now);
    (is_provisioning(case, outcome) && is_over).then(|| {
        let message = format!(
            "no Node is ready {:#} after provisioning started; inspect Machine {} and the objects \
             that it refers to",
            case.desired.provisioning_timeout,
            case.subject.child(),
        );
        Why::new(Reason::ProvisioningTimeout, message)
    })
}

/// Whether the machine is needed and has not had a ready Node yet.
fn is_provisioning(case: &Case<'_>, outcome: &Outcome) -> bool {
    let status = &case.subject.status;
    let was_ready = status.machine_ref.is_some()
        && status
            .last_provisioning
            .as_ref()
            .is_some_and(|last| last.ready_time.is_some());
    let is_coming = matches!(
        outcome.state,
        State::Provisioning(_) | State::NodeNotReady { .. } | State::Blocked(_)
    );
    case.is_wanted() && is_coming && !was_ready
}

/// When the provisioning timeout ends: counted from the creation of the Machine, or from the
/// first failure of a create.
fn timeout_at(case: &Case<'_>) -> Option<Timestamp> {
    let status = &case.subject.status;
    let created = status
        .last_scheduled_time
        .filter(|_| status.machine_ref.is_some());
    let mut failing = Step::CREATIONS.into_iter();
    let since =
        created.or_else(|| failing.find_map(|step| case.memory.failing_since(step)))?;
    Some(after(since, case.desired.provisioning_timeout))
}
