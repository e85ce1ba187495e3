//! The writes after which a policy is type-checked.

use crate::state::State;
use crate::store::Change;
use crate::work_queue::WorkItem;

/// Enqueues a policy that is written.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    if change.bucket == state.buckets.policies && change.after.is_some() {
        state.queue.add(WorkItem::Policy(change.key.clone()));
    }
}
