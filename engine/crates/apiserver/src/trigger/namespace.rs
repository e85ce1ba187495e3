//! The writes after which a namespace is emptied, or created again.

use serde_json::Value;

use crate::kind::namespace::INITIAL;
use crate::meta;
use crate::state::State;
use crate::store::{Change, Key};
use crate::work_queue::WorkItem;

/// Enqueues a namespace that is being deleted or loses an object, and a system namespace that is
/// gone.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    let name = &*change.key.name;
    if change.bucket == state.buckets.namespaces {
        if change.after.is_none() && INITIAL.contains(&name) {
            state.queue.add(WorkItem::SystemNamespace(name.to_owned()));
        }
        if change.after.as_deref().is_some_and(meta::is_deleting)
            && !only_conditions_differ(change)
        {
            state.queue.add(WorkItem::Namespace(name.to_owned()));
        }
    } else if change.after.is_none() && is_ending(state, &change.key.namespace) {
        let namespace = change.key.namespace.to_string();
        state.queue.add(WorkItem::Namespace(namespace));
    }
}

/// Whether a write changes nothing but the conditions in the status of an object. They are written by
/// the reconcile of a namespace itself, with the refusals of its requests, whose words may differ
/// each time.
pub(super) fn only_conditions_differ(change: &Change) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        return false;
    };
    let rest = |it: &Value| {
        let mut rest = it.clone();
        rest["metadata"]["resourceVersion"] = Value::Null;
        rest["metadata"]["managedFields"] = Value::Null;
        rest["status"]["conditions"] = Value::Null;
        rest
    };
    rest(before) == rest(after)
}

/// Whether a namespace is being deleted.
pub(crate) fn is_ending(state: &State, name: &str) -> bool {
    let found = state.get(state.buckets.namespaces, &Key::new("", name));
    !name.is_empty() && found.is_some_and(|it| meta::is_deleting(it))
}
