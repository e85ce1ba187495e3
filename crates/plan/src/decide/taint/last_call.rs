//! The last call: the taint on the Node of a machine that is soon no longer needed, and the
//! annotation with the time until which it is needed.
//!
//! It is added and removed with the taints of the spec while the machine is served. When the
//! machine is shut down it is removed in the patch that cordons the Node, else in a separate
//! patch.

use fivespot_api::{NodeTaint, TaintEffect, name};
use fivespot_capi::Machine;

use super::change::{Change, is_same};
use super::{change_of, recorded};
use crate::act::write;
use crate::decide::case::Case;
use crate::decide::machine;
use crate::decide::{outcome::Outcome, outcome::ShutdownChange};
use crate::{Action, Event, Node, Step};

/// The taint: pods are scheduled elsewhere if possible.
pub(crate) fn taint() -> NodeTaint {
    NodeTaint {
        key: name::LAST_CALL_TAINT.to_owned(),
        value: String::new(),
        effect: TaintEffect::PreferNoSchedule,
    }
}

/// The Warning that the Node announces the last call without its taint, because another client
/// has set that taint. It is published with the write that announces the last call.
pub(crate) fn conflict(
    case: &Case<'_>,
    machine: &Machine,
    actions: &[Action],
) -> Option<Event> {
    let mut steps = actions.iter().map(|action| action.step);
    if !steps.any(|step| step == Step::TaintNode) {
        return None;
    }
    let node = machine::node(case, machine)?;
    let end = case.leaves_at()?;
    let next = change_of(case, node, case.desired.taints.as_ref().ok()?);
    let taint = taint();
    let is_conflict = next.conflicts.iter().any(|of| is_same(of, &taint));
    let note = format!(
        "the machine is needed until {end}, and Node {} does not get the last-call taint {}:{}, \
         because another client has set it; remove it from the Node",
        node.name,
        taint.key,
        taint.effect.as_str(),
    );
    is_conflict.then(|| Event::warning("LastCallConflict", "TaintNode", &note))
}

/// Removes the last call from the Node of a machine that is shut down, once the record is
/// stored: in the patch that cordons the Node if that is sent now, else in addition to writes to
/// other objects.
pub(crate) fn remove(case: &Case<'_>, mut outcome: Outcome) -> Outcome {
    let is_being_written = matches!(outcome.shutdown, ShutdownChange::Write(_));
    let machine = case.owned.our_machine().filter(|_| !is_being_written);
    let node = machine.and_then(|machine| machine::node(case, machine));
    let removal = node.and_then(|node| Some((node, change_without(case, node)?)));
    let Some((node, change)) = removal else {
        return outcome;
    };
    let mut on_node = outcome
        .actions
        .iter_mut()
        .filter(|action| action.request.target.object.kind == "Node");
    match on_node.next() {
        Some(action) if action.step == Step::CordonNode => {
            *action = write::cordon_without_last_call(node, case.subject, &change);
        }
        // Each write to the Node is guarded by its resourceVersion: one at a time.
        Some(_) => {}
        None => outcome.actions.push(write::taint(node, &change, None)),
    }
    outcome
}

/// The Node's taints without that of the last call, if it is ours; `None` if the Node has nothing
/// of the last call.
fn change_without(case: &Case<'_>, node: &Node) -> Option<Change> {
    let taint = taint();
    let is_taint = |of: &NodeTaint| is_same(of, &taint);
    let record = recorded(node);
    let is_ours = record.iter().any(is_taint) && is_named(case);
    if !is_ours && node.leaves_at.is_none() {
        return None;
    }
    let mut change = Change {
        taints: node.taints.clone(),
        record,
        ..Change::default()
    };
    if is_ours {
        change.record.retain(|of| !is_taint(of));
        // A taint with another value was set by another client.
        change.taints.retain(|of| {
            (&of.key, of.effect.as_str(), of.value.as_str())
                != (&taint.key, taint.effect.as_str(), "")
        });
    }
    Some(change)
}

/// Whether the status lists the taint.
fn is_named(case: &Case<'_>) -> bool {
    let named = &case.subject.status.applied_node_taints;
    named.iter().any(|of| is_same(of, &taint()))
}

/// What the status of a machine that is shut down lists of our taints: `ours`, and that of the
/// last call for as long as there is a Node, so that its removal needs no separate status write.
pub(crate) fn applied_during_shutdown(
    case: &Case<'_>,
    mut ours: Vec<NodeTaint>,
) -> Vec<NodeTaint> {
    let taint = taint();
    if is_named(case) && !ours.contains(&taint) {
        ours.push(taint);
        ours.sort();
    }
    ours
}
