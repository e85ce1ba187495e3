//! Processes the work queue: each item is one reconcile of a controller.

use super::{
    cluster_role_aggregation, definition, disruption, event_expiry, garbage_collector,
    namespace, namespace_bootstrap, node_taint, policy_type_check, resource_quota, token,
    volume_protection,
};
use crate::namespace::ensure;
use crate::state::State;
use crate::work_queue::WorkItem;

/// Processes the next item. Returns whether there was one.
pub(crate) fn process_next(state: &mut State) -> bool {
    let Some(item) = state.queue.next() else {
        return false;
    };
    process(state, item);
    true
}

/// Processes an item, which is not in the queue any more.
pub(crate) fn process(state: &mut State, item: WorkItem) {
    match item {
        WorkItem::Collect(location) => garbage_collector::reconcile(state, &location),
        WorkItem::Dependents(uid) => garbage_collector::reconcile_dependents(state, &uid),
        WorkItem::Namespace(name) => namespace::reconcile(state, &name),
        WorkItem::Budget(key) => disruption::reconcile(state, &key),
        WorkItem::Quotas(namespace) => resource_quota::reconcile(state, &namespace),
        WorkItem::Volume(location) => volume_protection::reconcile(state, &location),
        WorkItem::Node(key) => node_taint::reconcile(state, &key),
        WorkItem::Policy(key) => policy_type_check::reconcile(state, &key),
        WorkItem::NamespaceBootstrap(name) => {
            namespace_bootstrap::reconcile(state, &name);
        }
        WorkItem::Token(key) => token::reconcile(state, &key),
        WorkItem::SystemNamespace(name) => ensure(state, &name),
        WorkItem::Aggregate => cluster_role_aggregation::reconcile(state),
        WorkItem::Expire => event_expiry::delete_expired(state),
        WorkItem::Definition(key) => definition::clean_up(state, &key),
    }
}
