//! Follows the objects of one kind: lists, watches, and lists again when the watch fails. All
//! watches use this loop.

use std::sync::Arc;

use kube::api::ApiResource;
use kubemu_clock::{Busy, Clock};
use serde_json::Value;

use crate::cache::Projection;
use crate::http::{Address, ApiClient, WatchEvent, error};
use crate::queue::Backoff;

/// The page size of a list.
const PAGE: &str = "100";

/// After so many failures in a row the waits stop growing, for a kind that is served.
const MAX_DOUBLINGS: u32 = 6;

/// Selects objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// By a label selector.
    Labels(String),
    /// By a field selector.
    Fields(String),
}

impl Selector {
    /// Selects the object with that name.
    pub fn named(name: &str) -> Self {
        Self::Fields(format!("metadata.name={name}"))
    }

    fn parameter(&self) -> (&str, &str) {
        match self {
            Self::Labels(selector) => ("labelSelector", selector),
            Self::Fields(selector) => ("fieldSelector", selector),
        }
    }
}

/// What is watched.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The server.
    pub client: ApiClient,
    /// The kind.
    pub resource: ApiResource,
    /// The namespace; `None` for all, and for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// Which objects; `None` for all.
    pub selector: Option<Selector>,
    /// How they are read.
    pub projection: Arc<dyn Projection>,
}

/// When a watch is retried.
#[derive(Clone, Debug)]
pub struct Retry {
    /// The clock for the waits. A virtual clock is stopped until the first list has arrived or
    /// failed, and while an event is processed.
    pub clock: Clock,
    /// How long to wait.
    pub backoff: Backoff,
    /// Distinguishes this watch from others, so that not all are retried at the same time.
    pub name: String,
}

/// Receives the objects of a watch.
pub trait Sink: Send {
    /// A list begins. Objects that were listed before and are not in this list are gone.
    fn list_begins(&mut self) {}

    /// A page of the list is requested.
    ///
    /// # Errors
    /// The rest of the list is not read.
    fn page(&mut self) -> kube::Result<()> {
        Ok(())
    }

    /// The list contains this object.
    ///
    /// # Errors
    /// The rest of the list is not read.
    fn listed(&mut self, object: Value) -> kube::Result<()>;

    /// The list is complete.
    fn list_ends(&mut self);

    /// The object is new or has changed.
    ///
    /// # Errors
    /// The watch ends.
    fn modified(&mut self, object: Value) -> kube::Result<()>;

    /// The object is gone; this is its last state.
    fn deleted(&mut self, object: Value);

    /// The server has responded.
    fn responded(&mut self) {}

    /// The list or the watch has failed, and is retried after a while.
    fn failed(&mut self, error: &kube::Error);
}

/// Fills `sink`, until the future is dropped.
pub async fn follow(watch: Watch, retry: Retry, sink: impl Sink) {
    let loading = Some(retry.clock.busy());
    let mut follower = Follower {
        watch: &watch,
        clock: &retry.clock,
        sink,
        loading,
        failures: 0,
    };
    loop {
        // Everything is listed again: a watch that continued where it failed would not refill a
        // cache that was emptied, and would not show that the server responds.
        let Err(failure) = follower.session().await;
        follower.failures = follower.failures.saturating_add(1);
        follower.sink.failed(&failure);
        follower.loading = None;
        // If a kind becomes served later, its CustomResourceDefinition shows that.
        let is_served = error::code(&failure) != Some(404);
        let most = if is_served { MAX_DOUBLINGS } else { u32::MAX };
        let wait = retry.backoff.wait(&retry.name, follower.failures.min(most));
        let asked = error::retry_after(&failure);
        let asked = asked.map(|span| retry.backoff.not_before(span, &retry.name));
        retry
            .clock
            .sleep(asked.map_or(wait, |asked| asked.max(wait)))
            .await;
    }
}

/// A type without values.
enum Never {}

struct Follower<'a, S> {
    watch: &'a Watch,
    clock: &'a Clock,
    sink: S,
    /// Held until the first list has arrived or failed.
    loading: Option<Busy>,
    /// How many sessions have failed since the last success.
    failures: u32,
}

impl<S: Sink> Follower<'_, S> {
    fn address(&self) -> Address<'_> {
        Address {
            resource: &self.watch.resource,
            namespace: self.watch.namespace.as_deref(),
            name: "",
            projection: Some(&*self.watch.projection),
        }
    }

    /// Lists and then watches until an error.
    async fn session(&mut self) -> kube::Result<Never> {
        let mut version = self.list().await?;
        let watch = self.watch;
        let selector: Vec<_> = watch.selector.iter().map(Selector::parameter).collect();
        loop {
            let at = self.address();
            let mut events = watch.client.watch(&at, &selector, &version).await?;
            while let Some(event) = events.next(&self.address()).await? {
                let processing = self.clock.busy();
                version = self.process(event)?;
                self.succeeded();
                drop(processing);
            }
        }
    }

    /// Lists everything and returns the version to watch from.
    async fn list(&mut self) -> kube::Result<String> {
        let watch = self.watch;
        let mut next = String::new();
        self.sink.list_begins();
        loop {
            let mut query: Vec<_> =
                watch.selector.iter().map(Selector::parameter).collect();
            query.push(("limit", PAGE));
            if !next.is_empty() {
                query.push(("continue", &next));
            }
            self.sink.page()?;
            let at = Address {
                resource: &watch.resource,
                namespace: watch.namespace.as_deref(),
                name: "",
                projection: Some(&*watch.projection),
            };
            let sink = &mut self.sink;
            let each = |object| sink.listed(object);
            let page = watch.client.page(&at, &query, each).await?;
            next = page.next;
            if next.is_empty() {
                let processing = self.clock.busy();
                self.sink.list_ends();
                self.succeeded();
                drop(processing);
                return versioned(page.version);
            }
        }
    }

    /// Records that the server responds.
    fn succeeded(&mut self) {
        self.loading = None;
        self.failures = 0;
        self.sink.responded();
    }

    /// Passes a change to the sink. Returns the version to watch from.
    fn process(&mut self, event: WatchEvent) -> kube::Result<String> {
        match event {
            WatchEvent::Modified(object) => {
                let version = versioned(version_of(&object))?;
                self.sink.modified(object)?;
                Ok(version)
            }
            WatchEvent::Deleted(object) => {
                let version = versioned(version_of(&object))?;
                self.sink.deleted(object);
                Ok(version)
            }
            WatchEvent::Bookmark(version) => versioned(version),
        }
    }
}

/// The version, if a watch can begin at it.
fn versioned(version: String) -> kube::Result<String> {
    if version.is_empty() {
        let why = std::io::Error::other("the server returned no resourceVersion");
        return Err(kube::Error::Service(Box::new(why)));
    }
    Ok(version)
}

fn version_of(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_default().to_owned()
}
