//! Names that somebody else has taken: each is watched until it is free.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{self, Event, watcher};

use crate::failure;
use crate::feed::Task;
use crate::shell::Shell;
use crate::watch::rest;
use fivespot_runtime::Key;

/// How many names are watched at most, each with a connection of its own or a stream of one. Who
/// comes later is looked after by asking now and then.
const MOST: usize = 100;

/// An object that is not ours under a name that we need, in the ScheduledMachine's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Its kind.
    pub(crate) resource: ApiResource,
    /// The name.
    pub(crate) name: String,
}

/// The watches of names that are taken, by who needs them. They exist only as long as that lasts,
/// because no other watch shows what does not bear our label. Of an object nothing is kept.
#[derive(Debug, Default)]
pub(crate) struct TakenNames(Mutex<BTreeMap<Key, Watched>>);

#[derive(Debug)]
struct Watched {
    names: Vec<Taken>,
    /// Held for their drop.
    _watches: Vec<Task>,
}

impl TakenNames {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `key` needs no such name any more.
    pub(crate) fn forget(&self, key: &Key) {
        self.all().remove(key);
    }
}

/// Sees to it that `key` is woken when one of these names, all that it needs and others have, is
/// free. Says whether it will be.
pub(crate) fn follow_names(shell: &Arc<Shell>, key: &Key, names: &[Taken]) -> bool {
    let mut all = shell.taken.all();
    if names.is_empty() {
        all.remove(key);
        return true;
    }
    if all.get(key).is_some_and(|watched| watched.names == names) {
        return true;
    }
    all.remove(key);
    let others: usize = all.values().map(|watched| watched.names.len()).sum();
    if others + names.len() > MOST {
        return false;
    }
    let watches = names.iter().map(|taken| {
        let (own, key, taken) = (shell.clone(), key.clone(), taken.clone());
        shell.spawn(follow(own, key, taken))
    });
    let watched = Watched {
        _watches: watches.collect(),
        names: names.to_vec(),
    };
    all.insert(key.clone(), watched);
    true
}

/// Wakes `key` when the object is gone, for ever.
async fn follow(shell: Arc<Shell>, key: Key, taken: Taken) {
    let client = shell.port.client();
    let api: Api<PartialObjectMeta<DynamicObject>> =
        Api::namespaced_with(client, &key.namespace, &taken.resource);
    let config =
        watcher::Config::default().fields(&format!("metadata.name={}", taken.name));
    let mut events = pin!(watcher(api, config));
    let mut loading = Some(shell.clock.busy());
    let (mut failures, mut is_there) = (0, false);
    while let Some(event) = events.next().await {
        let arrived = shell.clock.busy();
        match event {
            Ok(Event::Init) => is_there = false,
            Ok(Event::InitApply(_) | Event::Apply(_)) => is_there = true,
            Ok(Event::InitDone) => {
                (failures, loading) = (0, None);
                if !is_there {
                    shell.work.wake(&key);
                }
            }
            Ok(Event::Delete(_)) => shell.work.wake(&key),
            Err(error) => {
                failures += 1;
                let error = failure::words(&failure::of_watch(error));
                shell
                    .outage
                    .complain(format_args!("watch of {} failed", taken.name), &error);
                // Nobody is held up meanwhile, a virtual clock least of all.
                drop(arrived);
                rest(&shell, &taken.name, failures, &mut loading).await;
            }
        }
    }
}
