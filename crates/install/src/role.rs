//! Roles and bindings, made of the [table of permissions](crate::permission::PERMISSIONS).

use std::collections::{BTreeMap, BTreeSet};

use fivespot_api::name;
use serde_json::{Value, json};

use crate::permission::{PERMISSIONS, PROVIDER, Permission, Scope};
use crate::provider::Provider;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The operator's rights in one management cluster: to what, and where.
///
/// The default is what is shipped: every namespace, the objects of k0smotron, no Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The namespace of the operator and of its ServiceAccount.
    pub home: String,
    /// The providers whose objects it may create and remove.
    pub providers: Vec<&'static Provider>,
    /// Where it may do what it does to ScheduledMachines and to what they are made from.
    pub reach: Reach,
    /// Where it may read the Secrets in which Cluster API keeps kubeconfigs.
    pub kubeconfigs: Reach,
    /// Whether the nodes of the management cluster itself are the ones that join and leave.
    pub is_workload_cluster: bool,
}

/// Where a right holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In every namespace.
    Everywhere,
    /// In these; none at all means nowhere.
    Only(BTreeSet<String>),
}

impl Default for Rights {
    fn default() -> Self {
        Self {
            home: name::SYSTEM_NAMESPACE.to_owned(),
            providers: crate::provider::named("k0smotron").into_iter().collect(),
            reach: Reach::Everywhere,
            kubeconfigs: Reach::Only(BTreeSet::new()),
            is_workload_cluster: false,
        }
    }
}

impl Rights {
    /// What the operator may do in the management cluster, Secrets excepted: roles first, then
    /// their bindings. Cannot fail.
    pub fn management(&self) -> Vec<Value> {
        let provider_rules = self.providers.iter().flat_map(|it| it.resources.iter());
        let own = cluster_role(
            name::CONTROLLER,
            &rules(Scope::Management, provider_rules.copied()),
        );
        let wide_name = format!("{}-definitions", name::CONTROLLER);
        let wide = cluster_role(
            &wide_name,
            &rules(Scope::ManagementWide, std::iter::empty()),
        );
        let others = aggregate();
        let others_name = text(&others, "/metadata/name").to_owned();
        let mut all = vec![own, wide, others];
        all.extend(self.bindings(name::CONTROLLER, &self.reach));
        all.extend(self.bindings(&wide_name, &Reach::Everywhere));
        all.extend(self.bindings(&others_name, &self.reach));
        if self.is_workload_cluster {
            all.extend(workload_role());
            all.extend(self.bindings(&workload_name(), &Reach::Everywhere));
        }
        all
    }

    /// The right to read the Secrets in which Cluster API keeps kubeconfigs: a Role and its
    /// binding in each namespace, or one for all namespaces. Nothing where it may read none.
    pub fn kubeconfigs(&self) -> Vec<Value> {
        let role = format!("{}-kubeconfigs", name::CONTROLLER);
        let rules = secret_rules();
        match &self.kubeconfigs {
            Reach::Everywhere => {
                let mut all = vec![cluster_role(&role, &rules)];
                all.extend(self.bindings(&role, &Reach::Everywhere));
                all
            }
            Reach::Only(namespaces) => namespaces
                .iter()
                .flat_map(|namespace| {
                    let made = json!({
                        "apiVersion": RBAC,
                        "kind": "Role",
                        "metadata": metadata(&role, Some(namespace)),
                        "rules": rules,
                    });
                    [made, self.binding(("Role", &role), Some(namespace))]
                })
                .collect(),
        }
    }

    /// Binds a ClusterRole to the operator's ServiceAccount.
    fn bindings(&self, role: &str, reach: &Reach) -> Vec<Value> {
        match reach {
            Reach::Everywhere => vec![self.binding(("ClusterRole", role), None)],
            Reach::Only(namespaces) => namespaces
                .iter()
                .map(|namespace| self.binding(("ClusterRole", role), Some(namespace)))
                .collect(),
        }
    }

    fn binding(&self, (kind, role): (&str, &str), namespace: Option<&str>) -> Value {
        let binding = match namespace {
            Some(_) => "RoleBinding",
            None => "ClusterRoleBinding",
        };
        json!({
            "apiVersion": RBAC,
            "kind": binding,
            "metadata": metadata(role, namespace),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{
                "kind": "ServiceAccount",
                "name": name::CONTROLLER,
                "namespace": self.home,
            }],
        })
    }
}

/// What the operator needs in a workload cluster, for whoever the kubeconfig names: the
/// documents to apply there.
pub fn workload(user: &str) -> Vec<Value> {
    let mut all = workload_role();
    all.push(json!({
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": metadata(&workload_name(), None),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": workload_name(),
        },
        "subjects": [{
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "User",
            "name": user,
        }],
    }));
    all
}

fn workload_name() -> String {
    format!("{}-workload", name::CONTROLLER)
}

fn workload_role() -> Vec<Value> {
    let rules = rules(Scope::Workload, std::iter::empty());
    vec![cluster_role(&workload_name(), &rules)]
}

/// A ClusterRole without rules of its own: Kubernetes fills it from those with the label.
fn aggregate() -> Value {
    json!({
        "apiVersion": RBAC,
        "kind": "ClusterRole",
        "metadata": metadata(&format!("{}-providers", name::CONTROLLER), None),
        "aggregationRule": {
            "clusterRoleSelectors": [{"matchLabels": {name::AGGREGATE_LABEL: "true"}}],
        },
    })
}

fn cluster_role(role: &str, rules: &[Value]) -> Value {
    json!({
        "apiVersion": RBAC,
        "kind": "ClusterRole",
        "metadata": metadata(role, None),
        "rules": rules,
    })
}

/// The rules of one scope, Secrets excepted. The row that stands for providers' objects becomes
/// one rule for each of their groups.
fn rules(
    scope: Scope,
    providers: impl Iterator<Item = (&'static str, &'static str)>,
) -> Vec<Value> {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (group, plural) in providers {
        groups.entry(group).or_default().insert(plural);
    }
    let rows = PERMISSIONS.iter().filter(|row| row.scope == scope);
    rows.filter(|row| !is_secret(row))
        .flat_map(|row| {
            if row.resource == PROVIDER {
                let of_group =
                    |(group, plurals): (&&str, _)| rule(group, plurals, row.verbs);
                groups.iter().map(of_group).collect()
            } else {
                vec![rule(row.group, &BTreeSet::from([row.resource]), row.verbs)]
            }
        })
        .collect()
}

fn secret_rules() -> Vec<Value> {
    PERMISSIONS
        .iter()
        .filter(|row| is_secret(row))
        .map(|row| rule(row.group, &BTreeSet::from([row.resource]), row.verbs))
        .collect()
}

fn is_secret(row: &Permission) -> bool {
    (row.group, row.resource) == ("", "secrets")
}

fn rule(group: &str, resources: &BTreeSet<&str>, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn metadata(name: &str, namespace: Option<&str>) -> Value {
    let labels = name::controller_labels();
    match namespace {
        Some(namespace) => {
            json!({"name": name, "namespace": namespace, "labels": labels})
        }
        None => json!({"name": name, "labels": labels}),
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
