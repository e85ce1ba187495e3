//! A namespace that the server itself creates.

use serde_json::json;

use crate::state::State;
use crate::store::Key;

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
