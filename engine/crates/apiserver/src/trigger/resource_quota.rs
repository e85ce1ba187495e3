//! The writes after which the usage of quotas is counted.

use crate::state::State;
use crate::store::{Change, Object, Range};
use crate::work_queue::WorkItem;

/// Enqueues the namespace of a written quota, and the namespace of any other written object if it
/// has quotas.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    let namespace = &*change.key.namespace;
    if namespace.is_empty() || change.bucket == state.buckets.events {
        return;
    }
    let is_quota = change.bucket == state.buckets.quotas && change.after.is_some();
    if is_quota || !quotas(state, namespace).is_empty() {
        state.queue.add(WorkItem::Quotas(namespace.to_owned()));
    }
}

pub(crate) fn quotas(state: &State, namespace: &str) -> Vec<Object> {
    let range = Range {
        namespace: Some(namespace),
        after: None,
    };
    let found = state.store.list(state.buckets.quotas, &range, None);
    let found = found.into_iter().flatten();
    found.map(|(_, quota)| quota.clone()).collect()
}
