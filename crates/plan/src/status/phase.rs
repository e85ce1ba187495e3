//! The phase and the condition `Ready`: one sentence that summarises the state. No decision reads
//! them (`internals/decisions/0010-phase-is-output.md`).

use fivespot_api::condition::{ConditionStatus, ConditionType, ConditionUpdate, Reason};
use fivespot_api::{Phase, ShutdownReason};
use fivespot_capi::Machine;
use fivespot_schedule::Override;

use crate::Failure;
use crate::act::backoff;
use crate::decide::case::Case;
use crate::decide::precedence::Decision;
use crate::decide::{machine, pace, reclaim, serve};
use crate::decide::{outcome::Omitted, outcome::Outcome, outcome::State};
use crate::status::{conditions, never_needed, undrained};
use crate::why::Why;

/// The phase, and `Ready` with the message that is also the status' message.
pub(crate) fn summary(
    case: &Case<'_>,
    decision: Decision<'_>,
    outcome: &Outcome,
    failure: Option<&Failure>,
) -> (Phase, ConditionUpdate) {
    let problem = failure.and_then(Failure::why);
    let is_blocked = failure.is_some_and(backoff::blocks_rest);
    let (phase, mut is_ready, mut reason, mut message) = match problem.clone() {
        Some(why) if is_blocked => (Phase::Error, false, why.reason, why.message),
        Some(_) | None => summary_of(case, decision, &outcome.state),
    };
    if let Some(why) = problem.filter(|_| !is_blocked) {
        message = format!("{message}; {}", why.message);
    }
    if let Some(found) = invalid(case, failure).filter(|_| is_ready) {
        // Without that calendar the schedule still applies.
        is_ready = found.reason == Reason::CalendarNotFound;
        reason = found.reason;
        message = format!("{message}; {}", found.message);
    }
    message = with_note(case, decision, outcome, message);
    if case.desired.is_audited {
        message.insert_str(0, AUDIT);
    }
    let ready = ConditionUpdate::new(ConditionType::Ready, is_ready, reason, message);
    (phase, ready)
}

/// How every message about a machine in audit mode begins.
const AUDIT: &str = "audit: ";

/// What is not done in audit mode.
fn audited(case: &Case<'_>, omitted: Omitted) -> Summary {
    let name = case.subject.child();
    let (what, until_enforced) = match omitted {
        Omitted::Creation => {
            let message =
                format!("Machine {name} would be created and kept{}", until(case));
            return (Phase::Inactive, true, Reason::Audited, message);
        }
        Omitted::Completion => (
            format!("the objects of Machine {name} are left as they are"),
            "they are completed or replaced",
        ),
        Omitted::Removal if case.subject.is_deleting => (
            format!(
                "the deletion waits: the objects of Machine {name} are left as they are"
            ),
            "they are removed",
        ),
        Omitted::Removal => (
            format!(
                "Machine {name} would be shut down, and its objects are left as they are"
            ),
            "they are removed",
        ),
    };
    let message = format!("{what}; {until_enforced} once spec.enforcement is Enforce");
    (while_paused(case), false, Reason::Audited, message)
}

/// The invalid part of the spec, if there is one: the schedule first. `Ready` is false then,
/// whether a machine is wanted or not.
fn invalid(case: &Case<'_>, failure: Option<&Failure>) -> Option<ConditionUpdate> {
    let conditions = [
        conditions::schedule_valid(case),
        conditions::references(case, failure),
    ];
    conditions
        .into_iter()
        .find(|found| found.status == ConditionStatus::False)
}

/// The message, with the note about an unfinished drain until the next activation.
fn with_note(
    case: &Case<'_>,
    decision: Decision<'_>,
    outcome: &Outcome,
    message: String,
) -> String {
    if matches!(decision, Decision::Serve | Decision::Hold) {
        return message;
    }
    let note = outcome.undrained.clone();
    match note.or_else(|| undrained::recorded_note(case)) {
        Some(note) if undrained::of(&message).is_none() => format!("{message}; {note}"),
        Some(_) | None => message,
    }
}

type Summary = (Phase, bool, Reason, String);

fn summary_of(case: &Case<'_>, decision: Decision<'_>, state: &State) -> Summary {
    match state {
        State::Paused(what) => (
            while_paused(case),
            false,
            Reason::Paused,
            paused(case, what),
        ),
        State::NotObservable(Why { reason, message }) => {
            (Phase::Error, false, reason.clone(), message.clone())
        }
        State::Idle | State::Unmanaged => at_rest(case, decision),
        State::Blocked(Why { reason, message }) => {
            (blocked(reason), false, reason.clone(), message.clone())
        }
        State::Provisioning(message) => {
            (Phase::Pending, false, Reason::Provisioning, message.clone())
        }
        State::InService {
            node,
            has_pending_changes,
        } => in_service(case, node, *has_pending_changes),
        State::NodeNotReady { node } => node_not_ready(case, node),
        State::InfrastructureMissing(message) => (
            Phase::Active,
            false,
            Reason::InfrastructureMissing,
            message.clone(),
        ),
        State::Terminating(message) => {
            let phase = leaving(decision);
            let reason = if phase == Phase::EmergencyRemove {
                Reason::EmergencyReclaim
            } else {
                Reason::ShuttingDown
            };
            (phase, false, reason, message.clone())
        }
        State::Stalled(message) => {
            let phase = if decision == Decision::Serve {
                Phase::Pending
            } else {
                leaving(decision)
            };
            (phase, false, Reason::RemovalStalled, message.clone())
        }
        State::Audited(omitted) => audited(case, *omitted),
    }
}

fn in_service(case: &Case<'_>, node: &str, has_pending_changes: bool) -> Summary {
    let until = match case.hold() {
        Some(hold) => format!("; {}", held_by(hold)),
        None => match pace::stop_held(case) {
            Some(held) => format!("; {}", held.why.message),
            None => until(case),
        },
    };
    let machine = case.owned.our_machine();
    let untouchable = machine.and_then(|it| machine::why_untouchable(case, it));
    let untouchable = untouchable.map_or_else(String::new, |why| {
        format!("; {why}: it is neither changed nor drained")
    });
    let message = format!("Node {node} is in service{until}{untouchable}");
    if has_pending_changes {
        let message =
            format!("{message}; the edited spec takes effect at the next activation");
        return (Phase::Active, true, Reason::PendingChanges, message);
    }
    (Phase::Active, true, Reason::MachineRunning, message)
}

/// The message about a pause: what is paused, and which steps wait for its end.
fn paused(case: &Case<'_>, what: &str) -> String {
    let machine = case.owned.our_machine();
    let waiting = if case.subject.is_deleting {
        Some("the deletion")
    } else if case.desired.is_killed {
        Some("the kill switch")
    } else if machine.is_some_and(|of| reclaim::requested(case, of).is_some()) {
        Some("the reclaim")
    } else {
        None
    };
    let name = match what {
        "Cluster" => case.cluster().map_or("", |found| &found.meta.name),
        "Machine" => machine.map_or("", |found| &found.meta.name),
        _ => &case.subject.name,
    };
    match waiting {
        Some(waiting) => format!(
            "{waiting} waits: the {what} {name} is paused, and nothing is changed until it is \
             resumed"
        ),
        None => format!("the {what} is paused: nothing is changed until it is resumed"),
    }
}

/// The phase of a machine that is shut down.
fn leaving(decision: Decision<'_>) -> Phase {
    if decision == Decision::ShutDown(ShutdownReason::Reclaim) {
        Phase::EmergencyRemove
    } else {
        Phase::ShuttingDown
    }
}

/// The Node exists but is not ready: no longer, or not yet.
fn node_not_ready(case: &Case<'_>, node: &str) -> Summary {
    if was_in_service(case) {
        let message = format!("Node {node} is no longer ready");
        (Phase::Active, false, Reason::NodeNotReady, message)
    } else {
        let message = format!("Node {node} has joined and is not ready yet");
        (Phase::Pending, false, Reason::Provisioning, message)
    }
}

/// There is nothing to do: as desired, or because of a problem.
fn at_rest(case: &Case<'_>, decision: Decision<'_>) -> Summary {
    match decision {
        Decision::ShutDown(ShutdownReason::KillSwitch) => {
            let message = "no machine runs while the kill switch is set; set spec.killSwitch to false to return to service";
            (
                Phase::Terminated,
                true,
                Reason::Terminated,
                message.to_owned(),
            )
        }
        Decision::ShutDown(_) => {
            let unresolved = case.desired.unresolved().map(|it| it.message.clone());
            let message =
                match unresolved.or_else(|| never_needed::why_never_needed(case)) {
                    Some(why) => format!("no machine is wanted: {why}"),
                    None => format!("no machine is wanted{}", until(case)),
                };
            (Phase::Inactive, true, Reason::Inactive, message)
        }
        Decision::Disabled => disabled(case),
        Decision::Invalid => {
            let invalid = case.desired.schedule.as_ref().err().cloned();
            let Why { reason, message } = invalid.unwrap_or_else(|| {
                Why::new(Reason::InvalidSpec, "the schedule cannot be evaluated")
            });
            let message = format!("{message}; nothing is changed");
            (Phase::Error, false, reason, message)
        }
        Decision::Serve if case.owned.is_gone() && case.is_too_short() => {
            let message = format!(
                "no machine is created: less than spec.provisioning.minimumRun is left{}",
                until(case),
            );
            (Phase::Inactive, true, Reason::Inactive, message)
        }
        Decision::Hold => held(case),
        Decision::Serve
        | Decision::Paused(_)
        | Decision::NotObservable(_)
        | Decision::ScheduleUnknown(_) => (
            Phase::Pending,
            false,
            Reason::Provisioning,
            "waiting".to_owned(),
        ),
    }
}

fn held_by(hold: &Override) -> String {
    format!(
        "override {} holds the machine until {}",
        hold.name, hold.end
    )
}

/// An override holds, and there is no Machine.
fn held(case: &Case<'_>) -> Summary {
    let hold = case.hold().map_or_else(String::new, held_by);
    if case.owned.is_gone() {
        return (Phase::Inactive, true, Reason::Inactive, hold);
    }
    let message = format!("{hold}; existing objects are kept");
    (Phase::Pending, false, Reason::Provisioning, message)
}

/// The schedule is disabled, and existing objects stay.
fn disabled(case: &Case<'_>) -> Summary {
    let Some(machine) = case.owned.our_machine() else {
        let message = conditions::reclaimed(case)
            .unwrap_or_else(|| "the schedule is disabled".to_owned());
        return (Phase::Disabled, true, Reason::Disabled, message);
    };
    let name = &machine.meta.name;
    if let Some(lost) = serve::lost(case, machine) {
        let message = format!(
            "the schedule is disabled; {lost} of Machine {name} is gone, and nothing is \
             changed"
        );
        let reason = Reason::InfrastructureMissing;
        return (Phase::Disabled, false, reason, message);
    }
    let message = format!("the schedule is disabled; Machine {name} is kept");
    (Phase::Disabled, true, Reason::Disabled, message)
}

/// Until when the window stays as it is, if it ever changes.
fn until(case: &Case<'_>) -> String {
    case.next_need_change()
        .map_or_else(String::new, |flip| format!(" until {flip}"))
}

/// The phase if something prevents the creation of a machine: Error if a user has to act, else
/// Pending.
fn blocked(reason: &Reason) -> Phase {
    let comes_by_itself = [
        Reason::ClusterNotFound,
        Reason::ClusterDeleting,
        Reason::ClusterNotReady,
        Reason::KindNotServed,
        Reason::HostTaken,
        Reason::LimitReached,
        Reason::NoHostFree,
    ];
    if comes_by_itself.contains(reason) {
        Phase::Pending
    } else {
        Phase::Error
    }
}

/// The phase of the existing objects while nothing is touched.
fn while_paused(case: &Case<'_>) -> Phase {
    match case.owned.our_machine() {
        Some(machine) if is_leaving(case, machine) => Phase::ShuttingDown,
        Some(_) if !case.desired.is_enabled => Phase::Disabled,
        Some(machine) => {
            let state = serve::readiness(case, machine);
            let has_node = matches!(
                state,
                State::InService { .. } | State::InfrastructureMissing(_)
            );
            let is_unready = matches!(state, State::NodeNotReady { .. });
            if has_node || is_unready && was_in_service(case) {
                Phase::Active
            } else {
                Phase::Pending
            }
        }
        None if case.desired.is_killed && case.owned.is_gone() => Phase::Terminated,
        None if case.desired.is_killed => Phase::ShuttingDown,
        None if !case.desired.is_enabled => Phase::Disabled,
        None if case.is_wanted() => Phase::Pending,
        None if case.owned.is_gone() => Phase::Inactive,
        None => Phase::ShuttingDown,
    }
}

fn is_leaving(case: &Case<'_>, machine: &Machine) -> bool {
    machine.meta.is_deleting || case.shutdown_record(machine).is_some()
}

/// Whether this same Machine has been in service before. Only the phase and the message depend on
/// it: a machine whose Node loses readiness stays Active, one whose Node never was ready is
/// Pending. A machine that was paused, disabled or shut down with a Node had usually been in
/// service.
fn was_in_service(case: &Case<'_>) -> bool {
    let status = &case.subject.status;
    let machine = case.owned.our_machine();
    let is_same = machine.is_some_and(|machine| case.subject.records(machine));
    let said = case.subject.reported(ConditionType::Ready);
    let in_service = [
        Reason::MachineRunning,
        Reason::PendingChanges,
        Reason::NodeNotReady,
        Reason::InfrastructureMissing,
        Reason::Paused,
        Reason::Disabled,
        Reason::ShuttingDown,
        Reason::Audited,
    ];
    is_same
        && status.node_ref.is_some()
        && said
            .is_some_and(|ready| in_service.iter().any(|of| of.as_str() == ready.reason))
}
