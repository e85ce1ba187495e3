//! Aggregates cluster roles from others by their labels (pkg/controller/clusterroleaggregation).

use kubemu_admission::selector::Selector;
use serde_json::{Value, json};

use crate::meta;
use crate::state::State;
use crate::store::{Object, Range};
use crate::work_queue::WorkItem;

/// Sets the rules of every aggregated role to those of the roles that it selects, in the order of
/// their names and each once.
///
/// A role may select another aggregated role, so this repeats until nothing changes. Roles that
/// select each other in a ring can pass different rules round for ever; Kubernetes goes on then,
/// but this ends after as many rounds as the longest chain of roles needs.
pub(super) fn reconcile(state: &mut State) {
    let names: Vec<String> = roles(state)
        .iter()
        .filter(|role| !selectors(role).is_empty())
        .map(|role| meta::name(role).to_owned())
        .collect();
    for _ in 0..=names.len() {
        let mut changed = false;
        for name in &names {
            changed |= aggregate(state, name);
        }
        if !changed {
            break;
        }
    }
    // The writes above have enqueued another reconcile, which is already done.
    state.queue.remove(&WorkItem::Aggregate);
}

/// Aggregates one role from the current state of the others. Returns whether it has changed.
fn aggregate(state: &mut State, name: &str) -> bool {
    let roles = roles(state);
    let Some(role) = roles.iter().find(|role| meta::name(role) == name) else {
        return false;
    };
    let rules = selected(role, selectors(role), &roles);
    if role["rules"].as_array().unwrap_or(&Vec::new()) == &rules {
        return false;
    }
    let mut role = Value::clone(role);
    role["rules"] = json!(rules);
    let bucket = state.buckets.cluster_roles;
    state.put(bucket, role);
    true
}

/// All cluster roles, sorted by name.
fn roles(state: &State) -> Vec<Object> {
    let bucket = state.buckets.cluster_roles;
    let found = state.store.list(bucket, &Range::default(), None);
    let found = found.into_iter().flatten();
    found.map(|(_, role)| role.clone()).collect()
}

fn selectors(role: &Value) -> &[Value] {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
    selectors.map_or(&[], Vec::as_slice)
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
