//! Deletes the objects of a definition that is being deleted.

use serde_json::Value;

use crate::definition::{CLEANUP, defined};
use crate::index::Location;
use crate::meta;
use crate::options::delete::{Options, Propagation};
use crate::state::State;
use crate::store::{Key, Range};
use crate::verb::delete::delete_object;

/// Deletes the objects of a definition that is being deleted; removes the definition's
/// finalizer when they are gone.
pub(super) fn clean_up(state: &mut State, key: &Key) {
    let Some(definition) = state.get(state.buckets.definitions, key).cloned() else {
        return;
    };
    if !meta::is_deleting(&definition) || !meta::has_finalizer(&definition, CLEANUP) {
        return;
    }
    let bucket = state.store.bucket(&defined(&definition));
    let Ok(found) = state.store.list(bucket, &Range::default(), None) else {
        return;
    };
    let found: Vec<(Key, bool)> = found
        .map(|(key, it)| (key.clone(), meta::is_deleting(it)))
        .collect();
    if found.is_empty() {
        let mut definition = Value::clone(&definition);
        meta::retain_finalizers(&mut definition, |it| it != CLEANUP);
        state.put_or_remove(state.buckets.definitions, definition);
        return;
    }
    // Each removal enqueues this item again, after the garbage collection of the dependents of
    // the removed object: garbage collection requires that the kind is still served.
    for (key, _) in found.into_iter().filter(|(_, deleting)| !deleting) {
        let propagation = Some(Propagation::Background);
        let options = Options {
            propagation,
            ..Options::default()
        };
        // An object that waits for its finalizers enqueues this item when it is removed.
        let _ = delete_object(state, &Location::new(bucket, key), &options);
    }
}
