//! The writes after which a taint of a node is removed.

use serde_json::Value;

use crate::condition::is_ready;
use crate::kind::node::NOT_READY;
use crate::state::State;
use crate::store::Change;
use crate::work_queue::WorkItem;

/// Enqueues a node that is ready and has the taint.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    if change.bucket == state.buckets.nodes
        && change.after.as_deref().is_some_and(is_ready_and_tainted)
    {
        state.queue.add(WorkItem::Node(change.key.clone()));
    }
}

pub(crate) fn is_not_ready_taint(taint: &Value) -> bool {
    taint["key"] == NOT_READY && taint["effect"] == "NoSchedule"
}

pub(crate) fn taints(node: &Value) -> impl Iterator<Item = &Value> {
    node["spec"]["taints"].as_array().into_iter().flatten()
}

pub(crate) fn is_ready_and_tainted(node: &Value) -> bool {
    is_ready(node) && taints(node).any(is_not_ready_taint)
}
