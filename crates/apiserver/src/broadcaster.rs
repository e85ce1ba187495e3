//! Sends each write to watchers as it happens.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_clock::{Busy, Clock};
use tokio::sync::mpsc;

use crate::meta;
use crate::selector::Filter;
use crate::store::{Bucket, Change, Object};

/// How many undelivered events a watcher may have before its watch is ended; it can then
/// go on from the last one that it got.
const BACKLOG: usize = 65_536;

/// What a watcher sees of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The object is there, or has come into the selection.
    Added,
    /// The object has changed.
    Modified,
    /// The object is gone, or has left the selection.
    Deleted,
    /// Nothing happened; the object carries a version to go on from.
    Bookmark,
}

impl EventKind {
    /// The word on the wire, such as `ADDED`.
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
    /// The event that a watcher of this scope gets for `change`; `None` for none.
    pub(crate) fn see(&self, change: &Arc<Change>) -> Option<Seen> {
        if !self.namespace.is_empty() && *self.namespace != *change.key.namespace {
            return None;
        }
        let matches =
            |it: &Option<Object>| it.as_ref().is_some_and(|it| self.filter.matches(it));
        let seen = |kind, object| Seen {
            kind,
            object,
            change: change.clone(),
        };
        match (matches(&change.before), matches(&change.after)) {
            (false, false) => None,
            (false, true) => Some(seen(EventKind::Added, None)),
            (true, true) => Some(seen(EventKind::Modified, None)),
            (true, false) if change.after.is_none() => {
                Some(seen(EventKind::Deleted, None))
            }
            (true, false) => {
                // It left the selection: the watcher is shown the state that it knew.
                let mut last = change.before.as_deref().cloned().unwrap_or_default();
                meta::set(&mut last, "resourceVersion", change.version.to_string());
                Some(seen(EventKind::Deleted, Some(Arc::new(last))))
            }
        }
    }
}

/// One event for one watcher.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) kind: EventKind,
    /// What is shown in place of what the change has.
    pub(crate) object: Option<Object>,
    pub(crate) change: Arc<Change>,
}

impl Seen {
    pub(crate) fn object(&self) -> &Object {
        self.object.as_ref().unwrap_or(&self.change.object)
    }
}

/// An event on its way; a virtual clock waits until it has been handled.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) seen: Seen,
    pub(crate) busy: Option<Busy>,
}

/// All live watches.
#[derive(Debug, Default)]
pub(crate) struct Broadcaster {
    watchers: BTreeMap<Bucket, Vec<Watcher>>,
}

#[derive(Debug)]
struct Watcher {
    scope: Scope,
    send: mpsc::Sender<Delivery>,
    hold: Option<Clock>,
}

impl Broadcaster {
    /// Delivers every write to `bucket` that `scope` wants from now on. With a clock, each
    /// undelivered event holds it.
    pub(crate) fn subscribe(
        &mut self,
        bucket: Bucket,
        scope: Scope,
        hold: Option<Clock>,
    ) -> mpsc::Receiver<Delivery> {
        let (send, receive) = mpsc::channel(BACKLOG);
        let watchers = self.watchers.entry(bucket).or_default();
        watchers.retain(|it| !it.send.is_closed());
        watchers.push(Watcher { scope, send, hold });
        receive
    }

    /// Sends a write to the watches. Watchers that are gone, or too far behind, are dropped.
    pub(crate) fn publish(&mut self, change: &Arc<Change>) {
        let Some(watchers) = self.watchers.get_mut(&change.bucket) else {
            return;
        };
        watchers.retain(|watcher| {
            let Some(seen) = watcher.scope.see(change) else {
                return true;
            };
            let busy = watcher.hold.as_ref().map(Clock::busy);
            watcher.send.try_send(Delivery { seen, busy }).is_ok()
        });
    }

    /// Ends every watch of a bucket: what it held is no longer served.
    pub(crate) fn end(&mut self, bucket: Bucket) {
        self.watchers.remove(&bucket);
    }
}
