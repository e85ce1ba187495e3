//! Roles and bindings, generated from the [table of
//! permissions](crate::permission::PERMISSIONS).

mod limit;

use std::collections::{BTreeMap, BTreeSet};

use fivespot_api::name;
use serde::Serialize;
use serde_json::{Value, json};

use crate::capacity_target::{Access, CapacityTarget};
use crate::controller::{self, operator};
use crate::permission::{CAPACITY_STATUS, PERMISSIONS, PROVIDER, Permission, Scope};
use crate::provider::Provider;

/// The operator's rights in one management cluster: to which resources, and where.
///
/// The default is what is shipped: every namespace, the objects of k0smotron, no Secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The namespace of the operator and of its ServiceAccount.
    pub namespace: String,
    /// The providers whose objects it may create and remove.
    pub providers: Vec<&'static Provider>,
    /// Where it may act on ScheduledMachines and on the objects that they create.
    pub namespaces: NamespaceScope,
    /// Where it may read every Secret, including those in which Cluster API stores kubeconfigs.
    pub kubeconfigs: NamespaceScope,
    /// The Clusters, by namespace and name, for which it may also read only the kubeconfig
    /// Secret.
    pub clusters: BTreeSet<(String, String)>,
    /// Whether the machines' Nodes are those of the management cluster itself.
    pub is_workload_cluster: bool,
    /// The kinds whose objects ScheduledCapacities may change.
    pub capacity_targets: BTreeSet<CapacityTarget>,
    /// The kinds of schedules of other providers that it may follow: plurals of the group
    /// [`name::SPOT_GROUP`].
    pub schedule_providers: BTreeSet<String>,
}

/// Where a right applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceScope {
    /// In every namespace.
    All,
    /// In these namespaces; empty means nowhere.
    Only(BTreeSet<String>),
}

impl Default for Rights {
    fn default() -> Self {
        Self {
            namespace: name::SYSTEM_NAMESPACE.to_owned(),
            providers: crate::provider::named("k0smotron").into_iter().collect(),
            namespaces: NamespaceScope::All,
            kubeconfigs: NamespaceScope::Only(BTreeSet::new()),
            clusters: BTreeSet::new(),
            is_workload_cluster: false,
            capacity_targets: BTreeSet::new(),
            schedule_providers: BTreeSet::new(),
        }
    }
}

impl Rights {
    /// The operator's roles in the management cluster, except those for Secrets, each with its
    /// bindings. Their names contain the namespace if it is not the operator's own one, so that
    /// operators in several namespaces do not share a role or replace each other's bindings.
    /// Cannot fail.
    pub fn management(&self) -> Vec<Value> {
        self.named_after_namespace(self.management_roles())
    }

    fn management_roles(&self) -> Vec<Value> {
        let is_apart = self.is_capacity_apart();
        let mut all = vec![controller_role(is_apart)];
        all.extend(self.bindings(name::CONTROLLER, &self.namespaces));
        for provider in &self.providers {
            all.push(provider_role(provider));
            all.extend(self.bindings(&provider_role_name(provider), &self.namespaces));
        }
        all.push(aggregated_role());
        all.extend(self.bindings(&aggregated_role_name(), &self.namespaces));
        all.push(crd_role());
        all.push(self.shared_binding(("ClusterRole", &crd_role_name()), None));
        all.push(class_role());
        all.extend(self.bindings(&class_role_name(), &NamespaceScope::All));
        if is_apart {
            all.extend(self.capacity_roles(target_rules(&self.capacity_targets).into()));
        }
        if !self.schedule_providers.is_empty() {
            all.push(schedule_role(&self.schedule_providers));
            let name = schedule_role_name();
            let role = ("ClusterRole", name.as_str());
            all.extend(each(&self.namespaces, |it| self.shared_binding(role, it)));
        }
        if self.is_workload_cluster {
            if self.namespace != name::SYSTEM_NAMESPACE {
                all.push(controller::system_namespace());
            }
            all.extend(self.management_nodes());
        }
        all.extend(self.in_operator_namespace());
        all
    }

    /// Whether capacities have a controller with an identity of its own: where there are targets
    /// that it may write.
    pub fn is_capacity_apart(&self) -> bool {
        !self.capacity_targets.is_empty()
    }

    /// The rights of the controller of capacities, with their bindings. `targets` are the rules
    /// about the objects that it may change.
    pub(crate) fn capacity_roles(&self, targets: Value) -> Vec<Value> {
        let own = name::CAPACITY_CONTROLLER;
        let mut role_of_targets = cluster_role(&target_role_name(), &[]);
        role_of_targets["rules"] = targets;
        let roles = [
            (own.to_owned(), cluster_role(own, &rules(Scope::Capacity))),
            (target_role_name(), role_of_targets),
        ];
        let account = [self.account_of(own)];
        let with_bindings = roles.into_iter().flat_map(|(name, role)| {
            let bindings = each(&self.namespaces, |namespace| {
                binding(("ClusterRole", &name), namespace, &account)
            });
            std::iter::once(role).chain(bindings).collect::<Vec<_>>()
        });
        with_bindings.collect()
    }

    /// The right to access the Nodes of the management cluster itself, and to configure the
    /// agents on them in [`name::SYSTEM_NAMESPACE`], which must exist.
    pub(crate) fn management_nodes(&self) -> Vec<Value> {
        workload_rights(&self.account_of(name::CONTROLLER))
    }

    /// The operator's rights in its own namespace. Empty if the table has no such row.
    pub(crate) fn in_operator_namespace(&self) -> Vec<Value> {
        let rules = rules(Scope::OperatorNamespace);
        if rules.is_empty() {
            return Vec::new();
        }
        // A separate name, because the other role may be bound in the same namespace.
        let name = format!("{}-leases", name::CONTROLLER);
        let role = role_in(&self.namespace, &name, &rules);
        let binding = self.shared_binding(("Role", &name), Some(&self.namespace));
        vec![role, binding]
    }

    /// The right to read the Secrets in which Cluster API stores kubeconfigs. For each Cluster
    /// a Role and its binding with the name of its Secret. For every Secret a Role in each
    /// namespace, or one for all namespaces. Empty if it may not read any. The names are as for
    /// [`management`](Self::management).
    pub fn kubeconfigs(&self) -> Vec<Value> {
        self.named_after_namespace(self.kubeconfig_roles())
    }

    /// The same under the names for the operator's own namespace.
    pub(crate) fn kubeconfig_roles(&self) -> Vec<Value> {
        let role = format!("{}-kubeconfigs", name::CONTROLLER);
        let rules = secret_rules();
        let mut all = match &self.kubeconfigs {
            NamespaceScope::All => {
                let mut all = vec![cluster_role(&role, &rules)];
                all.extend(self.bindings(&role, &NamespaceScope::All));
                all
            }
            NamespaceScope::Only(namespaces) => namespaces
                .iter()
                .flat_map(|namespace| {
                    let binding = self.binding(("Role", &role), Some(namespace));
                    [role_in(namespace, &role, &rules), binding]
                })
                .collect(),
        };
        for (namespace, cluster) in &self.clusters {
            all.extend(self.kubeconfig(namespace, cluster));
        }
        all
    }

    /// The right to read the one Secret with the kubeconfig of a Cluster.
    pub(crate) fn kubeconfig(&self, namespace: &str, cluster: &str) -> [Value; 2] {
        let secret = name::kubeconfig_secret(cluster);
        let role = format!("{}-{secret}", name::CONTROLLER);
        let mut rules = secret_rules();
        for rule in &mut rules {
            rule["resourceNames"] = json!([secret]);
        }
        let binding = self.binding(("Role", &role), Some(namespace));
        [role_in(namespace, &role, &rules), binding]
    }

    /// Adds the namespace, if it is not the operator's own one, to the names of the operator's roles,
    /// policies and bindings. A namespace has no dot, so that no two names become equal.
    pub(crate) fn named_after_namespace(&self, mut documents: Vec<Value>) -> Vec<Value> {
        if self.namespace == name::SYSTEM_NAMESPACE {
            return documents;
        }
        for document in &mut documents {
            if document["kind"] == "Namespace" {
                continue;
            }
            let pointers = [
                "/metadata/name",
                "/roleRef/name",
                "/spec/policyName",
                "/spec/paramRef/name",
            ];
            for pointer in pointers {
                if let Some(Value::String(name)) = document.pointer_mut(pointer) {
                    name.push('.');
                    name.push_str(&self.namespace);
                }
            }
        }
        documents
    }

    /// Binds a ClusterRole to the operator's ServiceAccount.
    pub(crate) fn bindings(&self, role: &str, reach: &NamespaceScope) -> Vec<Value> {
        each(reach, |namespace| {
            self.binding(("ClusterRole", role), namespace)
        })
    }

    fn binding(&self, role: (&str, &str), namespace: Option<&str>) -> Value {
        binding(role, namespace, &[self.account_of(name::CONTROLLER)])
    }

    /// Binds a role to the operator's ServiceAccount, and to that of the controller of capacities
    /// if there is one.
    fn shared_binding(&self, role: (&str, &str), namespace: Option<&str>) -> Value {
        let mut accounts = vec![self.account_of(name::CONTROLLER)];
        if self.is_capacity_apart() {
            accounts.push(self.account_of(name::CAPACITY_CONTROLLER));
        }
        binding(role, namespace, &accounts)
    }

    /// A ServiceAccount in the operator's namespace, as the subject of a binding.
    pub(crate) fn account_of(&self, name: &str) -> Value {
        operator(&self.namespace).subject(name)
    }
}

/// A binding for the cluster, or one in each namespace.
fn each(reach: &NamespaceScope, binding: impl Fn(Option<&str>) -> Value) -> Vec<Value> {
    match reach {
        NamespaceScope::All => vec![binding(None)],
        NamespaceScope::Only(namespaces) => {
            namespaces.iter().map(|it| binding(Some(it))).collect()
        }
    }
}

/// The operator's rights in a workload cluster, for the user of the kubeconfig: the documents
/// to apply there.
pub fn workload(user: &str) -> Vec<Value> {
    let mut all = vec![controller::system_namespace()];
    all.extend(workload_rights(&json!({
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "User",
        "name": user,
    })));
    all
}

/// The roles in a workload cluster, bound to `subject`: cluster-wide for Nodes and pods, in one
/// namespace for the configurations of agents.
fn workload_rights(subject: &Value) -> Vec<Value> {
    let (name, system) = (workload_role_name(), name::SYSTEM_NAMESPACE);
    let subjects = std::slice::from_ref(subject);
    vec![
        cluster_role(&name, &rules(Scope::Workload)),
        binding(("ClusterRole", &name), None, subjects),
        role_in(system, &name, &rules(Scope::WorkloadSystem)),
        binding(("Role", &name), Some(system), subjects),
    ]
}

/// Binds a role of that kind to `subjects`, in a namespace or in the whole cluster.
fn binding(role: (&str, &str), namespace: Option<&str>, subjects: &[Value]) -> Value {
    let component = operator(namespace.unwrap_or_default());
    let kind = match namespace {
        Some(_) => "RoleBinding",
        None => "ClusterRoleBinding",
    };
    component.binding(kind, role, subjects)
}

/// The operator's rights on its own objects and those of Cluster API, for every provider. Without
/// those to write ScheduledCapacities if another controller does.
pub(crate) fn controller_role(is_capacity_apart: bool) -> Value {
    let mut rules = rules(Scope::Management);
    let (group, resource) = CAPACITY_STATUS;
    let of_capacity = (json!([group]), json!([resource]));
    rules.retain(|rule| {
        let of_rule = (&rule["apiGroups"], &rule["resources"]);
        !is_capacity_apart || of_rule != (&of_capacity.0, &of_capacity.1)
    });
    cluster_role(name::CONTROLLER, &rules)
}

/// The operator's rights on the objects of one provider.
pub(crate) fn provider_role(provider: &Provider) -> Value {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (group, plural) in provider.resources {
        groups.entry(group).or_default().insert(plural);
    }
    let rows = PERMISSIONS.iter().filter(|row| row.resource == PROVIDER);
    let rules: Vec<Value> = rows
        .flat_map(|row| {
            let of_group =
                |(group, plurals): (&&str, _)| rule(group, plurals, &row.verbs);
            groups.iter().map(of_group).collect::<Vec<Value>>()
        })
        .collect();
    cluster_role(&provider_role_name(provider), &rules)
}

/// A ClusterRole without rules of its own: Kubernetes aggregates the ClusterRoles with the
/// label.
pub(crate) fn aggregated_role() -> Value {
    let selector = json!({"matchLabels": {name::AGGREGATE_LABEL: "true"}});
    let fields = json!({"aggregationRule": {"clusterRoleSelectors": [selector]}});
    operator("").object("ClusterRole", &aggregated_role_name(), fields)
}

pub(crate) fn crd_role() -> Value {
    cluster_role(&crd_role_name(), &rules(Scope::ManagementClusterWide))
}

/// The right to read what machines with a class are made from.
pub(crate) fn class_role() -> Value {
    cluster_role(&class_role_name(), &rules(Scope::Classes))
}

/// The rules about the targets of ScheduledCapacities.
fn target_rules(targets: &BTreeSet<CapacityTarget>) -> Vec<Value> {
    let rules = targets.iter().flat_map(|target| {
        let CapacityTarget {
            group,
            plural,
            access,
            ..
        } = target;
        let read = ["get", "list", "watch"];
        let of = |resource: &str, verbs: &[&str]| {
            rule(group, &BTreeSet::from([resource]), verbs)
        };
        match access {
            Access::Patch => vec![of(plural, &[&read[..], &["patch"]].concat())],
            Access::Template => {
                vec![of(plural, &[&read[..], &["create", "patch"]].concat())]
            }
            Access::Scale => {
                vec![
                    of(plural, &read),
                    of(&format!("{plural}/scale"), &["patch"]),
                ]
            }
        }
    });
    rules.collect()
}

/// The operator's rights on the schedules of other providers, which it never writes.
fn schedule_role(plurals: &BTreeSet<String>) -> Value {
    let resources = plurals.iter().map(String::as_str).collect();
    let read = rule(name::SPOT_GROUP, &resources, &["get", "list", "watch"]);
    cluster_role(&schedule_role_name(), &[read])
}

fn schedule_role_name() -> String {
    format!("{}-schedules", name::CONTROLLER)
}

fn target_role_name() -> String {
    format!("{}-targets", name::CAPACITY_CONTROLLER)
}

pub(crate) fn provider_role_name(provider: &Provider) -> String {
    format!("{}-{}", name::CONTROLLER, provider.name)
}

pub(crate) fn aggregated_role_name() -> String {
    format!("{}-providers", name::CONTROLLER)
}

pub(crate) fn class_role_name() -> String {
    format!("{}-classes", name::CONTROLLER)
}

pub(crate) fn crd_role_name() -> String {
    format!("{}-definitions", name::CONTROLLER)
}

fn workload_role_name() -> String {
    format!("{}-workload", name::CONTROLLER)
}

fn role_in(namespace: &str, role: &str, rules: &[Value]) -> Value {
    operator(namespace).role("Role", role, rules)
}

fn cluster_role(role: &str, rules: &[Value]) -> Value {
    operator("").role("ClusterRole", role, rules)
}

/// The rules of one scope, without those that depend on the installation: Secrets and
/// providers' objects.
fn rules(scope: Scope) -> Vec<Value> {
    PERMISSIONS
        .iter()
        .filter(|row| row.scope == scope && !is_secret(row) && row.resource != PROVIDER)
        .map(rule_of)
        .collect()
}

fn secret_rules() -> Vec<Value> {
    PERMISSIONS
        .iter()
        .filter(|row| is_secret(row))
        .map(rule_of)
        .collect()
}

fn is_secret(row: &Permission) -> bool {
    (row.scope, &*row.group, &*row.resource) == (Scope::Management, "", "secrets")
}

/// The rules of a scope whose rows all name their objects.
pub(crate) fn named_rules(scope: Scope) -> Vec<Value> {
    let rows = PERMISSIONS.iter().filter(|row| row.scope == scope);
    let rules = rows.map(|row| {
        let mut rule = rule_of(row);
        rule["resourceNames"] = row.names.as_slice().into();
        rule
    });
    rules.collect()
}

/// The same about objects of every name.
pub(crate) fn unnamed_rules(scope: Scope) -> Vec<Value> {
    let rows = PERMISSIONS.iter().filter(|row| row.scope == scope);
    rows.map(rule_of).collect()
}

fn rule_of(row: &Permission) -> Value {
    rule(&row.group, &BTreeSet::from([&*row.resource]), &row.verbs)
}

fn rule(group: &str, resources: &BTreeSet<&str>, verbs: &[impl Serialize]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

#[cfg(test)]
mod tests;
