//! Aggregates cluster roles from others by their labels (pkg/controller/clusterroleaggregation).

use fivespot_admission::selector::Selector;
use serde_json::{Value, json};

use super::queue::WorkItem;
use crate::meta;
use crate::state::State;
use crate::store::{Change, Object, Range};

/// Enqueues the aggregated roles when a cluster role is written.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    if change.bucket == state.buckets.cluster_roles {
        state.queue.add(WorkItem::Aggregate);
    }
}

/// Sets the rules of every aggregated role to those of the roles that it selects, in the order of
/// their names and each once.
pub(super) fn reconcile(state: &mut State) {
    let bucket = state.buckets.cluster_roles;
    let found = state.store.list(bucket, &Range::default(), None);
    let roles: Vec<Object> = found
        .into_iter()
        .flatten()
        .map(|(_, role)| role.clone())
        .collect();
    for role in &roles {
        let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
        let Some(selectors) = selectors.filter(|it| !it.is_empty()) else {
            continue;
        };
        let rules = selected(role, selectors, &roles);
        if role["rules"].as_array().unwrap_or(&Vec::new()) != &rules {
            let mut role = Value::clone(role);
            role["rules"] = json!(rules);
            state.put(bucket, role);
        }
    }
}

fn selected(own: &Value, selectors: &[Value], roles: &[Object]) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        let Ok(selector) = Selector::compile(Some(selector), "") else {
            continue;
        };
        for role in roles {
            let labels = role["metadata"].get("labels");
            if meta::name(role) == meta::name(own) || !selector.matches(labels) {
                continue;
            }
            for rule in role["rules"].as_array().into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}
