//! The queue of a kind that has a controller of its own.

use std::num::NonZeroUsize;

use fivespot_runtime::Key;
use fivespot_runtime::cache::Health;
use fivespot_runtime::lease::Fence;
use fivespot_runtime::queue::{Backoff, EVENT_TIMEOUT, ReconcileResult, WorkQueue};
use kubemu_clock::{Clock, after};

/// A reconcile in which nothing is left to do.
pub(crate) const DONE: ReconcileResult = ReconcileResult::Succeeded { requeue_at: None };

/// The queue of a kind, and the fence of its reconciles.
#[derive(Debug)]
pub(crate) struct OwnKind {
    pub(crate) name: &'static str,
    pub(crate) queue: WorkQueue,
    pub(crate) fence: Fence,
}

impl OwnKind {
    /// An empty queue. `max_concurrent` are reconciled at a time, none if not `is_enabled`.
    pub(crate) fn new(
        name: &'static str,
        clock: &Clock,
        backoff: Backoff,
        fence: &Fence,
        max_concurrent: NonZeroUsize,
        is_enabled: bool,
    ) -> Self {
        let queue = WorkQueue::new(clock.clone(), backoff, max_concurrent);
        Self {
            name,
            queue: if is_enabled { queue } else { queue.disabled() },
            fence: fence.of_kind(name),
        }
    }

    /// Enqueues these.
    pub(crate) fn enqueue(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.queue.enqueue(&key);
        }
    }

    /// How a reconcile ends that needs a list; the list enqueues the key.
    pub(crate) fn waiting(&self) -> ReconcileResult {
        let until = after(self.queue.now(), EVENT_TIMEOUT);
        ReconcileResult::Waiting { until }
    }

    /// How a reconcile ends that needs caches of which one is not synced; `None` if all are.
    pub(crate) fn unsynced<const N: usize>(
        &self,
        caches: [Health; N],
    ) -> Option<ReconcileResult> {
        if caches.iter().any(|of| matches!(of, Health::Failing(_))) {
            return Some(DONE);
        }
        let is_loading = caches.contains(&Health::Loading);
        is_loading.then(|| self.waiting())
    }
}
