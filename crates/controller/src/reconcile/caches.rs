//! Waiting for caches that do not show yet what was written.

use fivespot_plan::{Freshness, Plan};
use jiff::Timestamp;
use kubemu_clock::after;

use crate::context::Context;
use crate::observe::Snapshot;
use fivespot_runtime::Key;
use fivespot_runtime::queue::EVENT_TIMEOUT;

/// Records that observing succeeded and, if it was live, whether a name is taken.
pub(super) fn record_observation(context: &Context, key: &Key, snapshot: &Snapshot) {
    context.state(key, |state| {
        state.waiting_since = None;
        if snapshot.observed.freshness == Freshness::Live {
            state.has_name_conflict = !snapshot.conflicts.is_empty();
        }
    });
}

/// Objects that were created or deleted show in the watches, and that enqueues the key. Returns
/// when to reconcile if it does not.
pub(super) fn await_effect(context: &Context, key: &Key, plan: &Plan) -> Timestamp {
    let now = context.queue.now();
    context.state(key, |state| state.waiting_since = Some(now));
    let until = after(now, EVENT_TIMEOUT);
    plan.requeue_at
        .map_or(until, |requeue_at| requeue_at.min(until))
}

/// Whether the caches show all writes of this process.
pub(super) fn is_caught_up(context: &Context, key: &Key) -> bool {
    let mut expectations =
        context.state(key, |state| std::mem::take(&mut state.expectations));
    let is_settled = expectations.are_satisfied(|cache, object, written| {
        context
            .cache(cache)
            .is_none_or(|informer| informer.store.has_seen(object, written))
    });
    context.state(key, |state| state.expectations = expectations);
    is_settled
}

/// Until when a reconcile may be deferred. `None` if it has been deferred long enough.
pub(super) fn event_deadline(context: &Context, key: &Key) -> Option<Timestamp> {
    let now = context.clock.now();
    let since = context.state(key, |state| *state.waiting_since.get_or_insert(now));
    Some(after(since, EVENT_TIMEOUT)).filter(|until| *until > now)
}
