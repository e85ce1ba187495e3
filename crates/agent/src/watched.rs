//! Watching one object: its current state, until the watch is dropped. It replaces `kube-runtime`,
//! on which the agent does not depend: it has to be small.

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

use crate::detect::with_causes;

/// The requested timeout of a watch on the server.
const WATCH_TIMEOUT: Duration = Duration::from_secs(290);
/// A watch without events or bookmarks for this long is closed and opened again.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// How long a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this, without an event, has failed.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// The longest pause while somebody waits for their host.
pub(crate) const URGENT: Duration = Duration::from_secs(1);
/// The status of a watch whose resourceVersion is too old.
const GONE: u16 = 410;

/// The observed state of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Observed<T> {
    /// The server has not responded yet.
    #[default]
    Unknown,
    /// It does not exist.
    Absent,
    /// The object.
    Is(T),
}

/// An object that is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct Watched<K> {
    /// Its newest observed state.
    pub(crate) observed: watch::Receiver<Observed<K>>,
    task: JoinHandle<()>,
}

impl<K> Drop for Watched<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches the object `name`.
pub(crate) fn watch_object<K>(api: Api<K>, name: String) -> Watched<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (sender, observed) = watch::channel(Observed::Unknown);
    let task = tokio::spawn(async move {
        let mut failures = 0;
        loop {
            if let Err(error) = list_and_watch(&api, &name, &sender, &mut failures).await
            {
                failures += 1;
                let error = with_causes(error.as_ref());
                tracing::warn!(object = name, error, "watch failed");
                sleep(backoff(failures)).await;
            }
        }
    });
    Watched { observed, task }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How a watch ended.
enum Ended {
    /// The server has closed it.
    Closed,
    /// The server has forgotten the version at which it began.
    Gone,
}

/// Reads the object and watches it, until it has to be read again. A watch that has lasted or had an
/// event ends the failures in a row: a list alone does not, so that it is not repeated without pause
/// where every watch ends at once.
async fn list_and_watch<K>(
    api: &Api<K>,
    name: &str,
    sender: &watch::Sender<Observed<K>>,
    failures: &mut u32,
) -> Result<(), Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let field = format!("metadata.name={name}");
    let list = ListParams::default().fields(&field);
    let mut list = timeout(LIST_TIMEOUT, api.list(&list)).await??;
    let mut version = list.metadata.resource_version.take().unwrap_or_default();
    sender.send_replace(list.items.pop().map_or(Observed::Absent, Observed::Is));
    let params = WatchParams::default()
        .fields(&field)
        .timeout(u32::try_from(WATCH_TIMEOUT.as_secs()).unwrap_or(u32::MAX));
    let mut has_lasted = false;
    loop {
        let (began, from) = (Instant::now(), version.clone());
        let ended = follow(api, &params, &mut version, sender).await;
        let is_short = version == from && began.elapsed() < SHORT_WATCH;
        if !is_short {
            has_lasted = true;
            *failures = 0;
        }
        match ended? {
            Ended::Gone if has_lasted => return Ok(()),
            Ended::Gone => return Err("the version of the list is too old".into()),
            Ended::Closed if is_short => {
                return Err("the server closed the watch immediately".into());
            }
            Ended::Closed => {}
        }
    }
}

/// One watch from `version` on, which becomes that of the last event.
async fn follow<K>(
    api: &Api<K>,
    params: &WatchParams,
    version: &mut String,
    sender: &watch::Sender<Observed<K>>,
) -> Result<Ended, Failure>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let events = timeout(LIST_TIMEOUT, api.watch(params, version)).await?;
    let mut events = match events {
        Ok(events) => pin!(events),
        Err(kube::Error::Api(status)) if status.code == GONE => return Ok(Ended::Gone),
        Err(error) => return Err(error.into()),
    };
    while let Some(event) = timeout(IDLE_TIMEOUT, events.next()).await? {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                *version = object.resource_version().unwrap_or_default();
                sender.send_replace(Observed::Is(object));
            }
            WatchEvent::Deleted(object) => {
                *version = object.resource_version().unwrap_or_default();
                sender.send_replace(Observed::Absent);
            }
            WatchEvent::Bookmark(bookmark) => {
                *version = bookmark.metadata.resource_version;
            }
            WatchEvent::Error(status) if status.code == GONE => return Ok(Ended::Gone),
            WatchEvent::Error(status) => {
                return Err(kube::Error::Api(status).into());
            }
        }
    }
    Ok(Ended::Closed)
}

/// The wait after `failures` failures in a row: a quarter of a second, doubling up to half a
/// minute, minus up to half of it, so that many nodes do not send requests at the same time.
pub(crate) fn backoff(failures: u32) -> Duration {
    let most = Duration::from_millis(250) * 2_u32.pow(failures.clamp(1, 8) - 1);
    let most = most.min(Duration::from_secs(30));
    // Each `RandomState` has a random seed.
    let drawn = RandomState::new().build_hasher().finish() % 1000;
    let share = u32::try_from(drawn).unwrap_or_default();
    most.saturating_sub(most / 2000 * share)
}

/// The same, and at most a second while somebody waits for their host.
pub(crate) fn backoff_while(is_urgent: bool, failures: u32) -> Duration {
    let pause = backoff(failures);
    if is_urgent { pause.min(URGENT) } else { pause }
}

#[cfg(test)]
mod tests {
    use super::backoff;

    #[test]
    fn the_backoff_grows_to_half_a_minute_and_is_never_zero() {
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
