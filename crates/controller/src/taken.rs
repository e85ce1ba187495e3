//! Names that somebody else has taken: each is watched until it is free.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_runtime::Key;
use fivespot_runtime::cache::{MetadataOnly, Task};
use fivespot_runtime::watch::{Selector, Sink, Watch, follow};
use kube::api::ApiResource;
use serde_json::Value;

use crate::failure;
use crate::shell::Shell;
use crate::watch::retry;

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
        shell.spawn(follow_name(own, key, taken))
    });
    let watched = Watched {
        _watches: watches.collect(),
        names: names.to_vec(),
    };
    all.insert(key.clone(), watched);
    true
}

/// Wakes `key` when the object is gone, for ever.
async fn follow_name(shell: Arc<Shell>, key: Key, taken: Taken) {
    let watch = Watch {
        client: shell.port.clone(),
        resource: taken.resource,
        namespace: Some(key.namespace.clone()),
        selector: Some(Selector::named(&taken.name)),
        projection: Arc::new(MetadataOnly),
    };
    let retry = retry(&shell, &taken.name);
    let free = WakeWhenFree {
        shell,
        key,
        name: taken.name,
        is_listed: false,
    };
    follow(watch, retry, free).await;
}

/// Wakes a ScheduledMachine when the name is free.
struct WakeWhenFree {
    shell: Arc<Shell>,
    key: Key,
    name: String,
    /// Whether the list under way has named the object.
    is_listed: bool,
}

impl Sink for WakeWhenFree {
    fn list_begins(&mut self) {
        self.is_listed = false;
    }

    fn listed(&mut self, _object: Value) -> kube::Result<()> {
        self.is_listed = true;
        Ok(())
    }

    fn list_ends(&mut self) {
        if !self.is_listed {
            self.shell.work.wake(&self.key);
        }
    }

    fn put(&mut self, _object: Value) -> kube::Result<()> {
        Ok(())
    }

    fn deleted(&mut self, _object: Value) {
        self.shell.work.wake(&self.key);
    }

    fn failed(&mut self, error: &kube::Error) {
        let error = failure::words(error);
        self.shell
            .outage
            .complain(format_args!("watch of {} failed", self.name), &error);
    }
}
