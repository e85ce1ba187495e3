//! Sends each write to the watchers of its resource.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use kubemu_clock::{Busy, Clock};
use tokio::sync::mpsc;

use crate::meta;
use crate::selector::Filter;
use crate::store::{Bucket, Change, Object};

/// The maximum number of undelivered events of a watcher. Above it the watch is ended; the
/// watcher can resume from the last event that it received.
const BACKLOG: usize = 65_536;

/// The maximum size of the undelivered events of a watcher together, in bytes of memory, which it
/// keeps there. One event is undelivered whatever its size is.
const BACKLOG_BYTES: usize = 64 * 1024 * 1024;

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
    pub(crate) undelivered: Undelivered,
}

/// The size of an event that has not been delivered; it counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Undelivered {
    size: usize,
    backlog: Arc<AtomicUsize>,
}

impl Undelivered {
    /// `None` if the backlog has no room for an event of `size` bytes.
    fn add(size: usize, backlog: &Arc<AtomicUsize>) -> Option<Self> {
        // Only the broadcaster adds to it.
        let others = backlog.fetch_add(size, Ordering::AcqRel);
        let added = Self {
            size,
            backlog: backlog.clone(),
        };
        (others == 0 || others + size <= BACKLOG_BYTES).then_some(added)
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        self.backlog.fetch_sub(self.size, Ordering::AcqRel);
    }
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
    /// The size of the undelivered events.
    backlog: Arc<AtomicUsize>,
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
        watchers.push(Watcher {
            scope,
            send,
            backlog: Arc::default(),
            hold,
        });
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
                // An object of its own is one that was left, about as large as the other.
                let Some(undelivered) = Undelivered::add(change.size, &watcher.backlog)
                else {
                    return false;
                };
                let busy = watcher.hold.as_ref().map(Clock::busy);
                let delivery = Delivery {
                    event,
                    busy,
                    undelivered,
                };
                watcher.send.try_send(delivery).is_ok()
            });
        }
        self.published.store(change.version, Ordering::Release);
    }

    /// Ends every watch of a bucket. What was sent before is still received.
    pub(crate) fn end(&mut self, bucket: Bucket) {
        self.watchers.remove(&bucket);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource::GroupResource;
    use crate::store::{Key, Store};

    #[test]
    fn a_watcher_that_does_not_read_is_ended_at_a_size() {
        let mut store = Store::new(100);
        let bucket = store.bucket(&GroupResource::new("", "things"));
        let large = json!({"data": "x".repeat(16 * 1024 * 1024)});
        let mut broadcaster = Broadcaster::default();
        let mut slow = broadcaster.subscribe(bucket, Scope::default(), None);
        let mut quick = broadcaster.subscribe(bucket, Scope::default(), None);
        for _ in 0..8 {
            let change = store.put(bucket, Key::new("a", "1"), large.clone());
            broadcaster.publish(&change);
            assert_eq!(
                quick.events.try_recv().unwrap().event.change.version,
                change.version
            );
        }
        let mut received = 0;
        while slow.events.try_recv().is_ok() {
            received += 1;
        }
        assert_eq!(received, 3);
        assert!(slow.events.is_closed());
        assert!(!quick.events.is_closed());
    }
}
