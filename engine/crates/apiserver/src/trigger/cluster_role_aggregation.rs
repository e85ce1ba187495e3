//! The writes after which cluster roles are aggregated.

use crate::state::State;
use crate::store::Change;
use crate::work_queue::WorkItem;

/// Enqueues the aggregated roles when a cluster role is written.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    if change.bucket == state.buckets.cluster_roles {
        state.queue.add(WorkItem::Aggregate);
    }
}
