//! What a reconcile waits for: caches that do not show yet what was written.

use fivespot_clock::after;
use fivespot_plan::{Freshness, Plan};
use jiff::Timestamp;

use crate::context::Context;
use crate::observe::Snapshot;
use fivespot_runtime::Key;
use fivespot_runtime::queue::EVENT_TIMEOUT;

/// Notes that a look succeeded, and of a live one whether a name is taken.
pub(super) fn note_look(context: &Context, key: &Key, snapshot: &Snapshot) {
    context.state(key, |state| {
        state.waiting_since = None;
        if snapshot.observed.freshness == Freshness::Live {
            state.has_name_conflict = Some(!snapshot.conflicts.is_empty());
        }
    });
}

/// What was made or taken away shows through the watches, and wakes the key. When to look if it
/// does not.
pub(super) fn await_effect(context: &Context, key: &Key, plan: &Plan) -> Timestamp {
    let now = context.queue.now();
    context.state(key, |state| state.waiting_since = Some(now));
    let until = after(now, EVENT_TIMEOUT);
    plan.wake.map_or(until, |wake| wake.min(until))
}

/// Whether the caches show everything that we have written.
pub(super) fn is_caught_up(context: &Context, key: &Key) -> bool {
    let mut expectations =
        context.state(key, |state| std::mem::take(&mut state.expectations));
    let is_settled = expectations.are_met(|cache, object, written| {
        context
            .cache(cache)
            .is_none_or(|informer| informer.store.has_seen(object, written))
    });
    context.state(key, |state| state.expectations = expectations);
    is_settled
}

/// Until when a reconcile may be put off; none when it has been put off long enough.
pub(super) fn event_deadline(context: &Context, key: &Key) -> Option<Timestamp> {
    let now = context.clock.now();
    let since = context.state(key, |state| *state.waiting_since.get_or_insert(now));
    Some(after(since, EVENT_TIMEOUT)).filter(|until| *until > now)
}
