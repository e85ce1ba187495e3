//! The writes after which events expire.

use crate::state::State;
use crate::store::Change;
use crate::work_queue::WorkItem;

/// Enqueues the expiry when an event is written and others have expired.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    if change.bucket == state.buckets.events && change.after.is_some() {
        let now = state.clock.now();
        if state.expiry.track(change, now) {
            state.queue.add(WorkItem::Expire);
        }
    }
}
