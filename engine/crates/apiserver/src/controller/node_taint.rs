//! Removes the not-ready taint of nodes that are ready (pkg/controller/nodelifecycle). The other
//! taints that follow the conditions of a node in a real cluster are not set here.

use serde_json::{Value, json};

use super::Controller;
use super::disruption::is_ready;
use super::queue::WorkItem;
use crate::index::Location;
use crate::meta;
use crate::plugin::taint_nodes_by_condition::NOT_READY;
use crate::state::State;
use crate::store::{Change, Key};

/// Enqueues a node that is ready and has the taint.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    if change.bucket == state.buckets.nodes
        && change.after.as_deref().is_some_and(is_ready_and_tainted)
    {
        state.queue.add(WorkItem::Node(change.key.clone()));
    }
}

fn is_not_ready_taint(taint: &Value) -> bool {
    taint["key"] == NOT_READY && taint["effect"] == "NoSchedule"
}

fn taints(node: &Value) -> impl Iterator<Item = &Value> {
    node["spec"]["taints"].as_array().into_iter().flatten()
}

fn is_ready_and_tainted(node: &Value) -> bool {
    is_ready(node) && taints(node).any(is_not_ready_taint)
}

/// Removes the taint of a node that is ready.
pub(super) fn reconcile(state: &mut State, key: &Key) {
    let bucket = state.buckets.nodes;
    let Some(node) = state.get(bucket, key).cloned() else {
        return;
    };
    if !is_ready_and_tainted(&node) {
        return;
    }
    let remaining: Vec<&Value> =
        taints(&node).filter(|it| !is_not_ready_taint(it)).collect();
    let remaining = if remaining.is_empty() {
        Value::Null
    } else {
        json!(remaining)
    };
    let patch =
        json!({"metadata": {"uid": meta::uid(&node)}, "spec": {"taints": remaining}});
    let location = Location::new(bucket, key.clone());
    if let Err(refused) = Controller::Nodes.patch(state, &location, patch) {
        tracing::debug!(%refused, name = %key.name, "node taint not removed");
        state.queue.retry_later(WorkItem::Node(key.clone()));
    }
}
