//! The Node's taints: which of them are ours, and what becomes of them.
//!
//! A taint is identified by key and effect. The record on the Node says which taints we have put
//! there, and with which value; it is written together with the taints in one guarded patch, so
//! that it never says anything else than what is there. A taint that is not on record is
//! somebody else's, also where it looks exactly like one that is asked for.

use std::fmt::Write as _;

use fivespot_api::condition::{ConditionStatus, ConditionType, Finding, Reason};
use fivespot_api::{MOST_TAINTS, NodeTaint, rules};
use fivespot_capi::Machine;

use crate::case::Case;
use crate::{Access, Action, Fact, Node, Step, Taint, machine, write};

/// What becomes of a Node's taints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// All taints afterwards, ours and others', in the order of the Node; new ones last.
    pub(crate) taints: Vec<Taint>,
    /// Those that are ours afterwards.
    pub(crate) record: Vec<NodeTaint>,
    /// Those of ours or of the spec that somebody else holds, and that are left alone.
    pub(crate) conflicts: Vec<NodeTaint>,
}

/// Compares what is asked for and what is on record with what is there.
pub(crate) fn change(
    wanted: &[NodeTaint],
    record: &[NodeTaint],
    node: &[Taint],
) -> Change {
    let mut next = Change {
        taints: node.to_vec(),
        record: Vec::new(),
        conflicts: Vec::new(),
    };
    for want in wanted {
        let ours = record.iter().find(|ours| is_same(ours, want));
        let there = next.taints.iter_mut().find(|there| is_at(there, want));
        match (there, ours) {
            (None, _) => {
                next.taints.push(Taint {
                    key: want.key.clone(),
                    value: want.value.clone(),
                    effect: want.effect.as_str().to_owned(),
                    time_added: None,
                });
                next.record.push(want.clone());
            }
            (Some(there), Some(ours))
                if there.value == want.value || there.value == ours.value =>
            {
                there.value.clone_from(&want.value);
                next.record.push(want.clone());
            }
            (Some(_), Some(ours)) => {
                next.conflicts.push(want.clone());
                next.record.push(ours.clone());
            }
            (Some(_), None) => next.conflicts.push(want.clone()),
        }
    }
    let dropped = record
        .iter()
        .filter(|ours| !wanted.iter().any(|want| is_same(want, ours)));
    for ours in dropped {
        let there = next.taints.iter().find(|there| is_at(there, ours));
        if there.is_some_and(|there| there.value != ours.value) {
            next.conflicts.push(ours.clone());
            next.record.push(ours.clone());
        } else {
            next.taints.retain(|there| !is_at(there, ours));
        }
    }
    next.record.sort();
    next.conflicts.sort();
    next
}

fn is_same(one: &NodeTaint, other: &NodeTaint) -> bool {
    (&one.key, one.effect) == (&other.key, other.effect)
}

fn is_at(there: &Taint, taint: &NodeTaint) -> bool {
    there.key == taint.key && there.effect == taint.effect.as_str()
}

/// What the record on a Node says. One that cannot be read says nothing: whoever broke it has
/// made our taints theirs. Taints that nobody may ask for were never ours, whoever wrote them, nor
/// were more than anybody may ask for: the status, which repeats the record, could not be written.
pub(crate) fn recorded(node: &Node) -> Vec<NodeTaint> {
    let text = node.applied_taints.as_deref().unwrap_or_default();
    let mut all: Vec<NodeTaint> = serde_json::from_str(text).unwrap_or_default();
    all.retain(rules::is_acceptable_taint);
    all.sort_by(|one, other| (&one.key, one.effect).cmp(&(&other.key, other.effect)));
    all.dedup_by(|one, other| is_same(one, other));
    all.truncate(MOST_TAINTS);
    all.sort();
    all
}

/// What is to be done about the taints of the Node of our Machine; none if they are as they
/// should be, or nothing can be done now.
pub(crate) fn action(case: &Case<'_>, machine: &Machine) -> Option<Action> {
    let node = machine::node(case, machine).filter(|node| node.is_ready)?;
    let wanted = case.want.taints.as_ref().ok()?;
    let before = recorded(node);
    let next = change(wanted, &before, &node.taints);
    let is_settled = next.taints == node.taints && next.record == before;
    (!is_settled).then(|| write::taint(node, &next))
}

/// What the status tells of the taints.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    /// The condition; none where there is nothing to tell.
    pub(crate) finding: Option<Finding>,
    /// The record as it is on the Node; none where that is not known, or about to change in a
    /// later step.
    pub(crate) applied: Option<Vec<NodeTaint>>,
}

/// What is told after `actions` have been taken; none where what was told before stays.
pub(crate) fn told(case: &Case<'_>, actions: &[Action]) -> Option<Told> {
    let wanted = match &case.want.taints {
        Ok(wanted) => wanted,
        Err(fault) => {
            let told = format!("{fault}; no taint is touched");
            return Some(say(ConditionStatus::False, Reason::InvalidSpec, told));
        }
    };
    let unknown = |message: String| {
        let unknown = || say(ConditionStatus::Unknown, Reason::NoNodeYet, message);
        (!wanted.is_empty()).then(unknown)
    };
    let machine = case.triple.our_machine();
    let Some((machine, link)) = machine.and_then(|of| Some((of, of.node.as_ref()?)))
    else {
        return unknown("there is no Node".to_owned()).or_else(|| Some(nothing()));
    };
    let Some(node) = machine::node(case, machine) else {
        let is_known = case.seen.workload.node.known().is_some();
        return unknown(why_unseen(case, &link.name)).or_else(|| is_known.then(nothing));
    };
    told_of(case, (node, wanted), actions)
}

/// What is told of a Node that can be seen.
fn told_of(
    case: &Case<'_>,
    (node, wanted): (&Node, &[NodeTaint]),
    actions: &[Action],
) -> Option<Told> {
    let before = recorded(node);
    let next = change(wanted, &before, &node.taints);
    let is_taken = actions.iter().any(|action| action.step == Step::TaintNode);
    let is_settled = is_taken || next.taints == node.taints && next.record == before;
    let failure = case.memory.failure(Step::TaintNode);
    let name = &node.name;
    let finding = if wanted.is_empty() && next.conflicts.is_empty() && is_settled {
        nothing()
    } else if !node.is_ready {
        let told = format!("Node {name} is not ready; it is tainted when it is");
        say(ConditionStatus::False, Reason::NodeNotReady, told)
    } else if let (false, Some(failure)) = (is_settled, failure) {
        let told = format!("cannot taint Node {name}: {}", failure.message);
        say(ConditionStatus::False, Reason::PatchFailed, told)
    } else if !is_settled {
        return None;
    } else if next.conflicts.is_empty() {
        let told = format!("Node {name} bears {}", count(wanted.len()));
        say(ConditionStatus::True, Reason::Applied, told)
    } else {
        let told = conflict(name, &next.conflicts);
        say(ConditionStatus::False, Reason::TaintOwnershipConflict, told)
    };
    let mut applied = if is_taken { next.record } else { before };
    // What others hold of an earlier record comes on top of what is asked for now.
    applied.truncate(MOST_TAINTS);
    Some(Told {
        applied: Some(applied),
        ..finding
    })
}

fn say(status: ConditionStatus, reason: Reason, message: String) -> Told {
    let kind = ConditionType::NodeTainted;
    Told {
        finding: Some(Finding::new(kind, status, reason, message)),
        applied: None,
    }
}

/// Nothing is asked for and nothing is there.
fn nothing() -> Told {
    Told {
        finding: None,
        applied: Some(Vec::new()),
    }
}

fn why_unseen(case: &Case<'_>, name: &str) -> String {
    match (&case.seen.workload.access, &case.seen.workload.node) {
        (Access::Connected, Fact::Known(None)) => format!("Node {name} is not there yet"),
        (Access::Connected, Fact::Known(Some(_))) => {
            format!("Node {name} is not known to be the Machine's")
        }
        _ => format!("Node {name} cannot be read"),
    }
}

fn count(number: usize) -> String {
    match number {
        1 => "the taint asked for".to_owned(),
        number => format!("the {number} taints asked for"),
    }
}

fn conflict(node: &str, conflicts: &[NodeTaint]) -> String {
    let mut told =
        format!("left alone on Node {node}, because somebody else has set it:");
    for (place, taint) in conflicts.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let _ = write!(told, "{comma} {}:{}", taint.key, taint.effect.as_str());
    }
    told.push_str("; remove it from the Node or from spec.nodeTaints");
    told
}

#[cfg(test)]
mod tests;
