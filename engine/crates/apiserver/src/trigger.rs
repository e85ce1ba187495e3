//! What follows from a write: what applies at once, and the work that it requires of the controllers.

mod cluster_role_aggregation;
mod disruption;
mod event_expiry;
mod garbage_collector;
pub(crate) mod namespace;
pub(crate) mod namespace_bootstrap;
pub(crate) mod node_taint;
mod policy_type_check;
pub(crate) mod resource_quota;
pub(crate) mod token;
pub(crate) mod volume_protection;

use std::sync::Arc;

use crate::definition;
use crate::index::Location;
use crate::state::State;
use crate::store::Change;
use crate::work_queue::WorkItem;

/// Applies a write that later requests depend on at once, and enqueues the work items that it
/// requires.
pub(crate) fn enqueue(state: &mut State, change: &Arc<Change>) {
    garbage_collector::enqueue(state, change);
    update_indexes(state, change);
    disruption::enqueue(state, change);
    resource_quota::enqueue(state, change);
    volume_protection::enqueue(state, change);
    node_taint::enqueue(state, change);
    if may_be_admitted(state, change) {
        state.queue.retry_rejected();
    }
    namespace_bootstrap::enqueue(state, change);
    token::enqueue(state, change);
    cluster_role_aggregation::enqueue(state, change);
    event_expiry::enqueue(state, change);
    if change.after.is_none()
        && let Some(key) = definition::terminating(state, change.bucket)
    {
        state.queue.add(WorkItem::Definition(key));
    }
    namespace::enqueue(state, change);
}

/// Updates the indexes of definitions, policies, webhooks, roles and bindings, which apply from the
/// write on.
fn update_indexes(state: &mut State, change: &Arc<Change>) {
    let buckets = state.buckets;
    if change.bucket == buckets.definitions {
        definition::changed(state, change);
    } else if change.bucket == buckets.policies || change.bucket == buckets.bindings {
        if let Err(errors) = state.policies.update(change, state.kube) {
            state.record_invalid(&change.object, &errors);
        }
        policy_type_check::enqueue(state, change);
    } else if buckets.mutating_policies == change.bucket
        || buckets.mutating_bindings == change.bucket
    {
        if let Err(errors) = state.mutating_policies.update(change, state.kube) {
            state.record_invalid(&change.object, &errors);
        }
    } else if buckets.webhooks.contains(&change.bucket) {
        state.admission_webhooks.update(change, state.kube);
    } else if buckets.rbac.contains(&change.bucket) {
        Arc::make_mut(&mut state.rules).update(change);
    }
}

/// Whether admission may now admit a request that it has rejected: the write is to an object that
/// admission depends on, or to the rejected object.
fn may_be_admitted(state: &State, change: &Change) -> bool {
    let rejected = &state.queue.rejected;
    if rejected.is_empty() {
        return false;
    }
    let buckets = &state.buckets;
    let deciding = [
        buckets.policies,
        buckets.bindings,
        buckets.mutating_policies,
        buckets.mutating_bindings,
        buckets.definitions,
        buckets.namespaces,
    ];
    let key = &change.key;
    // Of a namespace the labels and the deletion decide, not the conditions.
    let decides =
        change.bucket != buckets.namespaces || !namespace::only_conditions_differ(change);
    deciding.contains(&change.bucket) && decides
        || buckets.rbac.contains(&change.bucket)
        || buckets.webhooks.contains(&change.bucket)
        || state.policies.reads_parameters_of(&change.object["kind"])
        || state
            .mutating_policies
            .reads_parameters_of(&change.object["kind"])
        || rejected.contains(&WorkItem::Collect(Location::new(
            change.bucket,
            key.clone(),
        )))
        || rejected.contains(&WorkItem::Token(key.clone()))
        || rejected.contains(&WorkItem::Budget(key.clone()))
        || rejected.contains(&WorkItem::Namespace(key.namespace.to_string()))
}
