//! Following one object: what it is now, for as long as somebody wants to know.

use std::collections::hash_map::RandomState;
use std::fmt::Debug;
use std::hash::{BuildHasher as _, Hasher as _};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::detect::told;

/// How long the server is asked to keep a watch open.
const WATCH: Duration = Duration::from_secs(290);
/// How long nothing may be heard on a watch before its connection is taken for dead.
const SILENCE: Duration = Duration::from_mins(5);
/// How long a list may take.
const LIST: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this, with nothing said, has failed.
const SHORT: Duration = Duration::from_secs(1);
/// What the server answers when a resourceVersion is too old to watch from.
const GONE: u16 = 410;

/// What is known of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Seen<T> {
    /// The server has not been asked yet, or has not answered.
    #[default]
    Unknown,
    /// It does not exist.
    Absent,
    /// This is it.
    Is(T),
}

/// An object that is followed until this is dropped.
#[derive(Debug)]
pub(crate) struct Followed<K> {
    /// What is known of it, always the newest.
    pub(crate) seen: watch::Receiver<Seen<K>>,
    task: JoinHandle<()>,
}

impl<K> Drop for Followed<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Follows the object `name`.
pub(crate) fn follow<K>(api: Api<K>, name: String) -> Followed<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (sender, seen) = watch::channel(Seen::Unknown);
    let task = tokio::spawn(async move {
        let mut failures = 0;
        loop {
            match round(&api, &name, &sender, &mut failures).await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    let error = told(error.as_ref());
                    tracing::warn!(object = name, error, "watch failed");
                    sleep(backoff(failures)).await;
                }
            }
        }
    });
    Followed { seen, task }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Reads the object and watches it, until it has to be read again.
async fn round<K>(
    api: &Api<K>,
    name: &str,
    sender: &watch::Sender<Seen<K>>,
    failures: &mut u32,
) -> Result<(), Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let field = format!("metadata.name={name}");
    let mut list =
        timeout(LIST, api.list(&ListParams::default().fields(&field))).await??;
    *failures = 0;
    let mut version = list.metadata.resource_version.take().unwrap_or_default();
    sender.send_replace(list.items.pop().map_or(Seen::Absent, Seen::Is));
    let params = WatchParams::default()
        .fields(&field)
        .timeout(u32::try_from(WATCH.as_secs()).unwrap_or(u32::MAX));
    loop {
        let began = Instant::now();
        let mut has_spoken = false;
        let events = timeout(LIST, api.watch(&params, &version)).await?;
        let mut events = match events {
            Ok(events) => pin!(events),
            Err(kube::Error::Api(status)) if status.code == GONE => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        while let Some(event) = timeout(SILENCE, events.next()).await? {
            has_spoken = true;
            match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    version = object.resource_version().unwrap_or_default();
                    sender.send_replace(Seen::Is(object));
                }
                WatchEvent::Deleted(object) => {
                    version = object.resource_version().unwrap_or_default();
                    sender.send_replace(Seen::Absent);
                }
                WatchEvent::Bookmark(bookmark) => {
                    version = bookmark.metadata.resource_version;
                }
                WatchEvent::Error(status) if status.code == GONE => return Ok(()),
                WatchEvent::Error(status) => {
                    return Err(kube::Error::Api(status).into());
                }
            }
        }
        if !has_spoken && began.elapsed() < SHORT {
            return Err("the server ended the watch at once".into());
        }
    }
}

/// How long to wait after the `failures`th failure in a row: a quarter of a second, doubling up
/// to half a minute, less up to a half so that many nodes do not ask at once.
pub(crate) fn backoff(failures: u32) -> Duration {
    let most = Duration::from_millis(250) * 2_u32.pow(failures.clamp(1, 8) - 1);
    let most = most.min(Duration::from_secs(30));
    // Each state is seeded at random.
    let drawn = RandomState::new().build_hasher().finish() % 1000;
    let share = u32::try_from(drawn).unwrap_or_default();
    most.saturating_sub(most / 2000 * share)
}

#[cfg(test)]
mod tests {
    use super::backoff;

    #[test]
    fn waiting_grows_to_half_a_minute_and_is_never_nothing() {
        for (failures, most) in [(0, 250), (1, 250), (2, 500), (7, 16_000), (99, 30_000)]
        {
            let waited = backoff(failures).as_millis();
            assert!(
                waited > most / 2 - 1 && waited <= most,
                "{failures}: {waited}"
            );
        }
    }
}
