//! When events expire.

use jiff::{SignedDuration, Timestamp};
use rpds::QueueSync;

use crate::meta;
use crate::store::{Change, Key};

/// How long an event is kept (kube-apiserver's default `--event-ttl`).
const EVENT_TTL: SignedDuration = SignedDuration::from_hours(1);

/// The events in the order in which they expire.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventExpiry(QueueSync<ExpiringEvent>);

#[derive(Clone, Debug)]
pub(crate) struct ExpiringEvent {
    at: Timestamp,
    pub(crate) key: Key,
    /// The resourceVersion of this write. A later write has its own entry.
    pub(crate) version: String,
}

impl EventExpiry {
    /// Adds a written event. Returns whether events have expired.
    pub(crate) fn track(&mut self, change: &Change, now: Timestamp) -> bool {
        self.0.enqueue_mut(ExpiringEvent {
            at: now.saturating_add(EVENT_TTL).unwrap_or(Timestamp::MAX),
            key: change.key.clone(),
            version: meta::version(&change.object).to_owned(),
        });
        self.0.peek().is_some_and(|it| it.at <= now)
    }

    /// Removes the next of the expired events.
    pub(crate) fn take_expired(&mut self, now: Timestamp) -> Option<ExpiringEvent> {
        let due = self.0.peek().filter(|it| it.at <= now).cloned();
        if due.is_some() {
            self.0.dequeue_mut();
        }
        due
    }
}
