//! Removes the finalizers of PersistentVolumeClaims and PersistentVolumes that are deleted and not
//! used (pkg/controller/volume/pvcprotection and pvprotection).

use serde_json::{Value, json};

use super::Controller;
use super::queue::WorkItem;
use crate::index::Location;
use crate::meta;
use crate::plugin::storage_object_in_use_protection::{OF_CLAIM, OF_VOLUME};
use crate::state::State;
use crate::store::{Change, Key, Range};

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
fn claims(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str())
}

/// Removes the finalizer of a claim or volume that is deleted and not used.
pub(super) fn reconcile(state: &mut State, location: &Location) {
    let Some(object) = state.get(location.bucket, &location.key).cloned() else {
        return;
    };
    let is_claim = location.bucket == state.buckets.claims;
    let (finalizer, controller) = if is_claim {
        (OF_CLAIM, Controller::Claims)
    } else {
        (OF_VOLUME, Controller::Volumes)
    };
    let is_used = if is_claim {
        is_claim_used(state, &location.key)
    } else {
        object["status"]["phase"] == "Bound"
    };
    let is_kept = meta::has_finalizer(&object, finalizer);
    if !meta::is_deleting(&object) || !is_kept || is_used {
        return;
    }
    let remaining: Vec<&str> = meta::finalizers(&object)
        .filter(|it| *it != finalizer)
        .collect();
    let patch = json!({"metadata": {"uid": meta::uid(&object), "finalizers": remaining}});
    if let Err(refused) = controller.patch(state, location, patch) {
        tracing::debug!(%refused, name = %location.key.name, "volume finalizer not removed");
        state.queue.retry_later(WorkItem::Volume(location.clone()));
    }
}

/// Whether a scheduled pod uses the claim.
fn is_claim_used(state: &State, key: &Key) -> bool {
    let range = Range {
        namespace: Some(&key.namespace),
        after: None,
    };
    let pods = state.store.list(state.buckets.pods, &range, None);
    let mut pods = pods.into_iter().flatten();
    pods.any(|(_, pod)| {
        let node = pod["spec"]["nodeName"].as_str();
        node.is_some_and(|it| !it.is_empty()) && claims(pod).any(|it| it == &*key.name)
    })
}
