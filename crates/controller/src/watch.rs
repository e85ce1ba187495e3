//! Following the objects of one kind: list, watch, and list again when the watch breaks.

use std::sync::Arc;

use fivespot_clock::Busy;
use fivespot_plan::Unknown;
use serde_json::Value;

use crate::failure;
use crate::feed::Feed;
use crate::shape::Object;
use crate::shape::Shape;
use crate::shell::Shell;
use crate::workload::Workload;
use fivespot_runtime::Key;
use fivespot_runtime::cache::Part;
use fivespot_runtime::cache::Version;
use fivespot_runtime::cache::{MOST_OBJECTS, Tally, TooLarge};
use fivespot_runtime::http::{Address, Change, Port};

/// How many objects a server sends at a time.
const PAGE: &str = "100";

/// What one watch follows.
pub(crate) struct Course {
    /// The server.
    pub(crate) port: Port,
    /// The namespace; none for all, and for what has none.
    pub(crate) namespace: Option<String>,
    /// Which objects: a parameter of the request and its value; none for all.
    pub(crate) selector: Option<(&'static str, String)>,
    /// What of the cache they are.
    pub(crate) part: Part,
    /// The workload cluster whose link this watch shows to be up or down.
    pub(crate) link: Option<Arc<Workload>>,
    /// Where what is kept is counted; none for the management cluster.
    pub(crate) tally: Option<Arc<Tally>>,
}

/// Fills `feed` and wakes whoever is concerned, for ever.
pub(crate) async fn follow(shell: Arc<Shell>, feed: Arc<Feed>, course: Course) {
    // Time stands still until the first list has come or failed.
    let loading = Some(shell.clock.busy());
    let mut follower = Follower {
        shell: &shell,
        feed: &feed,
        course: &course,
        loading,
        failures: 0,
    };
    loop {
        // All is listed again: a watch that goes on where it broke off shows nothing of a cache
        // that was emptied, nor that it goes well.
        let Err(error) = follower.session().await;
        follower.failures += 1;
        complain(&shell, &feed, &error);
        if let Some(workload) = &course.link {
            workload.is_broken_by(&shell, &error);
        }
        rest(&shell, &feed.name, follower.failures, &mut follower.loading).await;
    }
}

/// Nothing can be of it.
enum Never {}

struct Follower<'a> {
    shell: &'a Shell,
    feed: &'a Feed,
    course: &'a Course,
    loading: Option<Busy>,
    /// How many sessions have failed since something went well.
    failures: u32,
}

impl Follower<'_> {
    fn address(&self) -> Address<'_> {
        Address {
            resource: &self.feed.resource,
            namespace: self.course.namespace.as_deref(),
            name: "",
            shape: Some(&self.feed.shape),
        }
    }

    fn selector(&self) -> Vec<(&str, &str)> {
        let selector = self.course.selector.iter();
        selector.map(|(name, of)| (*name, of.as_str())).collect()
    }

    /// Lists and then watches until something goes wrong.
    async fn session(&mut self) -> kube::Result<Never> {
        let mut version = self.list().await?;
        loop {
            let course = self.course;
            let (at, selector) = (self.address(), self.selector());
            let mut events = course.port.watch(&at, &selector, &version).await?;
            while let Some(change) = events.next(&self.address()).await? {
                let arrived = self.shell.clock.busy();
                version = self.take(change)?;
                self.goes_well();
                drop(arrived);
            }
        }
    }

    /// Lists everything and returns the version to watch from.
    async fn list(&mut self) -> kube::Result<String> {
        let Self { feed, course, .. } = *self;
        feed.store.begin(&course.part);
        let (mut listed, mut next) = (0, String::new());
        loop {
            let mut query = self.selector();
            query.push(("limit", PAGE));
            if !next.is_empty() {
                query.push(("continue", &next));
            }
            listed += 1;
            let each = |object| {
                listed += 1;
                self.count(listed)?;
                let (key, object) = self.kept(object)?;
                feed.store.list(&course.part, key, object);
                Ok(())
            };
            let page = course.port.page(&self.address(), &query, each).await?;
            self.count(listed)?;
            next = page.next;
            if next.is_empty() {
                let arrived = self.shell.clock.busy();
                self.shell.wake(feed.store.end(&course.part));
                self.shell.wake_keys(feed.recover());
                self.goes_well();
                drop(arrived);
                return versioned(page.version);
            }
        }
    }

    /// It has been shown that the server answers.
    fn goes_well(&mut self) {
        self.loading = None;
        self.failures = 0;
        if let Some(workload) = &self.course.link {
            workload.is_up(self.shell, &self.course.port);
        }
    }

    /// Says whether so many objects may be kept.
    fn count(&self, objects: usize) -> kube::Result<()> {
        if self.course.tally.is_some() && objects > MOST_OBJECTS {
            return Err(TooLarge::Objects.into());
        }
        Ok(())
    }

    /// Puts a change into the cache. Returns the version up to which it is known now.
    fn take(&self, change: Change) -> kube::Result<String> {
        let Self {
            shell,
            feed,
            course,
            ..
        } = *self;
        match change {
            Change::Put(object) => {
                let version = versioned(version_of(&object))?;
                let (key, object) = self.kept(object)?;
                let is_report = match feed.shape {
                    Shape::Machine | Shape::Provider => true,
                    Shape::ScheduledMachine => {
                        shell.has_written(feed, &key, &Version::new(version.as_str()))
                    }
                    _ => false,
                };
                let concerned = feed.store.put(&course.part, &key, object);
                self.count(feed.store.len())?;
                if is_report {
                    shell.wake_deferred(concerned);
                } else {
                    shell.wake(concerned);
                }
                Ok(version)
            }
            Change::Gone(object) => {
                let text = versioned(version_of(&object))?;
                let version = Version::new(text.as_str());
                shell.wake(feed.store.remove(&course.part, &key_of(&object), &version));
                Ok(text)
            }
            Change::Nothing(version) => versioned(version),
        }
    }

    fn kept(&self, object: Value) -> kube::Result<(Key, Object)> {
        let Self { feed, shell, .. } = self;
        let key = key_of(&object);
        let mut object = feed.shape.keep(object, &feed.resource);
        if matches!(feed.shape, Shape::Node(_)) && !shell.has_any(&object.wakes) {
            object.forget();
        }
        if let Some(tally) = &self.course.tally {
            object.count(tally)?;
        }
        Ok((key, object))
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
    text(&object["metadata"]["resourceVersion"])
}

fn key_of(object: &Value) -> Key {
    let meta = &object["metadata"];
    Key::new(text(&meta["namespace"]), text(&meta["name"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Notes that a watch fails. What it has shown so far stays, but for a kind that is gone and for a
/// cluster that is too large.
fn complain(shell: &Shell, feed: &Feed, error: &kube::Error) {
    let words = failure::words(error);
    shell
        .outage
        .complain(format_args!("watch of {} failed", feed.name), &words);
    let trouble = match failure::code(error) {
        Some(404) => {
            feed.store.clear();
            Unknown::NotServed { message: words }
        }
        None if TooLarge::of(error).is_some() => {
            feed.store.clear();
            failure::unknown(error)
        }
        _ => failure::unknown(error),
    };
    shell.wake_keys(feed.fail(trouble));
}

/// Waits before the next attempt, with nobody held up meanwhile.
pub(crate) async fn rest(
    shell: &Shell,
    name: &str,
    failures: u32,
    loading: &mut Option<Busy>,
) {
    *loading = None;
    let wait = shell.backoff.wait(&name, failures.min(6));
    shell.clock.sleep(wait).await;
}
