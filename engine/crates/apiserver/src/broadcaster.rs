//! Sends each write to the watchers of its resource.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kubemu_clock::{Busy, Clock};
use tokio::sync::mpsc;

use crate::meta;
use crate::selector::Filter;
use crate::store::{Bucket, Change, Object};

/// The maximum number of undelivered events of a watcher. Above it the watch is ended; the
/// watcher can resume from the last event that it received.
const BACKLOG: usize = 65_536;

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The object exists, or matches the selector after a change.
    Added,
    /// The object has changed.
    Modified,
    /// The object was deleted, or does not match the selector after a change.
    Deleted,
    /// No change; the object carries a resourceVersion to resume from.
    Bookmark,
}

impl EventKind {
    /// The event type in the response, such as `ADDED`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
        }
    }
}

/// The writes that a watcher selects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Empty for all namespaces.
    pub(crate) namespace: String,
    pub(crate) filter: Filter,
}

impl Scope {
    /// The event that a watcher of this scope receives for `change`; `None` if it receives
    /// none.
    pub(crate) fn event_of(&self, change: &Arc<Change>) -> Option<ChangeEvent> {
        if !self.namespace.is_empty() && *self.namespace != *change.key.namespace {
            return None;
        }
        let matches =
            |it: &Option<Object>| it.as_ref().is_some_and(|it| self.filter.matches(it));
        let event = |kind, object| ChangeEvent {
            kind,
            object,
            change: change.clone(),
        };
        match (matches(&change.before), matches(&change.after)) {
            (false, false) => None,
            (false, true) => Some(event(EventKind::Added, None)),
            (true, true) => Some(event(EventKind::Modified, None)),
            (true, false) if change.after.is_none() => {
                Some(event(EventKind::Deleted, None))
            }
            (true, false) => {
                // The object left the selection: the watcher receives the last state that
                // matched.
                let mut last = change.before.as_deref().cloned().unwrap_or_default();
                meta::set(&mut last, "resourceVersion", change.version.to_string());
                Some(event(EventKind::Deleted, Some(Arc::new(last))))
            }
        }
    }
}

/// One event for one watcher.
#[derive(Debug)]
pub(crate) struct ChangeEvent {
    pub(crate) kind: EventKind,
    /// The object to send in place of the one of the change.
    pub(crate) object: Option<Object>,
    pub(crate) change: Arc<Change>,
}

impl ChangeEvent {
    pub(crate) fn object(&self) -> &Object {
        self.object.as_ref().unwrap_or(&self.change.object)
    }
}

/// An event in delivery; a virtual clock waits until it has been handled.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) event: ChangeEvent,
    pub(crate) busy: Option<Busy>,
}

/// What a watcher receives.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) events: mpsc::Receiver<Delivery>,
    /// The version of the last write to any resource. What the watcher selects of the writes up
    /// to it is among the events.
    pub(crate) published: Arc<AtomicU64>,
}

/// All open watches.
#[derive(Debug, Default)]
pub(crate) struct Broadcaster {
    watchers: BTreeMap<Bucket, Vec<Watcher>>,
    /// The version of the last write.
    published: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Watcher {
    scope: Scope,
    send: mpsc::Sender<Delivery>,
    hold: Option<Clock>,
}

impl Broadcaster {
    /// Delivers all later writes to `bucket` that match `scope`. With a clock, each
    /// undelivered event holds it.
    pub(crate) fn subscribe(
        &mut self,
        bucket: Bucket,
        scope: Scope,
        hold: Option<Clock>,
    ) -> Subscription {
        let (send, receive) = mpsc::channel(BACKLOG);
        let watchers = self.watchers.entry(bucket).or_default();
        watchers.retain(|it| !it.send.is_closed());
        watchers.push(Watcher { scope, send, hold });
        Subscription {
            events: receive,
            published: self.published.clone(),
        }
    }

    /// Sends a write to the watchers. Watchers that are closed or too far behind are dropped.
    pub(crate) fn publish(&mut self, change: &Arc<Change>) {
        if let Some(watchers) = self.watchers.get_mut(&change.bucket) {
            watchers.retain(|watcher| {
                let Some(event) = watcher.scope.event_of(change) else {
                    return true;
                };
                let busy = watcher.hold.as_ref().map(Clock::busy);
                watcher.send.try_send(Delivery { event, busy }).is_ok()
            });
        }
        self.published.store(change.version, Ordering::Release);
    }

    /// Ends every watch of a bucket. What was sent before is still received.
    pub(crate) fn end(&mut self, bucket: Bucket) {
        self.watchers.remove(&bucket);
    }
}
