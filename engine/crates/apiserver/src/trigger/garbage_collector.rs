//! The writes after which objects may be collectable.

use std::sync::Arc;

use serde_json::Value;

use crate::index::Location;
use crate::meta;
use crate::options::delete::{FOREGROUND, ORPHAN};
use crate::state::State;
use crate::store::Change;
use crate::work_queue::WorkItem;

/// Enqueues the objects that a write may have made collectable.
pub(super) fn enqueue(state: &mut State, change: &Arc<Change>) {
    let location = |change: &Change| {
        WorkItem::Collect(Location::new(change.bucket, change.key.clone()))
    };
    match (&change.before, &change.after) {
        (_, Some(after)) => {
            let waits = meta::is_deleting(after)
                && meta::finalizers(after).any(|it| it == FOREGROUND || it == ORPHAN);
            let doubtful = meta::owners(after)
                .iter()
                .any(|owner| !is_as_named(state, after, owner));
            if waits || doubtful {
                state.queue.add(location(change));
            }
            if waits {
                let uid = meta::uid(after).to_owned();
                state.queue.add(WorkItem::Dependents(uid));
            }
            if let Some(before) = &change.before
                && before["metadata"]["ownerReferences"]
                    != after["metadata"]["ownerReferences"]
            {
                state.queue.add(location(change));
                enqueue_owners(state, before);
            }
        }
        (Some(before), None) => {
            state
                .queue
                .add(WorkItem::Dependents(meta::uid(before).to_owned()));
            enqueue_owners(state, before);
        }
        (None, None) => {}
    }
}

/// Whether the owner has the namespace, kind and name of the reference to it.
fn is_as_named(state: &State, dependent: &Value, owner: &Value) -> bool {
    let uid = owner["uid"].as_str().unwrap_or_default();
    let Some(Location { bucket, key }) = state.index.by_uid(uid) else {
        return false;
    };
    let in_scope =
        key.namespace.is_empty() || *key.namespace == *meta::namespace(dependent);
    let (group, _) = meta::group_and_version(owner);
    let is_kind = state
        .stored_resource(*bucket)
        .is_some_and(|it| owner["kind"] == it.kind.as_str() && group == it.storage.group);
    in_scope && is_kind && owner["name"] == *key.name
}

/// Enqueues the owners that wait for their dependents, after one was deleted or has dropped its
/// reference.
fn enqueue_owners(state: &mut State, object: &Value) {
    for owner in meta::owners(object) {
        let uid = owner["uid"].as_str().unwrap_or_default();
        let Some(location) = state.index.by_uid(uid).cloned() else {
            continue;
        };
        if state
            .get(location.bucket, &location.key)
            .is_some_and(|it| meta::is_deleting(it))
        {
            state.queue.add(WorkItem::Collect(location));
        }
    }
}
