//! Removes the not-ready taint of nodes that are ready (pkg/controller/nodelifecycle). The other
//! taints that follow the conditions of a node in a real cluster are not set here.

use serde_json::{Value, json};

use super::Controller;
use crate::index::Location;
use crate::meta;
use crate::state::State;
use crate::store::Key;
use crate::trigger::node_taint::{is_not_ready_taint, is_ready_and_tainted, taints};
use crate::work_queue::WorkItem;

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
