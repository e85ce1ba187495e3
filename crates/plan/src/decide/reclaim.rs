//! Reclaim: the owner of the host asks for it back, and gets it at once.
//!
//! The request stands on our Machine or on its Node. The commitment is an annotation on the
//! Machine, which dies with it; what has been done is read off the objects themselves, so that
//! every step may be repeated after a crash.

use fivespot_api::condition::{self, ConditionType, Reason};
use fivespot_api::status::LONGEST_UID;
use fivespot_api::{NodeRef, Shutdown, ShutdownReason, name};
use fivespot_capi::Machine;
use jiff::SignedDuration;

use crate::act::memory::after;
use crate::act::write::{self, StopOverride};
use crate::decide::case::Case;
use crate::decide::{drain, machine};
use crate::decide::{outcome::Commitment, outcome::Outcome, outcome::State};
use crate::status::conditions;
use crate::status::whole_seconds;
use crate::{Access, Action, Fact, Node, Step, Unknown};

/// For how long after the commitment pods are deleted and waited for.
const PODS: SignedDuration = SignedDuration::from_secs(10);

/// Why our Machine is asked back, if it is.
pub(crate) fn requested(case: &Case<'_>, machine: &Machine) -> Option<String> {
    if let Some(committed) = machine.meta.annotations.get(name::RECLAIM_ANNOTATION) {
        return Some(fivespot_capi::one_line(committed));
    }
    let node = machine::node(case, machine)?;
    let reason = node.reclaim.clone()?;
    has_joined(case, machine, node).then_some(reason)
}

/// Whether an earlier pass has seen this Node as that of this Machine. A request that was on it
/// already then is an old one: it is cleared, and the agent decides anew.
fn has_joined(case: &Case<'_>, machine: &Machine, node: &Node) -> bool {
    let status = &case.subject.status;
    let recorded = status.machine_ref.as_ref().and_then(|of| of.uid.as_ref());
    let known = status.node_ref.as_ref().and_then(|of| of.uid.as_ref());
    recorded == Some(&machine.meta.uid) && known == Some(&node.uid)
}

/// Clears a request that the Node of a new Machine has brought along.
pub(crate) fn stale_request(case: &Case<'_>, machine: &Machine) -> Option<Action> {
    let node = machine::node(case, machine)?;
    let is_stale = node.has_reclaim_annotations
        && !machine
            .meta
            .annotations
            .contains_key(name::RECLAIM_ANNOTATION)
        && !has_joined(case, machine, node);
    is_stale.then(|| write::clear_request(node))
}

/// The uid of our Machine's Node, once that Node counts as joined: not before an old request is
/// off it.
pub(crate) fn joined_uid(
    case: &Case<'_>,
    machine: &Machine,
    actions: &[Action],
) -> Option<String> {
    let node = machine::node(case, machine)?;
    let is_cleared = actions
        .iter()
        .any(|action| action.step == Step::ClearRequest);
    let is_known = is_cleared || stale_request(case, machine).is_none();
    // Whoever serves the workload cluster may show any text: the status could not be written.
    (is_known && node.uid.len() <= LONGEST_UID as usize).then(|| node.uid.clone())
}

/// What is done before the Machine is deleted; none when that is due.
pub(crate) fn next(case: &Case<'_>, machine: &Machine) -> Option<Outcome> {
    let shutdown = case
        .commitment(machine)
        .filter(|of| of.reason == ShutdownReason::Reclaim);
    let is_written = machine
        .meta
        .annotations
        .contains_key(name::RECLAIM_ANNOTATION);
    let Some(shutdown) = shutdown.filter(|_| is_written) else {
        return Some(commit(case, machine, is_written));
    };
    let switching = switch_off(case, machine);
    if !switching.is_empty() && !has_failed_to_switch_off(case) {
        let message = if case.observed.reclaim_override.is_some() {
            "creating an override that stops the machine, because the host is reclaimed"
        } else {
            "switching the schedule off, because the host is reclaimed"
        };
        return Some(Outcome::of(State::Terminating(message.to_owned())).with(switching));
    }
    let until = after(shutdown.started_at, PODS);
    if machine.meta.is_deleting {
        return None;
    }
    let emptying = (case.now < until).then(|| empty(case, machine)).flatten();
    emptying
        .map(|outcome| outcome.until(until))
        .or_else(|| remember(case))
}

/// Puts on record why the schedule is off, if that is not there yet: once the Machine is gone,
/// nothing else distinguishes it from a schedule that a person has switched off.
fn remember(case: &Case<'_>) -> Option<Outcome> {
    let reason = Reason::EmergencyReclaimDisabledSchedule;
    let conditions = &case.subject.status.conditions;
    let is_reported = condition::find(conditions, ConditionType::Scheduled)
        .is_some_and(|message| message.reason == reason.as_str());
    if case.desired.is_enabled || is_reported || case.subject.is_deleting {
        return None;
    }
    let message = "the schedule is off, because the host is reclaimed";
    conditions::reclaimed(case)
        .map(|_| Outcome::of(State::Terminating(message.to_owned())))
}

/// The commitment, on the Machine and then in the status.
fn commit(case: &Case<'_>, machine: &Machine, is_written: bool) -> Outcome {
    let started = whole_seconds(case.now);
    let reason = requested(case, machine).unwrap_or_default();
    let shutdown = Shutdown {
        machine_uid: machine.meta.uid.clone(),
        started_at: started,
        deadline: started,
        reason: ShutdownReason::Reclaim,
        window_end: None,
    };
    let name = &machine.meta.name;
    let why = if reason.is_empty() {
        String::new()
    } else {
        format!(" ({reason})")
    };
    let message =
        format!("the host is reclaimed{why}; Machine {name} is removed at once");
    let action = (!is_written).then(|| {
        let commitment = format!("{started} {reason}");
        write::commit_reclaim(machine, commitment.trim_end().to_owned())
    });
    Outcome {
        shutdown: Commitment::Make(shutdown),
        ..Outcome::of(State::Terminating(message)).with(action.into_iter().collect())
    }
}

/// Switches the schedule off or stops it with an override, once for each commitment: whoever
/// switches it on or ends the override later means it. That it was done is recorded after it, and not
/// in the same list as a step that may fail again.
fn switch_off(case: &Case<'_>, machine: &Machine) -> Vec<Action> {
    let annotations = &machine.meta.annotations;
    if case.subject.is_deleting
        || annotations.contains_key(name::RECLAIM_DISABLED_ANNOTATION)
    {
        return Vec::new();
    }
    let stop = match case.observed.reclaim_override {
        Some(span) => Some(stop_with_override(case, machine, span)),
        None if case.desired.is_enabled => Some(write::disable_schedule(case.subject)),
        None => None,
    };
    let is_alone = stop.is_some() && has_failed_to_switch_off(case);
    let record = (!is_alone).then(|| write::record_disabled(machine));
    stop.into_iter().chain(record).collect()
}

/// Creates an override that stops the machine for `span`. It is named after the Machine, so that
/// each commitment has one.
fn stop_with_override(
    case: &Case<'_>,
    machine: &Machine,
    span: SignedDuration,
) -> Action {
    let end = whole_seconds(after(case.now, span));
    let reason = requested(case, machine).unwrap_or_default();
    let reason = format!("the host is reclaimed: {reason}");
    let uid = &machine.meta.uid;
    write::stop_with_override(case.subject, uid, StopOverride { end, reason })
}

/// Whether the schedule could not be switched off or stopped, for whatever reason, or that not be
/// recorded.
fn has_failed_to_switch_off(case: &Case<'_>) -> bool {
    [
        Step::DisableSchedule,
        Step::CreateOverride,
        Step::RecordDisabled,
    ]
    .into_iter()
    .any(|step| case.memory.failure(step).is_some())
}

/// Tries again to switch the schedule off where that has failed, after everything else that is to
/// be done: the host is given back all the same. Once the Machine is gone, no other is made before
/// it has succeeded, or somebody has edited the spec.
pub(crate) fn insist(case: &Case<'_>, mut outcome: Outcome) -> Outcome {
    let is_touched = !matches!(
        outcome.state,
        State::Paused(_) | State::NotObservable { .. }
    );
    if !is_touched || !has_failed_to_switch_off(case) {
        return outcome;
    }
    let Some(machine) = case.owned.our_machine() else {
        return insist_without_machine(case, outcome);
    };
    let is_reclaimed = case
        .commitment(machine)
        .is_some_and(|of| of.reason == ShutdownReason::Reclaim);
    if is_reclaimed {
        let last = switch_off(case, machine);
        let is_new = |action: &Action| {
            outcome
                .actions
                .iter()
                .all(|other| other.step != action.step)
        };
        let last: Vec<_> = last.into_iter().filter(is_new).collect();
        outcome.actions.extend(last);
    }
    outcome
}

fn insist_without_machine(case: &Case<'_>, mut outcome: Outcome) -> Outcome {
    let missed = [Step::DisableSchedule, Step::CreateOverride]
        .into_iter()
        .any(|step| case.memory.failure(step).is_some());
    if !missed || !case.desired.is_enabled || case.subject.is_deleting {
        return outcome;
    }
    if matches!(outcome.state, State::Provisioning(_)) {
        let is_start = |step: Step| {
            matches!(
                step,
                Step::CreateBootstrap | Step::CreateInfrastructure | Step::CreateMachine
            )
        };
        outcome.actions.retain(|action| !is_start(action.step));
        outcome.shutdown = Commitment::Keep;
        outcome.state = State::Blocked {
            reason: Reason::EmergencyReclaim,
            message: "the host was reclaimed; no other machine is created before the schedule is \
                      switched off or stopped by an override"
                .to_owned(),
        };
    }
    outcome.actions.push(match case.observed.reclaim_override {
        Some(span) => stop_without_machine(case, span),
        None => write::disable_schedule(case.subject),
    });
    outcome
}

/// The same override once the Machine is gone, and with it what the override would be named after.
fn stop_without_machine(case: &Case<'_>, span: SignedDuration) -> Action {
    let shutdown = case.subject.status.shutdown.as_ref();
    let uid = shutdown.map_or(&case.subject.uid, |of| &of.machine_uid);
    let stop = StopOverride {
        end: whole_seconds(after(case.now, span)),
        reason: "the host is reclaimed".to_owned(),
    };
    write::stop_with_override(case.subject, uid, stop)
}

/// Deletes the pods, if there is a way to; none when there is none left to delete.
fn empty(case: &Case<'_>, machine: &Machine) -> Option<Outcome> {
    let link = machine.node.as_ref()?;
    let silent = || {
        let message = format!("Node {} cannot be reached", link.name);
        Some(Outcome::of(State::Terminating(message)))
    };
    match &case.observed.workload.access {
        Access::Connected => {}
        Access::KubeconfigMissing { .. }
        | Access::KubeconfigRefused { .. }
        | Access::TooLarge { .. }
        | Access::Unauthorized { .. } => return None,
        Access::Unreachable { .. } | Access::NotAsked => return silent(),
    }
    match (machine::node(case, machine), &case.observed.workload.pods) {
        (Some(node), Fact::Known(pods)) => drain::eject(case, node, pods),
        (Some(_), Fact::Unknown(Unknown::Forbidden { .. })) | (None, _) => None,
        (Some(_), Fact::Unknown(_)) => silent(),
    }
}

/// What is left to do on a Node that has outlived its Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aftermath<'a> {
    /// The request is still on it.
    Clear(&'a Node),
    /// It cannot be asked now.
    Unknown,
    /// Nothing.
    Over,
}

/// What is left to do on the Node of a Machine that was reclaimed and is gone; none where no
/// Node is on record for that.
pub(crate) fn aftermath<'a>(case: &Case<'a>) -> Option<Aftermath<'a>> {
    let status = &case.subject.status;
    let recorded = status.node_ref.as_ref()?;
    let is_reclaimed = status.machine_ref.is_none()
        || status
            .shutdown
            .as_ref()
            .is_some_and(|of| of.reason == ShutdownReason::Reclaim);
    if case.owned.our_machine().is_some() || !is_reclaimed {
        return None;
    }
    Some(
        match (&case.observed.workload.access, &case.observed.workload.node) {
            (_, Fact::Known(Some(node)))
                if is_recorded(node, recorded, status.provider_id.as_ref())
                    && is_touchable(case, node)
                    && node.has_reclaim_annotations =>
            {
                Aftermath::Clear(node)
            }
            (_, Fact::Known(_)) => Aftermath::Over,
            (Access::Unreachable { .. } | Access::NotAsked | Access::Connected, _) => {
                Aftermath::Unknown
            }
            _ => Aftermath::Over,
        },
    )
}

/// Whether the Node of a Machine that is gone may be written to: whoever may write a status can put
/// any Node on record there.
fn is_touchable(case: &Case<'_>, node: &Node) -> bool {
    let subject = case.subject;
    let was = machine::Identity {
        cluster: &case.desired.cluster,
        namespace: &subject.namespace,
        name: subject.child(),
    };
    machine::claimed_by_others(case, &was, node).is_none()
}

fn is_recorded(node: &Node, recorded: &NodeRef, provider_id: Option<&String>) -> bool {
    node.name == recorded.name
        && recorded.uid.as_ref() == Some(&node.uid)
        && provider_id.is_some()
        && node.provider_id.as_ref() == provider_id
}

/// Sees to it that the request is cleared once everything is gone, before anything else begins.
pub(crate) fn clean(case: &Case<'_>, mut outcome: Outcome) -> Outcome {
    let is_touched = !matches!(
        outcome.state,
        State::Paused(_) | State::NotObservable { .. }
    );
    if let Some(Aftermath::Clear(node)) = aftermath(case)
        && is_touched
        && case.owned.is_gone()
        && case.failed_at(Step::ClearRequest).is_none()
    {
        outcome.actions = vec![write::clear_request(node)];
        outcome.shutdown = Commitment::Keep;
    }
    outcome
}
