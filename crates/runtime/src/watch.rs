//! Following the objects of one kind: list, watch, and list again when the watch breaks. The one
//! loop behind everything that is watched.

use std::sync::Arc;

use fivespot_clock::{Busy, Clock};
use kube::api::ApiResource;
use serde_json::Value;

use crate::cache::Projection;
use crate::http::{Address, ApiClient, Change, error};
use crate::queue::Backoff;

/// How many objects a server sends at a time.
const PAGE: &str = "100";

/// After so many failures in a row the waits grow no more, of a kind that is served.
const MOST_DOUBLINGS: u32 = 6;

/// Which objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Those whose labels this selects.
    Labels(String),
    /// Those whose fields this selects.
    Fields(String),
}

impl Selector {
    /// The object of that name.
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
    /// The namespace; none for all, and for what has none.
    pub namespace: Option<String>,
    /// Which objects; none for all.
    pub selector: Option<Selector>,
    /// How they are read.
    pub projection: Arc<dyn Projection>,
}

/// When a watch is tried again.
#[derive(Clone, Debug)]
pub struct Retry {
    /// What is waited by. A virtual clock stands still until the first list has come or failed, and
    /// while an event is being processed.
    pub clock: Clock,
    /// How long to wait.
    pub backoff: Backoff,
    /// What sets this watch apart from others, so that not all are tried again together.
    pub name: String,
}

/// What a watch fills.
pub trait Sink: Send {
    /// A list begins. What was listed before and is not listed now will be gone.
    fn list_begins(&mut self) {}

    /// A page of the list has been asked for.
    ///
    /// # Errors
    /// No more of the list is read.
    fn page(&mut self) -> kube::Result<()> {
        Ok(())
    }

    /// The list names this object.
    ///
    /// # Errors
    /// No more of the list is read.
    fn listed(&mut self, object: Value) -> kube::Result<()>;

    /// The list is complete.
    fn list_ends(&mut self);

    /// The object is new or has changed.
    ///
    /// # Errors
    /// The watch ends.
    fn put(&mut self, object: Value) -> kube::Result<()>;

    /// The object is gone; this is its last state.
    fn deleted(&mut self, object: Value);

    /// The server has answered.
    fn works(&mut self) {}

    /// The list or the watch has failed, and is tried again after a while.
    fn failed(&mut self, error: &kube::Error);
}

/// Fills `sink`, for ever.
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
        // All is listed again: a watch that goes on where it broke off shows nothing of a cache
        // that was emptied, nor that it goes well.
        let Err(failure) = follower.session().await;
        follower.failures = follower.failures.saturating_add(1);
        follower.sink.failed(&failure);
        follower.loading = None;
        // A kind that is not served is noticed by its definition.
        let is_served = error::code(&failure) != Some(404);
        let most = if is_served { MOST_DOUBLINGS } else { u32::MAX };
        let wait = retry.backoff.wait(&retry.name, follower.failures.min(most));
        retry.clock.sleep(wait).await;
    }
}

/// Nothing can be of it.
enum Never {}

struct Follower<'a, S> {
    watch: &'a Watch,
    clock: &'a Clock,
    sink: S,
    /// Held until the first list has come or failed.
    loading: Option<Busy>,
    /// How many sessions have failed since something went well.
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

    /// Lists and then watches until something goes wrong.
    async fn session(&mut self) -> kube::Result<Never> {
        let mut version = self.list().await?;
        let watch = self.watch;
        let selector: Vec<_> = watch.selector.iter().map(Selector::parameter).collect();
        loop {
            let at = self.address();
            let mut events = watch.client.watch(&at, &selector, &version).await?;
            while let Some(change) = events.next(&self.address()).await? {
                let processing = self.clock.busy();
                version = self.process(change)?;
                self.goes_well();
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
                self.goes_well();
                drop(processing);
                return versioned(page.version);
            }
        }
    }

    /// It has been shown that the server answers.
    fn goes_well(&mut self) {
        self.loading = None;
        self.failures = 0;
        self.sink.works();
    }

    /// Hands a change on. Returns the version up to which all is known now.
    fn process(&mut self, change: Change) -> kube::Result<String> {
        match change {
            Change::Put(object) => {
                let version = versioned(version_of(&object))?;
                self.sink.put(object)?;
                Ok(version)
            }
            Change::Gone(object) => {
                let version = versioned(version_of(&object))?;
                self.sink.deleted(object);
                Ok(version)
            }
            Change::Nothing(version) => versioned(version),
        }
    }
}

/// A version that can be watched from.
fn versioned(version: String) -> kube::Result<String> {
    if version.is_empty() {
        let why = std::io::Error::other("the server named no resourceVersion");
        return Err(kube::Error::Service(Box::new(why)));
    }
    Ok(version)
}

fn version_of(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_default().to_owned()
}
