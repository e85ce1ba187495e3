//! Removes the finalizers of PersistentVolumeClaims and PersistentVolumes that are deleted and not
//! used (pkg/controller/volume/pvcprotection and pvprotection).

use serde_json::json;

use super::Controller;
use crate::index::Location;
use crate::kind::persistent_volume::OF_VOLUME;
use crate::kind::persistent_volume_claim::OF_CLAIM;
use crate::meta;
use crate::state::State;
use crate::store::{Key, Range};
use crate::trigger::volume_protection::claims;
use crate::work_queue::WorkItem;

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
