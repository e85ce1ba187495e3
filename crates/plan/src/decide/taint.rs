//! The Node's taints: which of them are ours, and how they change.
//!
//! A taint is identified by key and effect. It is ours if it is in two records: the annotation on
//! the Node, which is written together with the taints in one guarded patch, and
//! `status.appliedNodeTaints`. A kubelet may write annotations of its Node but not its taints, so
//! the annotation alone must never remove or change a taint. Added and changed taints are put in
//! the status first, and removed taints are dropped from it last: the status may list more than
//! the Node has, never less. Every other taint is foreign, even if it is equal to a desired one.
//! See `internals/decisions/0056-a-taint-is-ours-by-two-records.md`.
//!
//! The taint of the last call, `shutdown.lastCall` before the machine is no longer needed, is
//! ours like those of `nodeTaints`. `NodeTainted` is about the latter only.

pub(crate) mod change;
pub(crate) mod last_call;

use fivespot_api::condition::{ConditionStatus, ConditionType, ConditionUpdate, Reason};
use fivespot_api::{MAX_TAINTS, NodeTaint, name, rules};
use fivespot_capi::Machine;

use crate::act::write;
use crate::decide::case::Case;
use crate::decide::machine;
use crate::decide::precedence::Decision;
use crate::status::ConditionChange;
use crate::{Access, Action, Fact, Node, Step};
use change::{Change, Ownership, change, is_same};

/// The taints in the annotation on a Node. An annotation that cannot be parsed is empty: our
/// taints count as foreign then. Taints that a spec may not request were never ours, whatever
/// client wrote the annotation.
pub(crate) fn recorded(node: &Node) -> Vec<NodeTaint> {
    let text = node.applied_taints.as_deref().unwrap_or_default();
    let mut all: Vec<NodeTaint> = serde_json::from_str(text).unwrap_or_default();
    all.retain(|taint| rules::is_acceptable_taint(taint) || *taint == last_call::taint());
    all.sort_by(|one, other| (&one.key, one.effect).cmp(&(&other.key, other.effect)));
    all.dedup_by(|one, other| is_same(one, other));
    all.sort();
    all
}

/// The change of the taints of our Machine's Node; `wanted` are those of the spec.
fn change_of(case: &Case<'_>, node: &Node, wanted: &[NodeTaint]) -> Change {
    let mut wanted: Vec<_> = wanted.iter().take(MAX_TAINTS).cloned().collect();
    wanted.extend(case.leaves_at().map(|_| last_call::taint()));
    let record = recorded(node);
    let ownership = Ownership {
        record: &record,
        applied: &case.subject.status.applied_node_taints,
    };
    change(&wanted, ownership, &node.taints)
}

/// The same change without the last call, and whether the Node already has it.
fn change_of_spec(case: &Case<'_>, node: &Node, wanted: &[NodeTaint]) -> (Change, bool) {
    let mut record = recorded(node);
    record.retain(|taint| taint.key != name::LAST_CALL_TAINT);
    let mut taints = node.taints.clone();
    taints.retain(|taint| taint.key != name::LAST_CALL_TAINT);
    let ownership = Ownership {
        record: &record,
        applied: &case.subject.status.applied_node_taints,
    };
    let next = change(wanted, ownership, &taints);
    let is_settled = next.is_settled(&taints);
    (next, is_settled)
}

/// The action on the taints of our Machine's Node; `None` if they are as desired, or nothing can
/// be done now.
pub(crate) fn action(case: &Case<'_>, machine: &Machine) -> Option<Action> {
    let node = machine::node(case, machine).filter(|node| node.is_ready)?;
    let wanted = case.desired.taints.as_ref().ok()?;
    let next = change_of(case, node, wanted);
    let leaves_at = case.leaves_at().map(|end| end.to_string());
    let is_settled = next.is_settled(&node.taints) && node.leaves_at == leaves_at;
    let is_due = !is_settled && next.is_claimed(&case.subject.status.applied_node_taints);
    is_due.then(|| write::taint(node, &next, leaves_at.as_deref()))
}

/// What the status reports about the taints.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaintStatus {
    /// The condition `NodeTainted`.
    pub(crate) condition: ConditionChange,
    /// The taints that the status lists as ours; `None` if the list stays as it is.
    pub(crate) applied: Option<Vec<NodeTaint>>,
}

/// The decision, and the actions taken for it.
#[derive(Clone, Copy)]
pub(crate) struct DecisionAndActions<'a> {
    pub(crate) decision: Decision<'a>,
    pub(crate) actions: &'a [Action],
}

/// The status after the actions have been taken.
pub(crate) fn status(case: &Case<'_>, taken: DecisionAndActions<'_>) -> TaintStatus {
    let wanted = match &case.desired.taints {
        Ok(wanted) => wanted,
        Err(fault) => {
            let message = format!("{fault}; no taint is changed");
            return only_condition(ConditionStatus::False, Reason::InvalidSpec, message);
        }
    };
    let unknown = |message: String| {
        let unknown =
            || only_condition(ConditionStatus::Unknown, Reason::NoNodeYet, message);
        (!wanted.is_empty()).then(unknown)
    };
    let machine = case.owned.our_machine();
    let Some((machine, link)) = machine.and_then(|of| Some((of, of.node.as_ref()?)))
    else {
        return unknown("there is no Node".to_owned()).unwrap_or_else(nothing);
    };
    let Some(node) = machine::node(case, machine) else {
        let is_gone = matches!(case.observed.workload.node, Fact::Known(None));
        let message = unknown(why_unobserved(case, machine, &link.name));
        return message.unwrap_or_else(|| if is_gone { nothing() } else { unchanged() });
    };
    status_of(case, node, wanted, taken)
}

/// The status if the Node could be read.
fn status_of(
    case: &Case<'_>,
    node: &Node,
    wanted: &[NodeTaint],
    taken: DecisionAndActions<'_>,
) -> TaintStatus {
    let DecisionAndActions { decision, actions } = taken;
    // The Node of a machine that is shut down gets no more taints.
    let is_served = matches!(
        decision,
        Decision::Serve | Decision::Disabled | Decision::Invalid | Decision::Hold
    );
    let mut steps = actions.iter().map(|action| action.step);
    let is_taken = is_served && steps.any(|step| step == Step::TaintNode);
    let (of_spec, is_settled) = change_of_spec(case, node, wanted);
    let is_settled = is_taken || is_settled;
    let conflicts = &of_spec.conflicts;
    let failure = case.memory.failure(Step::TaintNode);
    let name = &node.name;
    let condition = if wanted.is_empty() && conflicts.is_empty() && is_settled {
        ConditionChange::Remove
    } else if !node.is_ready {
        let message =
            format!("Node {name} is not ready; the taints are applied when it is");
        set(ConditionStatus::False, Reason::NodeNotReady, message)
    } else if let (false, Some(failure)) = (is_settled, failure) {
        let message = format!("cannot taint Node {name}: {}", failure.message);
        set(ConditionStatus::False, Reason::PatchFailed, message)
    } else if !is_settled {
        ConditionChange::Keep
    } else if conflicts.is_empty() {
        let message = format!("Node {name} has {}", count(wanted.len()));
        set(ConditionStatus::True, Reason::Applied, message)
    } else {
        let message = conflict(name, conflicts, wanted);
        set(
            ConditionStatus::False,
            Reason::TaintOwnershipConflict,
            message,
        )
    };
    let next = change_of(case, node, wanted);
    let applied = if is_taken {
        next.ours
    } else if is_served && node.is_ready {
        next.claimed()
    } else {
        last_call::applied_during_shutdown(case, next.before)
    };
    TaintStatus {
        condition,
        applied: Some(applied),
    }
}

fn set(status: ConditionStatus, reason: Reason, message: String) -> ConditionChange {
    let kind = ConditionType::NodeTainted;
    ConditionChange::Set(ConditionUpdate::new(kind, status, reason, message))
}

fn only_condition(
    status: ConditionStatus,
    reason: Reason,
    message: String,
) -> TaintStatus {
    TaintStatus {
        condition: set(status, reason, message),
        applied: None,
    }
}

/// No taint is desired and there is no Node.
fn nothing() -> TaintStatus {
    TaintStatus {
        condition: ConditionChange::Remove,
        applied: Some(Vec::new()),
    }
}

/// No fact is available that would change what was reported.
fn unchanged() -> TaintStatus {
    TaintStatus {
        condition: ConditionChange::Keep,
        applied: None,
    }
}

fn why_unobserved(case: &Case<'_>, machine: &Machine, name: &str) -> String {
    if let Some(why) = machine::why_untouchable(case, machine) {
        return why;
    }
    match (&case.observed.workload.access, &case.observed.workload.node) {
        (Access::Connected, Fact::Known(None)) => {
            format!("Node {name} does not exist yet")
        }
        (Access::Connected, Fact::Known(Some(_))) => {
            format!("Node {name} does not match the Machine")
        }
        _ => format!("Node {name} cannot be read"),
    }
}

fn count(number: usize) -> String {
    match number {
        1 => "the desired taint".to_owned(),
        number => format!("the {number} desired taints"),
    }
}

/// The message about taints that another client has set: those of the spec, and those that it no
/// longer contains.
fn conflict(node: &str, conflicts: &[NodeTaint], wanted: &[NodeTaint]) -> String {
    let is_wanted = |of: &&NodeTaint| wanted.iter().any(|desired| is_same(desired, of));
    let (desired, dropped): (Vec<_>, Vec<_>) = conflicts.iter().partition(is_wanted);
    let parts = [
        (desired, "applied on", "set", " or from spec.nodeTaints"),
        (dropped, "removed from", "changed", ""),
    ];
    let parts = parts.into_iter().filter(|(taints, ..)| !taints.is_empty());
    let all = parts.map(|(taints, step, done, place)| {
        let names = taints
            .iter()
            .map(|of| format!("{}:{}", of.key, of.effect.as_str()));
        let names = names.collect::<Vec<_>>().join(", ");
        format!(
            "not {step} Node {node}, because another client has {done} it: {names}; remove it \
             from the Node{place}"
        )
    });
    all.collect::<Vec<_>>().join("; ")
}
