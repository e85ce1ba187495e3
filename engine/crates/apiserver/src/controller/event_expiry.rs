//! Deletes events an hour after they were last written (`--event-ttl`).

use jiff::{SignedDuration, Timestamp};
use rpds::QueueSync;

use super::queue::WorkItem;
use crate::meta;
use crate::state::State;
use crate::store::{Change, Key};

/// How long an event is kept (kube-apiserver's default `--event-ttl`).
const EVENT_TTL: SignedDuration = SignedDuration::from_hours(1);

/// The events in the order in which they expire.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventExpiry(QueueSync<ExpiringEvent>);

#[derive(Clone, Debug)]
struct ExpiringEvent {
    at: Timestamp,
    key: Key,
    /// The resourceVersion of this write. A later write has its own entry.
    version: String,
}

impl EventExpiry {
    /// Adds a written event. Returns whether events have expired.
    fn track(&mut self, change: &Change, now: Timestamp) -> bool {
        self.0.enqueue_mut(ExpiringEvent {
            at: now.saturating_add(EVENT_TTL).unwrap_or(Timestamp::MAX),
            key: change.key.clone(),
            version: meta::version(&change.object).to_owned(),
        });
        self.0.peek().is_some_and(|it| it.at <= now)
    }
}

/// Enqueues the expiry when an event is written and others have expired.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    if change.bucket == state.buckets.events && change.after.is_some() {
        let now = state.clock.now();
        if state.expiry.track(change, now) {
            state.queue.add(WorkItem::Expire);
        }
    }
}

/// Deletes the expired events. Triggered by the next write of an event, not earlier: an idle server
/// has no timer.
pub(super) fn delete_expired(state: &mut State) {
    let now = state.clock.now();
    let events = state.buckets.events;
    while let Some(due) = state.expiry.0.peek().cloned().filter(|it| it.at <= now) {
        state.expiry.0.dequeue_mut();
        let current = state.get(events, &due.key);
        if current.is_some_and(|it| meta::version(it) == due.version) {
            state.remove(events, &due.key);
        }
    }
}
