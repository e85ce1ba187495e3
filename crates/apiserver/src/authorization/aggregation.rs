//! Cluster roles that are put together from others by their labels.

use fivespot_admission::selector::Selector;
use serde_json::{Value, json};

use crate::meta;
use crate::state::State;
use crate::store::{Object, Range};

/// Gives every aggregated role the rules of those that it selects, in the order of their
/// names and each once. A role that changes is a reason to look again.
pub(crate) fn aggregate(state: &mut State) {
    let shelf = state.shelves.cluster_roles;
    let found = state.store.list(shelf, &Range::default(), None);
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
            state.put(shelf, role);
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
