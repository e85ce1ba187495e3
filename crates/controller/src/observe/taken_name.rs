//! A name that is taken by a provider object without our label is watched until it is free.

use std::sync::Arc;

use fivespot_runtime::Key;
use fivespot_runtime::cache::MetadataOnly;
use fivespot_runtime::watch::{Selector, Sink, Watch, follow};
use serde_json::Value;

use crate::context::Context;
use crate::failure;
use crate::observe::name_conflict::{NameConflict, WatchedNames};
use crate::observe::watch::retry;

/// The maximum number of names that are watched, each with its own connection or a stream of one.
/// For further names the ScheduledMachine is requeued periodically.
const MAX_WATCHED_NAMES: usize = 100;

/// How many of them one namespace has at most.
const MAX_OF_NAMESPACE: usize = 20;

/// Ensures that `key` is enqueued when one of these names, which other objects have, is free.
/// `names` are all such names of `key`. Returns whether it will be.
pub(crate) fn watch_names(
    context: &Arc<Context>,
    key: &Key,
    names: &[NameConflict],
) -> bool {
    let mut all = context.name_conflicts.all();
    if names.is_empty() {
        all.remove(key);
        return true;
    }
    if all.get(key).is_some_and(|watched| watched.names == names) {
        return true;
    }
    all.remove(key);
    let count = |is: &dyn Fn(&Key) -> bool| {
        let watched = all.iter().filter(|(other, _)| is(other));
        names.len() + watched.map(|(_, of)| of.names.len()).sum::<usize>()
    };
    let of_namespace = count(&|other| other.namespace == key.namespace);
    if count(&|_| true) > MAX_WATCHED_NAMES || of_namespace > MAX_OF_NAMESPACE {
        return false;
    }
    let watches = names.iter().map(|conflict| {
        let (own, key, conflict) = (context.clone(), key.clone(), conflict.clone());
        context.spawn(follow_name(own, key, conflict))
    });
    let watched = WatchedNames {
        _watches: watches.collect(),
        names: names.to_vec(),
    };
    all.insert(key.clone(), watched);
    true
}

/// Enqueues `key` whenever the object is gone. Never ends.
async fn follow_name(context: Arc<Context>, key: Key, conflict: NameConflict) {
    let watch = Watch {
        client: context.api.clone(),
        resource: conflict.resource,
        namespace: Some(key.namespace.clone()),
        selector: Some(Selector::named(&conflict.name)),
        projection: Arc::new(MetadataOnly),
    };
    let retry = retry(&context, &conflict.name);
    let sink = NameFreeSink {
        context,
        key,
        name: conflict.name,
        is_listed: false,
    };
    follow(watch, retry, sink).await;
}

/// Enqueues a ScheduledMachine when the name is free.
struct NameFreeSink {
    context: Arc<Context>,
    key: Key,
    name: String,
    /// Whether the list under way contains the object.
    is_listed: bool,
}

impl Sink for NameFreeSink {
    fn list_begins(&mut self) {
        self.is_listed = false;
    }

    fn listed(&mut self, _object: Value) -> kube::Result<()> {
        self.is_listed = true;
        Ok(())
    }

    fn list_ends(&mut self) {
        if !self.is_listed {
            self.context.queue.enqueue(&self.key);
        }
    }

    fn modified(&mut self, _object: Value) -> kube::Result<()> {
        Ok(())
    }

    fn deleted(&mut self, _object: Value) {
        self.context.queue.enqueue(&self.key);
    }

    fn failed(&mut self, error: &kube::Error) {
        let error = failure::message(error);
        self.context
            .outage
            .warn(format_args!("watch of {} failed", self.name), &error);
    }
}
