//! One object of the management cluster, from its cache or live.

use std::sync::Arc;

use fivespot_capi::{Contract, Reference, version};
use fivespot_plan::{Fact, Freshness, Unknown};
use kube::api::ApiResource;
use serde_json::Value;

use super::Short;
use crate::failure;
use crate::memo::Memo;
use crate::shape::Shape;
use crate::shell::Shell;
use crate::watch::Feed;
use fivespot_runtime::Key;
use fivespot_runtime::cache::Health;
use fivespot_runtime::cache::{Version, Written};
use fivespot_runtime::http::Address;

/// What a live read came to.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    found: Result<Option<Value>, Refused>,
    /// How many lists the cache had begun before it was sent.
    lists_begun: u64,
}

/// Why it has found nothing out.
#[derive(Clone, Debug)]
struct Refused {
    /// The HTTP status; none where no answer came.
    code: Option<u16>,
    unknown: Unknown,
}

/// For whom is gathered, and how.
pub(super) struct Source<'a> {
    pub(super) shell: &'a Arc<Shell>,
    pub(super) key: &'a Key,
    pub(super) freshness: Freshness,
    pub(super) memo: &'a Memo,
}

impl Source<'_> {
    /// The ScheduledMachine itself.
    pub(super) async fn scheduled_machine(&self) -> Result<Fact<Option<Value>>, Short> {
        let feed = self.shell.scheduled_machines.clone();
        self.found(&feed, &self.key.name).await
    }

    /// An object in the ScheduledMachine's namespace. Its kind is watched from now on.
    pub(super) async fn object(
        &self,
        resource: &ApiResource,
        shape: Shape,
        name: &str,
    ) -> Result<Fact<Option<Value>>, Short> {
        let feed = self.shell.feed(resource, shape);
        self.found(&feed, name).await
    }

    async fn found(&self, feed: &Feed, name: &str) -> Result<Fact<Option<Value>>, Short> {
        match self.freshness {
            Freshness::Live => Ok(self.live(feed, name).await),
            Freshness::Cached => {
                let at = Key::new(self.key.namespace.clone(), name);
                match self.memo.get(&feed.name, &at) {
                    // The answer to a write of this pass is newer than the cache.
                    Fact::Known(known) => Ok(Fact::Known(known)),
                    Fact::Unknown(_) => self.cached(feed, &at),
                }
            }
        }
    }

    pub(super) async fn live(&self, feed: &Feed, name: &str) -> Fact<Option<Value>> {
        let namespace = &self.key.namespace;
        let at = Key::new(namespace.clone(), name);
        if let Fact::Known(known) = self.memo.get(&feed.name, &at) {
            return Fact::Known(known);
        }
        // Many machines open together in one Cluster.
        let answer = if feed.projection == Shape::Cluster {
            let ask = self.ask(feed, name);
            let place = (feed.name.as_str(), &at);
            // Boxed, so that waiting for any other object takes a third of the memory.
            Box::pin(self.shell.shared.read(place, ask)).await
        } else {
            self.ask(feed, name).await
        };
        match answer.found {
            Ok(found) => {
                self.memo.read(&feed.name, &at, found.as_ref());
                self.outrun(feed, (&at, found.as_ref()), answer.lists_begun);
                Fact::Known(found)
            }
            Err(Refused { code, unknown }) => {
                if code == Some(404) {
                    self.shell.has_moved(feed);
                }
                Fact::Unknown(unknown)
            }
        }
    }

    async fn ask(&self, feed: &Feed, name: &str) -> Answer {
        let namespace = &self.key.namespace;
        let address = Address {
            resource: &feed.resource,
            namespace: Some(namespace),
            name,
            shape: Some(&feed.projection),
        };
        let found = self.shell.port.get(&address).await;
        let lists_begun = feed.store.lists_begun(namespace);
        Answer {
            found: found.map_err(|error| Refused {
                code: failure::code(&error),
                unknown: failure::unknown(&error),
            }),
            lists_begun,
        }
    }

    /// A live read has shown something that the cache may not show yet: it counts like a write
    /// of our own, so that no later pass goes back behind it.
    pub(super) fn outrun(
        &self,
        feed: &Feed,
        (at, found): (&Key, Option<&Value>),
        lists_begun: u64,
    ) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let shown = feed.store.get(at);
        let (uid, left) = match found {
            Some(found) if feed.projection.shows(found) => {
                let meta = &found["metadata"];
                (text(&meta["uid"]), text(&meta["resourceVersion"]))
            }
            Some(_) => return,
            None => (shown.map(|shown| shown.uid.clone()), None),
        };
        let Some(uid) = uid else { return };
        let seen = Written {
            uid,
            left: left.map(Version::new),
            lists_begun,
        };
        if !feed.store.has_seen(at, &seen) {
            let (cache, at) = (feed.name.clone(), at.clone());
            self.shell
                .desk(self.key, |desk| desk.ledger.record(cache, at, seen));
        }
    }

    /// The version of Cluster API's own kinds; none where they are not served.
    pub(super) async fn contract(&self) -> kube::Result<Option<Contract>> {
        let served = &self.shell.served;
        match served.contract().await? {
            None if self.is_live() => {
                served.forget(version::GROUP);
                served.contract().await
            }
            contract => Ok(contract),
        }
    }

    /// The kind that `place` names; none where it is not served.
    pub(super) async fn resource(
        &self,
        place: &Reference,
    ) -> kube::Result<Option<ApiResource>> {
        if let Some(resource) = self.shell.in_use(place) {
            return Ok(Some(resource));
        }
        let served = &self.shell.served;
        match served.resource(place).await? {
            None if self.is_live() => {
                served.forget(&place.group);
                served.resource(place).await
            }
            resource => Ok(resource),
        }
    }

    /// Whether nothing that was heard earlier counts. That a kind is not served is as good as
    /// that its objects are gone, so that it is asked anew then.
    fn is_live(&self) -> bool {
        self.freshness == Freshness::Live
    }

    /// What the cache shows under `at`, once it shows anything.
    pub(super) fn cached(
        &self,
        feed: &Feed,
        at: &Key,
    ) -> Result<Fact<Option<Value>>, Short> {
        match feed.health(&at.namespace) {
            Health::Synced => {
                let found = feed.store.get(at);
                Ok(Fact::Known(found.map(|object| object.value())))
            }
            Health::Loading => {
                feed.wait(self.key);
                Err(Short::NotYet)
            }
            Health::Failing(trouble) => {
                feed.wait(self.key);
                Ok(Fact::Unknown(failure::of_watch(&trouble)))
            }
        }
    }
}
