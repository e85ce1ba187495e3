//! Reclaim: the owner of the host requests it back, and it is released at once.
//!
//! The request is an annotation on our Machine or on its Node. The record of it is an annotation on
//! the Machine and is deleted with it. The progress is read from the objects themselves, so that
//! every step may be repeated after a crash.
//! See `internals/decisions/0041-a-reclaim-is-recorded-on-the-machine.md`.

use fivespot_api::condition::{ConditionType, Reason};
use fivespot_api::status::MAX_UID_LENGTH;
use fivespot_api::time::whole_seconds;
use fivespot_api::{NodeRef, Shutdown, ShutdownReason, name};
use fivespot_capi::Machine;
use jiff::SignedDuration;

use crate::act::memory::after;
use crate::act::write::{self, StopOverride};
use crate::decide::case::Case;
use crate::decide::{drain, host_return, machine};
use crate::decide::{outcome::Outcome, outcome::ShutdownChange, outcome::State};
use crate::observed::location::reclaimed_node;
use crate::status::conditions;
use crate::why::Why;
use crate::{Access, Action, Event, Fact, Node, Step, Unknown};

/// How long after the shutdown record pods are deleted and waited for.
const PODS: SignedDuration = SignedDuration::from_secs(10);

/// Why our Machine is reclaimed; `None` if it is not.
pub(crate) fn requested(case: &Case<'_>, machine: &Machine) -> Option<String> {
    if let Some(recorded) = machine.meta.annotations.get(name::RECLAIM_ANNOTATION) {
        return Some(fivespot_capi::one_line(recorded));
    }
    let node = machine::node(case, machine)?;
    let reason = node.reclaim.clone()?;
    has_joined(case, machine, node).then_some(reason)
}

/// Whether an earlier reconcile recorded this Node as the Node of this Machine. A request that
/// was already on the Node before that is stale: it is cleared, and the agent decides again.
fn has_joined(case: &Case<'_>, machine: &Machine, node: &Node) -> bool {
    let known = case.subject.status.node_ref.as_ref();
    let is_known = known.is_some_and(|of| of.uid.as_ref() == Some(&node.uid));
    is_known && case.subject.records(machine)
}

/// Clears a request that was on the Node before it joined as the Node of a new Machine.
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

/// The uid of our Machine's Node, once that Node counts as joined: not before a stale request is
/// cleared.
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
    // The workload cluster's API server may return a uid of any length: the status could not be
    // written.
    (is_known && node.uid.len() <= MAX_UID_LENGTH as usize).then(|| node.uid.clone())
}

/// The outcome before the Machine is deleted; `None` if the deletion is due.
pub(crate) fn next(case: &Case<'_>, machine: &Machine) -> Option<Outcome> {
    let shutdown = case
        .shutdown_record(machine)
        .filter(|of| of.reason == ShutdownReason::Reclaim);
    let is_written = machine
        .meta
        .annotations
        .contains_key(name::RECLAIM_ANNOTATION);
    let Some(shutdown) = shutdown.filter(|_| is_written) else {
        return Some(record_shutdown(case, machine, is_written));
    };
    let switching = switch_off(case, machine);
    if !switching.is_empty() && !has_failed_to_switch_off(case) {
        let message = if case.observed.reclaim_override.is_some() {
            "creating an override that stops the machine, because the host is reclaimed"
        } else {
            "disabling the schedule, because the host is reclaimed"
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

/// Records in the status why the schedule is disabled, if it is not recorded yet. Once the
/// Machine is gone, nothing else distinguishes it from a schedule that a user has disabled.
fn remember(case: &Case<'_>) -> Option<Outcome> {
    let reason = Reason::EmergencyReclaimDisabledSchedule;
    let reported = case.subject.reported(ConditionType::Scheduled);
    let is_reported = reported.is_some_and(|of| of.reason == reason.as_str());
    if case.desired.is_enabled || is_reported || case.subject.is_deleting {
        return None;
    }
    let message = "the schedule is disabled, because the host is reclaimed";
    conditions::reclaimed(case)
        .map(|_| Outcome::of(State::Terminating(message.to_owned())))
}

/// Records the reclaim, on the Machine and then in the status.
fn record_shutdown(case: &Case<'_>, machine: &Machine, is_written: bool) -> Outcome {
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
        let value = format!("{started} {reason}");
        write::record_reclaim(machine, value.trim_end().to_owned())
    });
    Outcome {
        shutdown: ShutdownChange::Write(shutdown),
        ..Outcome::of(State::Terminating(message)).with(action.into_iter().collect())
    }
}

/// Disables the schedule or stops it with an override, once for each reclaim: a user who later
/// enables the schedule or ends the override does so on purpose. It is recorded after that step,
/// and not in the same list as a step that may fail again.
fn switch_off(case: &Case<'_>, machine: &Machine) -> Vec<Action> {
    let annotations = &machine.meta.annotations;
    if case.subject.is_deleting
        || annotations.contains_key(name::RECLAIM_DISABLED_ANNOTATION)
    {
        return Vec::new();
    }
    let stop = match case.observed.reclaim_override {
        Some(span) => stop_with_override(case, machine, span),
        None if case.desired.is_enabled => Some(write::disable_schedule(case)),
        None => None,
    };
    let is_alone = stop.is_some() && has_failed_to_switch_off(case);
    let record = (!is_alone).then(|| write::record_disabled(machine));
    stop.into_iter().chain(record).collect()
}

/// An override that ends `span` after the reclaim began, so that each attempt asks for the same.
/// `None` if that has passed.
fn stop(case: &Case<'_>, span: SignedDuration, reason: String) -> Option<StopOverride> {
    let shutdown = case.subject.status.shutdown.as_ref();
    let begun = shutdown
        .filter(|of| of.reason == ShutdownReason::Reclaim)
        .map_or(case.now, |of| of.started_at);
    let begun = whole_seconds(begun);
    let end = whole_seconds(after(begun, span));
    (end > case.now).then_some(StopOverride { begun, end, reason })
}

/// Creates an override that stops the machine for `span`. It is named after the Machine, so that
/// each reclaim has one.
fn stop_with_override(
    case: &Case<'_>,
    machine: &Machine,
    span: SignedDuration,
) -> Option<Action> {
    let reason = requested(case, machine).unwrap_or_default();
    let stop = stop(case, span, format!("the host is reclaimed: {reason}"))?;
    let uid = &machine.meta.uid;
    Some(write::stop_with_override(case.subject, uid, stop))
}

/// Whether it failed to disable or stop the schedule, for whatever reason, or to record that.
fn has_failed_to_switch_off(case: &Case<'_>) -> bool {
    [
        Step::DisableSchedule,
        Step::CreateOverride,
        Step::RecordDisabled,
    ]
    .into_iter()
    .any(|step| case.memory.failure(step).is_some())
}

/// Retries to disable the schedule where that has failed, after all other actions: the host is
/// released anyway. Once the Machine is gone, no other Machine is created before the retry has
/// succeeded or a user has edited the spec.
pub(crate) fn retry_disabling(case: &Case<'_>, mut outcome: Outcome) -> Outcome {
    let is_touched = outcome.state.is_observed();
    if !is_touched || !has_failed_to_switch_off(case) {
        return outcome;
    }
    let Some(machine) = case.owned.our_machine() else {
        return insist_without_machine(case, outcome);
    };
    let is_reclaimed = case
        .shutdown_record(machine)
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
    let switch_off = match case.observed.reclaim_override {
        Some(span) => stop_without_machine(case, span),
        None => Some(write::disable_schedule(case)),
    };
    let Some(switch_off) = switch_off else {
        return outcome;
    };
    if matches!(outcome.state, State::Provisioning(_)) {
        let is_start = |of: &Action| Step::CREATIONS.contains(&of.step);
        outcome.actions.retain(|action| !is_start(action));
        outcome.shutdown = ShutdownChange::Keep;
        let message = "the host was reclaimed; no other machine is created before the schedule is \
                       disabled or stopped by an override";
        outcome.state = State::Blocked(Why::new(Reason::EmergencyReclaim, message));
    }
    outcome.actions.push(switch_off);
    outcome
}

/// The same override once the Machine is gone, whose uid is in the name of the override.
fn stop_without_machine(case: &Case<'_>, span: SignedDuration) -> Option<Action> {
    let shutdown = case.subject.status.shutdown.as_ref();
    let uid = shutdown.map_or(&case.subject.uid, |of| &of.machine_uid);
    let stop = stop(case, span, "the host is reclaimed".to_owned())?;
    Some(write::stop_with_override(case.subject, uid, stop))
}

/// Deletes the pods if the workload cluster is accessible; `None` if no pod is left to delete.
fn empty(case: &Case<'_>, machine: &Machine) -> Option<Outcome> {
    let link = machine.node.as_ref()?;
    let silent = || {
        let message = format!("Node {} is unreachable", link.name);
        Some(Outcome::of(State::Terminating(message)))
    };
    match &case.observed.workload.access {
        Access::Connected => {}
        Access::KubeconfigMissing { .. }
        | Access::KubeconfigRefused { .. }
        | Access::TooLarge { .. }
        | Access::Unauthorized { .. } => return None,
        Access::Unreachable { .. } | Access::NotRequested => return silent(),
    }
    match (machine::node(case, machine), &case.observed.workload.pods) {
        (Some(node), Fact::Known(pods)) => drain::delete_pods(case, node, pods),
        (Some(_), Fact::Unknown(Unknown::Forbidden { .. })) | (None, _) => None,
        (Some(_), Fact::Unknown(_)) => silent(),
    }
}

/// What remains to be done on a Node that still exists after its Machine is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleanup<'a> {
    /// The request is still on the Node.
    Clear(&'a Node),
    /// The Node cannot be read now.
    Unknown,
    /// Nothing.
    Over,
}

/// What remains to be done on the Node of a reclaimed Machine that is gone; `None` if the status
/// records no such Node.
pub(crate) fn cleanup<'a>(case: &Case<'a>) -> Option<Cleanup<'a>> {
    let status = &case.subject.status;
    let recorded = reclaimed_node(status)?;
    if case.owned.our_machine().is_some() {
        return None;
    }
    Some(
        match (&case.observed.workload.access, &case.observed.workload.node) {
            (_, Fact::Known(Some(node)))
                if is_recorded(node, recorded, status.provider_id.as_ref())
                    && is_touchable(case, node)
                    && node.has_reclaim_annotations =>
            {
                Cleanup::Clear(node)
            }
            (_, Fact::Known(_)) => Cleanup::Over,
            (
                Access::Unreachable { .. } | Access::NotRequested | Access::Connected,
                _,
            ) => Cleanup::Unknown,
            _ => Cleanup::Over,
        },
    )
}

/// Whether the Node of a Machine that is gone may be written to. A client with write access to
/// the status can record any Node there.
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

/// Ensures that the request is cleared once all objects are gone, before anything else begins.
pub(crate) fn clear_request(case: &Case<'_>, mut outcome: Outcome) -> Outcome {
    let is_touched = outcome.state.is_observed();
    if let Some(Cleanup::Clear(node)) = cleanup(case)
        && is_touched
        && case.owned.is_gone()
        && case.failed_at(Step::ClearRequest).is_none()
    {
        outcome.actions = vec![write::clear_request(node)];
        outcome.shutdown = ShutdownChange::Keep;
    }
    outcome
}

/// Ends the override of a reclaim whose host is free, once that is recorded.
pub(crate) fn end_stop(case: &Case<'_>, mut outcome: Outcome) -> Outcome {
    let is_idle = outcome.state == State::Idle && outcome.actions.is_empty();
    let stop = host_return::due(case).filter(|_| is_idle);
    if let Some(stop) = stop.filter(|stop| host_return::is_recorded(case, stop)) {
        outcome
            .actions
            .push(write::end_override(case.subject, stop));
        let note = format!(
            "the host has been free for long enough: override {} ends, and the machine follows \
             its schedule again",
            stop.name
        );
        outcome
            .events
            .push(Event::normal("HostReturned", "EndOverride", &note));
    }
    outcome
}
