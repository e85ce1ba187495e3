//! ClusterRoles for users of ScheduledMachines.

use fivespot_api::name;
use fivespot_api::resource::RESOURCES;
use serde_json::{Value, json};

use crate::component::Component;

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

/// The roles `5spot-view`, `5spot-edit`, `5spot-override-editor`, `5spot-capacity-editor`,
/// `5spot-class-user` and `5spot-class-admin`. Rules
/// that are aggregated into `view` are also in `edit`, and those in `edit` also in `admin`. Cannot
/// fail.
pub fn roles(aggregation: Aggregation) -> Vec<Value> {
    let rules = |verbs: &[&str], except: &str| {
        let groups = [name::GROUP, name::SPOT_GROUP];
        groups.map(|group| {
            let of_group = RESOURCES.iter().filter(|it| it.group == group);
            // Classes are in no namespace, and a platform team has them.
            let of_group = of_group.filter(|it| it.is_namespaced);
            let of_group = of_group.filter(|it| it.plural != except);
            let resources = of_group.flat_map(|it| {
                let scale = it.has_scale.then(|| format!("{}/scale", it.plural));
                [it.plural.to_owned()].into_iter().chain(scale)
            });
            let resources: Vec<String> = resources.collect();
            json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
        })
    };
    let (read, write) = (rules(&READ, ""), rules(&WRITE, name::CAPACITY_PLURAL));
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
    vec![
        view,
        edit,
        override_editor(),
        capacity_editor(),
        class_user(),
        class_admin(),
    ]
}

/// The rights of users who may override schedules, and to read what says which window is the next,
/// and nothing else. The cluster administrator binds the role.
fn override_editor() -> Value {
    let rule = |group: &str, plurals: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": plurals, "verbs": verbs});
    let write = [&READ[..], &WRITE].concat();
    let shared = [name::TIME_BASED_PLURAL, name::CAPITAL_MARKETS_PLURAL];
    let rules = [
        rule(name::GROUP, &[name::OVERRIDE_PLURAL], &write),
        rule(name::GROUP, &[name::CALENDAR_PLURAL, name::PLURAL], &READ),
        rule(name::SPOT_GROUP, &shared, &READ),
    ];
    named(name::OVERRIDE_EDITOR, json!(rules))
}

/// The right to make machines from every class. Whoever may use only some is given a copy with
/// `resourceNames`.
fn class_user() -> Value {
    class_role("class-user", &["get", "list", "watch", "use"])
}

/// The rights of a platform team on classes.
fn class_admin() -> Value {
    class_role("class-admin", &[&READ[..], &WRITE].concat())
}

fn class_role(level: &str, verbs: &[&str]) -> Value {
    let rule = json!({
        "apiGroups": [name::GROUP],
        "resources": [name::CLASS_PLURAL],
        "verbs": verbs,
    });
    role(level, json!([rule]))
}

/// The rights of users who may write ScheduledCapacities. They let the operator change objects that
/// the user may not change, so that no role of Kubernetes contains them: the cluster administrator
/// binds this one.
fn capacity_editor() -> Value {
    let verbs = [&READ[..], &WRITE].concat();
    let rule = json!({
        "apiGroups": [name::GROUP],
        "resources": [name::CAPACITY_PLURAL],
        "verbs": verbs,
    });
    role("capacity-editor", json!([rule]))
}

/// Aggregates a role into Kubernetes' own role of that level.
fn aggregate(role: &mut Value, level: &str) {
    let label = format!("rbac.authorization.k8s.io/aggregate-to-{level}");
    role["metadata"]["labels"][label] = json!("true");
}

fn role(level: &str, rules: Value) -> Value {
    named(&format!("5spot-{level}"), rules)
}

fn named(name: &str, rules: Value) -> Value {
    let mut labels = name::controller_labels();
    labels.remove("app.kubernetes.io/component");
    let component = Component {
        namespace: String::new(),
        labels,
    };
    component.object("ClusterRole", name, json!({"rules": rules}))
}
