//! The writes after which a namespace lacks what every namespace has.

use serde_json::{Value, json};

use crate::state::State;
use crate::store::Change;
use crate::work_queue::WorkItem;

/// The service account of pods that name none.
pub(crate) const ACCOUNT: &str = "default";

/// The config map with the server's CA certificate.
pub(crate) const AUTHORITY: &str = "kube-root-ca.crt";

/// The annotation that describes it.
pub(crate) const DESCRIPTION: &str = "kubernetes.io/description";

/// The service of the API server, in the namespace `default`.
pub(crate) const SERVICE: &str = "kubernetes";

/// Enqueues a new namespace, or one that has lost one of these objects or whose CA certificate
/// was changed.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    if let Some(name) = affected_namespace(state, change) {
        state.queue.add(WorkItem::NamespaceBootstrap(name));
    }
}

fn affected_namespace(state: &State, change: &Change) -> Option<String> {
    let key = &change.key;
    if change.bucket == state.buckets.namespaces {
        return change.before.is_none().then(|| key.name.to_string());
    }
    let given = change.bucket == state.buckets.accounts && *key.name == *ACCOUNT
        || change.bucket == state.buckets.maps && *key.name == *AUTHORITY
        || change.bucket == state.buckets.services && *key.name == *SERVICE;
    let is_complete = |after: &Value| {
        let authority = state.authority.as_deref();
        change.bucket != state.buckets.maps
            || authority.is_none_or(|it| publishes(after, it))
    };
    let lost = given && !change.after.as_deref().is_some_and(is_complete);
    lost.then(|| key.namespace.to_string())
}

/// Whether a config map has the CA certificate and its description.
pub(crate) fn publishes(map: &Value, authority: &str) -> bool {
    let description = &map["metadata"]["annotations"][DESCRIPTION];
    map["data"] == json!({"ca.crt": authority})
        && description.as_str().is_some_and(|it| !it.is_empty())
}
