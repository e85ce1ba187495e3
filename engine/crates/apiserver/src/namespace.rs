//! The initial namespaces, and namespaces that are being deleted.

use serde_json::json;

use crate::meta;
use crate::state::State;
use crate::store::Key;

/// The namespaces that exist from the start; all but the last cannot be deleted.
pub(crate) const INITIAL: [&str; 4] =
    ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates a namespace unless it exists.
pub(crate) fn ensure(state: &mut State, name: &str) {
    let bucket = state.buckets.namespaces;
    if state.get(bucket, &Key::new("", name)).is_some() {
        return;
    }
    let uid = state.random.uid();
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "uid": uid,
            "creationTimestamp": state.now(),
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    });
    state.put(bucket, namespace);
}

/// Whether a namespace is being deleted.
pub(crate) fn is_ending(state: &State, name: &str) -> bool {
    let found = state.get(state.buckets.namespaces, &Key::new("", name));
    !name.is_empty() && found.is_some_and(|it| meta::is_deleting(it))
}
