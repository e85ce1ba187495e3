//! The writes of the controllers of the kinds beside ScheduledMachines to their own objects.

use std::future::Future;
use std::sync::Arc;

use fivespot_plan::Event;

use fivespot_runtime::Key;
use fivespot_runtime::cache::CacheProjection as _;
use fivespot_runtime::http::{Address, Deletion, PatchFormat};
use fivespot_runtime::lease::Fenced;
use fivespot_runtime::queue::ReconcileResult;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::failure;
use crate::observe::projection::{KindInformer, Object};
use crate::own_kind::{DONE, OwnKind};
use crate::report::{Regarding, create_event};
use crate::status_patch::status_patch;

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
                let deletion = Deletion::of(&self.found.uid).in_version(version);
                let sent = self.send(self.context.api.delete(&at, deletion)).await;
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
        let patch =
            self.context
                .api
                .patch(&at, Some("status"), PatchFormat::Merge, &patch);
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
