//! ClusterRoles for users of ScheduledMachines.

use fivespot_api::name;
use fivespot_api::resource::RESOURCES;
use serde_json::{Value, json};

const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

/// Which of the roles Kubernetes aggregates into its own roles `view`, `edit` and `admin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Both: users who may edit a namespace may create ScheduledMachines in it, and thereby
    /// decide what their machines run.
    Both,
    /// Only the read-only role.
    View,
    /// Neither; they must be bound.
    None,
}

/// The roles `5spot-view` and `5spot-edit`. Rules that are aggregated into `view` are also in
/// `edit`, and those in `edit` also in `admin`. Cannot fail.
pub fn roles(aggregation: Aggregation) -> Vec<Value> {
    let rules = |verbs: &[&str]| {
        let groups = [name::GROUP, name::SPOT_GROUP];
        groups.map(|group| {
            let of_group = RESOURCES.iter().filter(|it| it.group == group);
            let resources: Vec<&str> = of_group.map(|it| it.plural).collect();
            json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
        })
    };
    let (read, write) = (rules(&READ), rules(&WRITE));
    let (mut view, mut edit) = (
        role("view", json!(read)),
        role("edit", json!([read, write].concat())),
    );
    if aggregation != Aggregation::None {
        aggregate(&mut view, "view");
    }
    if aggregation == Aggregation::Both {
        aggregate(&mut edit, "edit");
    }
    vec![view, edit]
}

/// Aggregates a role into Kubernetes' own role of that level.
fn aggregate(role: &mut Value, level: &str) {
    let label = format!("rbac.authorization.k8s.io/aggregate-to-{level}");
    role["metadata"]["labels"][label] = json!("true");
}

fn role(level: &str, rules: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("5spot-{level}"), "labels": {"app.kubernetes.io/name": "5spot"}},
        "rules": rules,
    })
}
