//! Requests for Leases, and the watch of them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use k8s_openapi::api::coordination::v1;
use kube::api::ApiResource;
use kubemu_clock::{Busy, Clock};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::record::{LeaseName, LeaseTiming, Record, StoredLease};
use super::{Observer, Replica};
use crate::cache::WholeObject;
use crate::http::{Address, ApiClient, Deletion, error};
use crate::watch::{Retry, Selector, Sink, Watch, follow};

/// The Lease kind.
fn leases() -> ApiResource {
    ApiResource::erase::<v1::Lease>(&())
}

/// The outcome of a request for a Lease.
pub(super) enum RequestResult<T> {
    Success(T),
    /// The Lease has changed, is gone, or exists already.
    Conflict,
    /// No response, or one that is not about the Lease.
    Failed(String),
}

/// Requests for one Lease, each with the timeout [`LeaseTiming::request_timeout`].
#[derive(Clone)]
pub(super) struct LeaseClient {
    pub(super) client: ApiClient,
    /// The clock for timeouts.
    pub(super) clock: Clock,
    pub(super) lease_name: LeaseName,
    pub(super) timing: LeaseTiming,
}

/// The status codes that mean that a Lease has changed or is gone.
const LEASE_CONFLICTS: &[u16] = &[404, 409];
/// A 404 to a create is about the namespace: an immediate retry would not help.
const CREATE_CONFLICTS: &[u16] = &[409];

impl LeaseClient {
    /// Waits for a response. A status code in `conflicts` means that the Lease is not as
    /// expected.
    async fn within<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
        conflicts: &[u16],
    ) -> RequestResult<T> {
        let limit = self.clock.sleep(self.timing.request_timeout());
        match select(pin!(request), limit).await {
            Either::Left((Ok(response), _)) => RequestResult::Success(response),
            Either::Left((Err(error), _)) => match error::code(&error) {
                Some(code) if conflicts.contains(&code) => RequestResult::Conflict,
                _ => RequestResult::Failed(error::message(&error)),
            },
            Either::Right(_) => RequestResult::Failed("no response in time".to_owned()),
        }
    }

    pub(super) async fn read(&self) -> RequestResult<Option<StoredLease>> {
        let resource = leases();
        let at = self.address(&resource, &self.lease_name.name);
        let found = self.within(self.client.get(&at), LEASE_CONFLICTS).await;
        found.map(|found| found.as_ref().map(StoredLease::read))
    }

    pub(super) async fn create(&self, record: &Record) -> RequestResult<StoredLease> {
        let resource = leases();
        let at = self.address(&resource, "");
        let body = record.lease(&self.lease_name, None);
        let created = self
            .within(self.client.create(&at, &body), CREATE_CONFLICTS)
            .await;
        created.map(|lease| StoredLease::read(&lease))
    }

    pub(super) async fn replace(
        &self,
        record: &Record,
        version: &str,
    ) -> RequestResult<StoredLease> {
        let resource = leases();
        let at = self.address(&resource, &self.lease_name.name);
        let body = record.lease(&self.lease_name, Some(version));
        let replaced = self
            .within(self.client.replace(&at, &body), LEASE_CONFLICTS)
            .await;
        replaced.map(|lease| StoredLease::read(&lease))
    }

    /// Deletes a Lease of the same namespace, if it has not changed since `stored` was read.
    pub(super) async fn delete(&self, stored: &StoredLease) -> RequestResult<()> {
        let resource = leases();
        let at = self.address(&resource, &stored.name);
        let deletion = Deletion::of(&stored.uid).in_version(&stored.version);
        let request = self.client.delete(&at, deletion);
        self.within(request, LEASE_CONFLICTS).await.map(|_| ())
    }

    fn address<'a>(&'a self, resource: &'a ApiResource, name: &'a str) -> Address<'a> {
        Address {
            resource,
            namespace: Some(&self.lease_name.namespace),
            name,
            projection: None,
        }
    }
}

impl<T> RequestResult<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> RequestResult<U> {
        match self {
            Self::Success(response) => RequestResult::Success(with(response)),
            Self::Conflict => RequestResult::Conflict,
            Self::Failed(why) => RequestResult::Failed(why),
        }
    }
}

/// An event of the watch of Leases. A virtual clock is stopped until it has been processed.
pub(super) struct LeaseEvent {
    pub(super) event: Event,
    _processing: Busy,
}

pub(super) enum Event {
    /// All Leases.
    Listed(Vec<StoredLease>),
    /// A Lease is new or has changed.
    Changed(StoredLease),
    /// A Lease is gone.
    Deleted(StoredLease),
}

/// Watches the Leases that `selector` selects, for as long as the future is polled.
pub(super) fn follow_leases(
    replica: &Replica,
    selector: Selector,
) -> (
    impl Future<Output = ()> + use<>,
    UnboundedReceiver<LeaseEvent>,
) {
    let (send, events) = unbounded_channel();
    let watch = Watch {
        client: replica.client.clone(),
        resource: leases(),
        namespace: Some(replica.lease.namespace.clone()),
        selector: Some(selector),
        projection: Arc::new(WholeObject),
    };
    let retry = Retry {
        clock: replica.clock.clone(),
        backoff: replica.backoff,
        name: "leases".to_owned(),
    };
    let sink = Channel {
        clock: replica.clock.clone(),
        observer: replica.observer.clone(),
        listed: BTreeMap::new(),
        send,
    };
    (follow(watch, retry, sink), events)
}

/// Sends the events of the watch to a channel.
struct Channel {
    clock: Clock,
    observer: Arc<dyn Observer>,
    listed: BTreeMap<String, StoredLease>,
    send: UnboundedSender<LeaseEvent>,
}

impl Channel {
    fn send(&self, event: Event) {
        let event = LeaseEvent {
            event,
            _processing: self.clock.busy(),
        };
        // The receiver is gone once the replica has released its Leases.
        let _ = self.send.send(event);
    }
}

impl Sink for Channel {
    fn list_begins(&mut self) {
        self.listed.clear();
    }

    fn listed(&mut self, object: Value) -> kube::Result<()> {
        let stored = StoredLease::read(&object);
        self.listed.insert(stored.name.clone(), stored);
        Ok(())
    }

    fn list_ends(&mut self) {
        let all = std::mem::take(&mut self.listed).into_values();
        self.send(Event::Listed(all.collect()));
    }

    fn modified(&mut self, object: Value) -> kube::Result<()> {
        self.send(Event::Changed(StoredLease::read(&object)));
        Ok(())
    }

    fn deleted(&mut self, object: Value) {
        self.send(Event::Deleted(StoredLease::read(&object)));
    }

    fn failed(&mut self, error: &kube::Error) {
        let error = error::message(error);
        self.observer.failed("watch of Leases failed", &error);
    }
}
