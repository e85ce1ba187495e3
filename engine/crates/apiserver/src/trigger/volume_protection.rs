//! The writes after which a claim or a volume may be deleted.

use serde_json::Value;

use crate::index::Location;
use crate::meta;
use crate::state::State;
use crate::store::{Change, Key};
use crate::work_queue::WorkItem;

/// Enqueues a claim or a volume that is written while it is being deleted, and the claims of a
/// deleted pod.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    let buckets = state.buckets;
    if change.bucket == buckets.claims || change.bucket == buckets.volumes {
        if change.after.as_deref().is_some_and(meta::is_deleting) {
            let location = Location::new(change.bucket, change.key.clone());
            state.queue.add(WorkItem::Volume(location));
        }
    } else if change.bucket == buckets.pods && change.after.is_none() {
        for claim in claims(&change.object) {
            let key = Key::new(&change.key.namespace, claim);
            let location = Location::new(buckets.claims, key);
            state.queue.add(WorkItem::Volume(location));
        }
    }
}

/// The claims that a pod names.
pub(crate) fn claims(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str())
}
