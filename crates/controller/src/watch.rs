//! Following the objects of one kind: list, watch, and list again when the watch breaks.

use std::pin::pin;
use std::sync::Arc;

use fivespot_clock::Busy;
use fivespot_plan::Unknown;
use futures::StreamExt as _;
use kube::Resource as _;
use kube::api::Api;
use kube::runtime::watcher::{self, Event, watcher};

use crate::Key;
use crate::failure;
use crate::feed::Feed;
use crate::lean::Shown;
use crate::ledger::Version;
use crate::port::Port;
use crate::shape::Shape;
use crate::shell::Shell;
use crate::store::{Object, Part};
use crate::workload::Workload;

/// How many objects a list brings at a time.
const PAGE: u32 = 100;

/// What most watches ask for. A list comes in pieces that are small beside what is kept of it.
pub(crate) fn everything() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

/// What one watch follows: the objects behind `api`, as far as `config` selects them.
pub(crate) struct Course {
    /// Where they are.
    pub(crate) api: Api<Shown>,
    /// Which of them.
    pub(crate) config: watcher::Config,
    /// What of the cache they are.
    pub(crate) part: Part,
    /// The workload cluster whose link this watch shows to be up or down.
    pub(crate) link: Option<(Arc<Workload>, Port)>,
}

/// Fills `feed` and wakes whoever is concerned, for ever.
pub(crate) async fn follow(shell: Arc<Shell>, feed: Arc<Feed>, course: Course) {
    let Course {
        api,
        config,
        part,
        link,
    } = course;
    // Time stands still until the first list has come or failed.
    let mut loading = Some(shell.clock.busy());
    let mut failures = 0;
    let mut events = pin!(watcher(api.clone(), config.clone()));
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                let arrived = shell.clock.busy();
                // A list only begins with this one, it has not been answered.
                let is_answer = !matches!(event, Event::Init);
                failures = if is_answer { 0 } else { failures };
                if take(&shell, &feed, &part, event) {
                    loading = None;
                }
                if let (true, Some((workload, port))) = (is_answer, &link) {
                    workload.is_up(&shell, port);
                }
                drop(arrived);
            }
            Err(error) => {
                failures += 1;
                let error = failure::of_watch(error);
                complain(&shell, &feed, &error);
                if let Some((workload, _)) = &link {
                    workload.is_broken_by(&shell, &error);
                }
                rest(&shell, &feed.name, failures, &mut loading).await;
                // All is listed again: a watch that goes on where it broke off shows nothing of a
                // cache that was emptied, nor that it goes well.
                events.set(watcher(api.clone(), config.clone()));
            }
        }
    }
}

/// Puts one event into the cache. Says whether that completes a list.
fn take(shell: &Shell, feed: &Feed, part: &Part, event: Event<Shown>) -> bool {
    match event {
        Event::Init => {
            feed.store.begin(part);
            false
        }
        Event::InitApply(object) => {
            let (key, object) = kept(feed, object);
            feed.store.list(part, key, object);
            false
        }
        Event::InitDone => {
            shell.wake(feed.store.end(part));
            shell.wake_keys(feed.recover());
            true
        }
        Event::Apply(object) => {
            let (key, object) = kept(feed, object);
            let concerned = feed.store.put(part, &key, object);
            match feed.shape {
                Shape::Machine | Shape::Provider => shell.hear(concerned),
                _ => shell.wake(concerned),
            }
            false
        }
        Event::Delete(object) => {
            let version = object.meta().resource_version.clone();
            let version = Version::new(version.unwrap_or_default());
            let key = key_of(&object);
            shell.wake(feed.store.remove(part, &key, &version));
            false
        }
    }
}

fn kept(feed: &Feed, object: Shown) -> (Key, Object) {
    let key = key_of(&object);
    (key, feed.shape.keep(object.value, &feed.resource))
}

fn key_of(object: &Shown) -> Key {
    let meta = object.meta();
    Key::new(
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

/// Notes that a watch fails. What it has shown so far stays, but for a kind that is gone.
fn complain(shell: &Shell, feed: &Feed, error: &kube::Error) {
    tracing::warn!(
        cache = feed.name,
        error = failure::words(error),
        "watch failed"
    );
    let trouble = match failure::code(error) {
        Some(404) => {
            feed.store.clear();
            Unknown::NotServed {
                message: failure::words(error),
            }
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
