//! ClusterRoles for the people who use ScheduledMachines.

use std::collections::BTreeMap;

use fivespot_api::name;
use fivespot_api::resource::RESOURCES;
use serde_json::{Value, json};

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// Whether Kubernetes adds the roles to its own roles `view`, `edit` and `admin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// It does: who may edit a namespace may edit ScheduledMachines in it.
    On,
    /// It does not: the roles have to be bound.
    Off,
}

/// The roles `5spot-view` and `5spot-edit`. Kubernetes adds `view` to `edit`, and `edit` to
/// `admin`. Cannot fail.
pub fn roles(aggregation: Aggregation) -> Vec<Value> {
    let resources: Vec<&str> = RESOURCES.iter().map(|it| it.plural).collect();
    let read = json!({"apiGroups": [name::GROUP], "resources": resources, "verbs": READ});
    let write =
        json!({"apiGroups": [name::GROUP], "resources": resources, "verbs": WRITE});
    vec![
        role("view", aggregation, json!([read])),
        role("edit", aggregation, json!([read, write])),
    ]
}

fn role(level: &str, aggregation: Aggregation, rules: Value) -> Value {
    let mut labels =
        BTreeMap::from([("app.kubernetes.io/name".to_owned(), "5spot".to_owned())]);
    if aggregation == Aggregation::On {
        labels.insert(
            format!("rbac.authorization.k8s.io/aggregate-to-{level}"),
            "true".to_owned(),
        );
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("5spot-{level}"), "labels": labels},
        "rules": rules,
    })
}
