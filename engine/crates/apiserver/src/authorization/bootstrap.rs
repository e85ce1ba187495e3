//! The roles and bindings that exist when an API server has started.

use serde_json::Value;

use super::rule_index::GROUP;
use crate::initial::object::{Initial, SERVER_MANAGER};
use crate::state::State;

/// The objects of a kube-apiserver 1.36, one on each line, as `cargo judge bootstrap` reads them.
const OBJECTS: &str = include_str!("bootstrap.jsonl");

/// Creates those that are missing.
pub(crate) fn install(state: &mut State) {
    for line in OBJECTS.lines() {
        let Ok(object) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let plural = match object["kind"].as_str() {
            Some("ClusterRole") => "clusterroles",
            Some("ClusterRoleBinding") => "clusterrolebindings",
            Some("Role") => "roles",
            _ => "rolebindings",
        };
        let initial = Initial {
            group: GROUP,
            plural,
            manager: SERVER_MANAGER,
            object,
        };
        state.ensure(initial, None);
    }
}
