//! The status: all its fields follow from the facts of this reconcile, and times are kept where
//! nothing changed.

pub(crate) mod conditions;
pub(crate) mod debounce;
pub mod event;
pub(crate) mod never_needed;
pub(crate) mod phase;
pub(crate) mod stalled;
pub(crate) mod undrained;
pub(crate) mod usage;

use fivespot_api::condition::{self, ConditionType, ConditionUpdate};
use fivespot_api::time::whole_seconds;
use fivespot_api::{
    FollowedSchedule, LastProvisioning, NodeRef, ObjectRef, OverrideInForce, Phase,
    ScheduledMachineStatus, Shutdown,
};
use fivespot_capi::{Machine, shortened};
use fivespot_schedule::{Duration, Override};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::decide::case::Case;
use crate::decide::outcome::{Outcome, ShutdownChange, State};
use crate::decide::precedence::Decision;
use crate::decide::reclaim::Cleanup;
use crate::decide::record::Record;
use crate::decide::taint::{DecisionAndActions, TaintStatus};
use crate::decide::{agent, host_return, pace, reclaim, taint, turn};
use crate::{Action, Failure, KEPT_FOR_USAGE, Step};

/// How many characters of a message the status contains at most.
const MAX_MESSAGE_CHARS: usize = 1_024;

/// The status after this reconcile.
pub(crate) fn next(
    case: &Case<'_>,
    decision: Decision<'_>,
    outcome: &Outcome,
    failure: Option<&Failure>,
) -> ScheduledMachineStatus {
    let mut status = case.subject.status.clone();
    status.in_schedule = case.in_schedule();
    status.in_force = case.override_in_force().map(in_force);
    if case.unknown_schedule().is_none() {
        status.spot_schedule = followed(case, status.spot_schedule.take());
    }
    if let Ok(schedule) = &case.desired.schedule {
        let lead_time = Some(schedule.lead_time()).filter(|it| *it > Duration::ZERO);
        status.lead_time = lead_time.map(|it| it.to_string());
    }
    status.observed_generation = case.subject.generation;
    status.cluster_name = cluster(case).or(status.cluster_name);
    // While paused or without facts, the record stays.
    let is_first = Record::stored(&status).is_empty();
    if outcome.state.is_observed() {
        record(case, outcome, &mut status);
    } else if is_first && matches!(outcome.state, State::Paused(_)) {
        Record::due(case).store(&mut status);
    }
    status.returns = host_return::records(case, outcome.state == State::Idle);
    announce(case, &mut status);
    let (phase, ready) = phase::summary(case, decision, outcome, failure);
    status.phase = Some(phase);
    status.ready = phase == Phase::Active;
    status.message = Some(shortened(&ready.message, MAX_MESSAGE_CHARS));
    set_findings(case, ready, failure, &mut status.conditions);
    if outcome.state.is_observed() {
        set_last_provisioning(case, outcome, &mut status);
        let actions = &outcome.actions;
        set_taints(case, DecisionAndActions { decision, actions }, &mut status);
        let change = agent::condition(case);
        change_condition(case, ConditionType::AgentReady, change, &mut status);
    }
    let change = stalled::condition(case, outcome, failure);
    change_condition(case, ConditionType::Stalled, change, &mut status);
    let change = conditions::spot_schedule_resolved(case);
    change_condition(
        case,
        ConditionType::SpotScheduleResolved,
        change,
        &mut status,
    );
    usage::account(case, &mut status);
    if outcome.state.is_observed() {
        status.weekly_use = turn::weekly_use(case);
    }
    status
}

/// The Cluster of the Machine or of the next one; `None` if its class is not known, which may be
/// what names it.
fn cluster(case: &Case<'_>) -> Option<String> {
    let machine = case.owned.our_machine();
    let named = machine.map_or(&case.desired.cluster, |it| &it.cluster_name);
    (!named.is_empty()).then(|| named.clone())
}

/// The schedule that the machine follows, as it is resolved now; while it cannot be, as it was last.
fn followed(case: &Case<'_>, last: Option<FollowedSchedule>) -> Option<FollowedSchedule> {
    let followed = case.desired.followed.as_ref()?;
    let Ok(schedule) = &followed.schedule else {
        return last.filter(|last| last.is_of(&followed.reference));
    };
    let window = schedule.at_within(case.now, case.steps);
    Some(followed.published(window))
}

/// Sets the conditions that every reconcile reports, also while paused or without facts. `ready`
/// summarises them.
fn set_findings(
    case: &Case<'_>,
    ready: ConditionUpdate,
    failure: Option<&Failure>,
    conditions: &mut Vec<Condition>,
) {
    let findings = [
        Some(ready),
        Some(conditions::scheduled(case)),
        Some(conditions::schedule_valid(case)),
        Some(conditions::references(case, failure)),
        conditions::machine_ready(case),
        conditions::node_access(case),
    ];
    if case.owned.our_machine().is_none() && case.unobserved().is_none() {
        remove_those_of_a_machine(conditions, &findings);
    }
    for found in findings.into_iter().flatten() {
        condition::set(conditions, found, case.subject.generation, case.now);
    }
}

/// Removes the conditions of a Machine that is gone. A condition that is still observed, as after
/// a reclaim, keeps its lastTransitionTime.
fn remove_those_of_a_machine(
    conditions: &mut Vec<Condition>,
    findings: &[Option<ConditionUpdate>],
) {
    for gone in [ConditionType::MachineReady, ConditionType::NodeAccess] {
        if !findings.iter().flatten().any(|found| found.kind == gone) {
            condition::remove(conditions, gone);
        }
    }
}

/// The override in force, for the status.
fn in_force(of: &Override) -> OverrideInForce {
    OverrideInForce {
        name: of.name.clone(),
        mode: of.mode.into(),
        end_time: of.end,
    }
}

/// Sets when the machine was last created, and when its Node was first ready.
fn set_last_provisioning(
    case: &Case<'_>,
    outcome: &Outcome,
    status: &mut ScheduledMachineStatus,
) {
    let created = status.last_scheduled_time;
    let recorded = status.last_provisioning.take();
    let is_recorded = |of: &LastProvisioning| Some(of.start_time) == created;
    let start = created.filter(|_| status.machine_ref.is_some());
    status.last_provisioning = match recorded.filter(is_recorded) {
        None => start.map(|start_time| LastProvisioning {
            start_time,
            ready_time: None,
        }),
        recorded => recorded,
    };
    let is_ready = matches!(outcome.state, State::InService { .. });
    if let Some(last) = &mut status.last_provisioning
        && is_ready
        && status.machine_ref.is_some()
    {
        last.ready_time.get_or_insert(whole_seconds(case.now));
    }
}

/// Sets the times of the next changes; none while the schedule is not in force.
fn announce(case: &Case<'_>, status: &mut ScheduledMachineStatus) {
    let is_in_force = case.desired.is_enabled && !case.desired.is_killed;
    let is_announced = is_in_force && case.need.is_some();
    let deadline = status.shutdown.as_ref().and_then(|of| cleanup(case, of));
    // Under Hold nothing happens before its end.
    let from = case.hold().map_or(case.now, |hold| hold.end);
    case.steps.keep(KEPT_FOR_USAGE);
    let next = is_announced.then(|| upcoming(case, from));
    let Upcoming { activation, end } = next.unwrap_or_default();
    status.next_activation = activation;
    status.next_cleanup = deadline.or(end).filter(|_| is_announced);
    status.next_transition = [status.next_activation, status.next_cleanup]
        .into_iter()
        .flatten()
        .filter(|due| *due > case.now)
        .min();
}

/// The next events of the schedule.
#[derive(Default)]
struct Upcoming {
    /// When a machine is created.
    activation: Option<Timestamp>,
    /// When it is no longer needed.
    end: Option<Timestamp>,
}

fn upcoming(case: &Case<'_>, from: Timestamp) -> Upcoming {
    let Some(schedule) = case.delayed() else {
        return Upcoming::default();
    };
    let has_machine = case.owned.our_machine().is_some();
    let minimum = case.desired.minimum_run;
    let is_held = from > case.now;
    let need = match case.need {
        Some(need) if !is_held => need,
        _ => schedule.needed(from, case.steps),
    };
    let is_too_short = !has_machine && case.is_too_short() && !is_held;
    if need.is_needed() && !is_too_short {
        return Upcoming {
            activation: (is_held && !has_machine).then_some(from),
            end: need.until(),
        };
    }
    let end = (is_held && has_machine).then_some(from);
    let activation = if minimum.is_zero() {
        need.until()
    } else {
        // If the steps do not suffice, the next change of the need evaluates further ahead.
        schedule.next_need_of(minimum, from, case.steps)
    };
    Upcoming { activation, end }
}

/// Sets which taints of the Node are ours. Without a fact the reported ones stay.
fn set_taints(
    case: &Case<'_>,
    taken: DecisionAndActions<'_>,
    status: &mut ScheduledMachineStatus,
) {
    let TaintStatus { condition, applied } = taint::status(case, taken);
    change_condition(case, ConditionType::NodeTainted, condition, status);
    if let Some(applied) = applied {
        status.applied_node_taints = applied;
    }
}

/// The change of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConditionChange {
    /// It stays as reported.
    Keep,
    /// It is removed.
    Remove,
    /// It is set to this.
    Set(ConditionUpdate),
}

fn change_condition(
    case: &Case<'_>,
    kind: ConditionType,
    change: ConditionChange,
    status: &mut ScheduledMachineStatus,
) {
    let conditions = &mut status.conditions;
    match change {
        ConditionChange::Set(update) => {
            condition::set(conditions, update, case.subject.generation, case.now);
        }
        ConditionChange::Remove => condition::remove(conditions, kind),
        ConditionChange::Keep => {}
    }
}

/// The deadline in force, while the Machine of the shutdown exists.
fn cleanup(case: &Case<'_>, shutdown: &Shutdown) -> Option<Timestamp> {
    let machine = case.owned.our_machine()?;
    (shutdown.machine_uid == machine.meta.uid).then(|| case.deadline(shutdown))
}

/// Records where the objects are, and whether the machine is being shut down.
fn record(case: &Case<'_>, outcome: &Outcome, status: &mut ScheduledMachineStatus) {
    let is_gone = case.owned.is_gone();
    match &outcome.shutdown {
        ShutdownChange::Write(shutdown) => {
            // The kill switch may shorten one that has begun.
            let begins = status.shutdown.is_none().then_some(shutdown.reason);
            status.last_shutdown_time = pace::last_shutdown(case, begins);
            status.shutdown = Some(shutdown.clone());
        }
        ShutdownChange::Clear => status.shutdown = None,
        ShutdownChange::Keep if is_gone => status.shutdown = None,
        ShutdownChange::Keep => {}
    }
    if let Some(machine) = case.owned.our_machine() {
        record_machine(case, machine, &outcome.actions, status);
    } else {
        if !is_node_awaited(case, outcome) {
            status.node_ref = None;
            status.provider_id = None;
        }
        status.applied_node_taints.clear();
        // It distinguishes leftovers from the objects of an unfinished start as long as either
        // may exist.
        if is_gone {
            status.machine_ref = None;
        }
    }
    Record::due(case).store(status);
    if outcome.host.is_some() || is_gone {
        status.host.clone_from(&outcome.host);
    }
}

/// Whether a write to the Node of a reclaimed Machine is still pending.
fn is_node_awaited(case: &Case<'_>, outcome: &Outcome) -> bool {
    let is_cleared = outcome
        .actions
        .iter()
        .any(|action| action.step == Step::ClearRequest);
    match reclaim::cleanup(case) {
        None => false,
        Some(Cleanup::Unknown) => true,
        Some(Cleanup::Clear(_)) => !is_cleared,
        Some(Cleanup::Over) => !case.owned.is_gone(),
    }
}

fn record_machine(
    case: &Case<'_>,
    machine: &Machine,
    actions: &[Action],
    status: &mut ScheduledMachineStatus,
) {
    let meta = &machine.meta;
    let is_same = case.subject.records(machine);
    // The first reconcile that observes a Machine records that time, by our own clock.
    if !is_same {
        status.last_scheduled_time = Some(whole_seconds(case.now));
    }
    let known = reclaim::joined_uid(case, machine, actions);
    status.node_ref = machine.node.as_ref().map(|link| {
        let before = status
            .node_ref
            .as_ref()
            .filter(|of| is_same && of.name == link.name);
        let before = before.and_then(|of| of.uid.clone());
        NodeRef {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            name: link.name.clone(),
            // Only of a Node that was observed: it means that a stale request is cleared.
            uid: known.or(before),
        }
    });
    status.provider_id.clone_from(&machine.provider_id);
    status.machine_ref = Some(ObjectRef {
        api_version: machine.contract.api_version().to_owned(),
        kind: "Machine".to_owned(),
        name: meta.name.clone(),
        namespace: Some(meta.namespace.clone()),
        uid: Some(meta.uid.clone()),
    });
}
