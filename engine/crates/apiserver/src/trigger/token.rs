//! The writes after which a token Secret is filled or deleted.

use serde_json::Value;

use crate::state::State;
use crate::store::{Change, Key, Range};
use crate::work_queue::WorkItem;

pub(crate) const TYPE: &str = "kubernetes.io/service-account-token";

const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// Enqueues the written secret, or those of a deleted service account.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    if change.bucket == state.buckets.secrets {
        if change.after.as_deref().is_some_and(|it| it["type"] == TYPE) {
            state.queue.add(WorkItem::Token(change.key.clone()));
        }
    } else if change.bucket == state.buckets.accounts && change.after.is_none() {
        let range = Range {
            namespace: Some(&change.key.namespace),
            after: None,
        };
        let found = state.store.list(state.buckets.secrets, &range, None);
        let own: Vec<Key> = found
            .into_iter()
            .flatten()
            .filter(|(_, it)| it["type"] == TYPE && account_of(it) == &*change.key.name)
            .map(|(key, _)| key.clone())
            .collect();
        for key in own {
            state.queue.add(WorkItem::Token(key));
        }
    }
}

pub(crate) fn account_of(secret: &Value) -> &str {
    let name = secret["metadata"]["annotations"][ACCOUNT].as_str();
    name.unwrap_or_default()
}
