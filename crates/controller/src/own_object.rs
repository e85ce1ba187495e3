//! What the controllers of the kinds beside ScheduledMachines have in common: a queue, a fence, and
//! the writes to the own object.

use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::Arc;

use fivespot_plan::Event;

use fivespot_runtime::Key;
use fivespot_runtime::cache::{CacheProjection as _, Health};
use fivespot_runtime::http::Address;
use fivespot_runtime::lease::{Fence, Fenced};
use fivespot_runtime::queue::{Backoff, EVENT_TIMEOUT, ReconcileResult, WorkQueue};
use jiff::Timestamp;
use kubemu_clock::{Busy, Clock, after};
use serde::Serialize;
use serde_json::Value;
use tracing::{Instrument as _, Span};

use crate::context::Context;
use crate::failure;
use crate::observe::projection::Object;
use crate::observe::watch::KindInformer;
use crate::report::{Regarding, create_event};
use crate::status_patch::status_patch;

/// A reconcile in which nothing is left to do.
pub(crate) const DONE: ReconcileResult = ReconcileResult::Succeeded { requeue_at: None };

/// The queue of a kind, and the fence of its reconciles.
#[derive(Debug)]
pub(crate) struct OwnKind {
    pub(crate) queue: WorkQueue,
    fence: Fence,
}

impl OwnKind {
    /// An empty queue. `max_concurrent` are reconciled at a time, none if not `is_enabled`.
    pub(crate) fn new(
        clock: &Clock,
        backoff: Backoff,
        fence: Fence,
        max_concurrent: NonZeroUsize,
        is_enabled: bool,
    ) -> Self {
        let queue = WorkQueue::new(clock.clone(), backoff, max_concurrent);
        Self {
            queue: if is_enabled { queue } else { queue.disabled() },
            fence,
        }
    }

    /// Enqueues these.
    pub(crate) fn enqueue(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.queue.enqueue(&key);
        }
    }

    /// Awaits a reconcile of `own` and puts its key back into the queue.
    pub(crate) async fn reconcile(
        &self,
        own: &Key,
        busy: Busy,
        span: Span,
        work: impl Future<Output = ReconcileResult>,
    ) {
        drop(busy);
        let result = self.queue.charging(own, work.instrument(span)).await;
        self.queue.finish(own, result);
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

/// The object of a reconcile, as its cache shows it.
pub(crate) struct OwnObject<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) informer: &'a KindInformer,
    pub(crate) of_kind: &'a OwnKind,
    pub(crate) key: &'a Key,
    pub(crate) found: &'a Object,
    /// The JSON of `found`.
    pub(crate) stored: &'a Value,
}

/// What becomes of the object.
pub(crate) enum Change<S> {
    /// Its status is this one.
    Status(S),
    /// It is deleted.
    Deletion,
}

/// How a write of the object ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnWrite {
    /// There was nothing to write, or another replica writes now.
    None,
    /// It is written.
    Done,
    /// The object has changed, or is gone.
    Outdated,
    /// The server refused it or did not respond; that is logged.
    Failed,
}

impl OwnObject<'_> {
    /// Awaits `work` while this replica may act on the object; otherwise drops it.
    pub(crate) async fn fenced(
        &self,
        work: impl Future<Output = ReconcileResult>,
    ) -> ReconcileResult {
        let fence = &self.of_kind.fence;
        if !fence.begin(self.key, &self.found.uid) {
            return DONE;
        }
        let result = work.await;
        fence.end(self.key);
        result
    }

    /// Sends a request, if this replica may act on the object at this time.
    pub(crate) async fn send<T>(
        &self,
        request: impl Future<Output = T>,
    ) -> Result<T, Fenced> {
        self.of_kind.fence.write(self.key, request).await
    }

    /// Publishes an event about the object.
    pub(crate) async fn publish(&self, event: &Event, now: Timestamp) {
        let regarding = Regarding {
            kind: &self.informer.resource.kind,
            key: self.key,
            uid: &self.found.uid,
        };
        let body = regarding.event(self.context, event, now, 0);
        create_event(self.context, &self.of_kind.fence, self.key, &body).await;
    }

    /// Changes the object, guarded by the version that the cache shows, and returns how the
    /// reconcile ends. A status that is stored already is not written.
    pub(crate) async fn change<S: Serialize>(
        &self,
        change: Option<Change<S>>,
        requeue_at: Option<Timestamp>,
    ) -> ReconcileResult {
        let written = match change {
            Some(Change::Deletion) => {
                let version = self.found.version.as_str();
                let at = self.address();
                let api = &self.context.api;
                let deletion = api.delete_version(&at, &self.found.uid, version);
                let sent = self.send(deletion).await;
                self.outcome(sent.map(|response| response.map(drop)))
            }
            Some(Change::Status(status)) => self.write_status(&status).await,
            None => OwnWrite::None,
        };
        match written {
            // The watch delivers the change of one that is outdated.
            OwnWrite::None | OwnWrite::Done | OwnWrite::Outdated => {
                ReconcileResult::Succeeded { requeue_at }
            }
            OwnWrite::Failed => ReconcileResult::Failed { requeue_at },
        }
    }

    /// Writes the status, if another one is stored.
    pub(crate) async fn write_status(&self, status: &impl Serialize) -> OwnWrite {
        let Some(patch) = self.patch(status) else {
            return OwnWrite::None;
        };
        let at = self.address();
        let patch = self.context.api.patch(&at, Some("status"), &patch);
        let sent = self.send(patch).await;
        self.outcome(sent.map(|response| response.map(|written| self.cache(written))))
    }

    pub(crate) fn address(&self) -> Address<'_> {
        Address {
            resource: &self.informer.resource,
            namespace: Some(&self.key.namespace),
            name: &self.key.name,
            projection: Some(&self.informer.projection),
        }
    }

    fn outcome(&self, sent: Result<kube::Result<()>, Fenced>) -> OwnWrite {
        match sent {
            Err(Fenced) => OwnWrite::None,
            Ok(Ok(())) => OwnWrite::Done,
            Ok(Err(error)) if matches!(failure::code(&error), Some(404 | 409)) => {
                OwnWrite::Outdated
            }
            Ok(Err(error)) => {
                let (kind, key) = (&self.informer.resource.kind, self.key);
                let message = failure::message(&error);
                let outage = &self.context.outage;
                outage.warn(format_args!("{kind} {key} failed"), &message);
                OwnWrite::Failed
            }
        }
    }

    /// Caches the response to the write of a status, so that its event does not enqueue the object
    /// again.
    fn cache(&self, written: Value) {
        let informer = self.informer;
        let cached = informer.projection.cache(written, &informer.resource);
        informer.store.wrote(self.key, &self.found.version, cached);
    }

    /// The patch that turns the stored status into this one. `None` if they are equal.
    fn patch(&self, status: &impl Serialize) -> Option<Value> {
        let stored = &self.stored["status"];
        // Plain data can be serialized.
        status_patch(stored, status, self.found.version.as_str()).ok()?
    }
}
