//! Deletes events an hour after they were last written (`--event-ttl`).

use crate::meta;
use crate::state::State;

/// Deletes the expired events. Triggered by the next write of an event, not earlier: an idle server
/// has no timer.
pub(super) fn delete_expired(state: &mut State) {
    let now = state.clock.now();
    let events = state.buckets.events;
    while let Some(due) = state.expiry.take_expired(now) {
        let current = state.get(events, &due.key);
        if current.is_some_and(|it| meta::version(it) == due.version) {
            state.remove(events, &due.key);
        }
    }
}
