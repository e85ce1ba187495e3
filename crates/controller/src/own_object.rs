//! The writes of a controller that changes nothing but its own object: its status, or its deletion.

use std::sync::Arc;

use fivespot_runtime::Key;
use fivespot_runtime::cache::CacheProjection as _;
use fivespot_runtime::http::Address;
use fivespot_runtime::lease::Fence;
use fivespot_runtime::queue::ReconcileResult;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::failure;
use crate::observe::projection::Object;
use crate::observe::watch::KindInformer;
use crate::status_patch::status_patch;

/// The object of a reconcile, as its cache shows it.
pub(crate) struct OwnObject<'a> {
    pub(crate) context: &'a Arc<Context>,
    pub(crate) informer: &'a KindInformer,
    pub(crate) fence: &'a Fence,
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

impl OwnObject<'_> {
    /// Changes the object, guarded by the version that the cache shows, and returns how the
    /// reconcile ends. A status that is stored already is not written.
    pub(crate) async fn change<S: Serialize>(
        &self,
        change: Option<Change<S>>,
        requeue_at: Option<Timestamp>,
    ) -> ReconcileResult {
        let api = &self.context.api;
        let at = Address {
            resource: &self.informer.resource,
            namespace: Some(&self.key.namespace),
            name: &self.key.name,
            projection: Some(&self.informer.projection),
        };
        let sent = match change {
            Some(Change::Deletion) => {
                let version = self.found.version.as_str();
                let deletion = api.delete_version(&at, &self.found.uid, version);
                let sent = self.fence.write(self.key, deletion).await;
                sent.map(|response| response.map(drop))
            }
            Some(Change::Status(status)) => match self.patch(&status) {
                Some(patch) => {
                    let patch = api.patch(&at, Some("status"), &patch);
                    let sent = self.fence.write(self.key, patch).await;
                    sent.map(|response| response.map(|written| self.cache(written)))
                }
                None => Ok(Ok(())),
            },
            None => Ok(Ok(())),
        };
        match sent {
            Err(_) | Ok(Ok(())) => ReconcileResult::Succeeded { requeue_at },
            // The watch delivers the change.
            Ok(Err(error)) if matches!(failure::code(&error), Some(404 | 409)) => {
                ReconcileResult::Succeeded { requeue_at }
            }
            Ok(Err(error)) => {
                let (kind, key) = (&self.informer.resource.kind, self.key);
                let message = failure::message(&error);
                let outage = &self.context.outage;
                outage.warn(format_args!("{kind} {key} failed"), &message);
                ReconcileResult::Failed { requeue_at }
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
