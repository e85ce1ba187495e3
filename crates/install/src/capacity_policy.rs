//! The policy about who may write a ScheduledCapacity: the operator changes its target for them,
//! with its own rights.

use std::collections::{BTreeMap, BTreeSet};

use fivespot_api::name;
use fivespot_api::vap::capacity_target::{
    CLUSTER_SCOPED, binding_spec, policy_name, spec,
};
use serde_json::{Value, json};

use crate::capacity_target::CapacityTarget;
use crate::role::{NamespaceScope, Rights, metadata};

const VERSION: &str = "admissionregistration.k8s.io/v1";

/// The ConfigMap with the kinds that may be targets, of an operator in this namespace.
pub fn kinds_in(namespace: &str) -> String {
    match namespace {
        name::SYSTEM_NAMESPACE => policy_name(),
        other => format!("{}.{other}", policy_name()),
    }
}

impl Rights {
    /// The ConfigMap with the kinds that may be targets, for a cluster without policies: the webhook
    /// reads it. `None` if there are none.
    pub fn capacity_kinds(&self) -> Option<Value> {
        self.capacity_policy().pop()
    }

    /// The policy, its binding, and the ConfigMap with the kinds that may be targets. Empty if there
    /// are none, so that the operator may not change anything.
    pub fn capacity_policy(&self) -> Vec<Value> {
        if !self.is_capacity_apart() {
            return Vec::new();
        }
        let kinds = kinds(&self.capacity_targets);
        let mut all = self.policy_with(json!(kinds));
        if let (NamespaceScope::Only(namespaces), Some(policy)) =
            (&self.namespaces, all.first_mut())
        {
            policy["spec"]["matchConstraints"]["namespaceSelector"] = json!({
                "matchExpressions": [{
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": namespaces,
                }],
            });
        }
        self.named_after_namespace(all)
    }

    /// The same for every namespace, with the data of the ConfigMap, under the names for the
    /// operator's own namespace.
    pub(crate) fn policy_with(&self, kinds: Value) -> Vec<Value> {
        let name = policy_name();
        let object = |version: &str, kind: &str, rest: Value| {
            let mut object = json!({
                "apiVersion": version,
                "kind": kind,
                "metadata": metadata(&name, None),
            });
            if let (Some(object), Value::Object(rest)) = (object.as_object_mut(), rest) {
                object.extend(rest);
            }
            object
        };
        let mut data = object("v1", "ConfigMap", json!({"data": kinds}));
        data["metadata"] = metadata(&name, Some(&self.namespace));
        let binding = json!({"spec": binding_spec(&name, &self.namespace)});
        vec![
            object(
                VERSION,
                "ValidatingAdmissionPolicy",
                json!({"spec": spec()}),
            ),
            object(VERSION, "ValidatingAdmissionPolicyBinding", binding),
            data,
        ]
    }
}

/// The plurals by kind and group, and which kinds have no namespace.
fn kinds(targets: &BTreeSet<CapacityTarget>) -> BTreeMap<String, String> {
    let pair = |it: &CapacityTarget| (it.kind_and_group(), it.plural.clone());
    let mut kinds: BTreeMap<String, String> = targets.iter().map(pair).collect();
    let clustered = targets.iter().filter(|it| it.is_cluster_scoped);
    let clustered: BTreeSet<String> =
        clustered.map(CapacityTarget::kind_and_group).collect();
    let clustered = clustered.into_iter().collect::<Vec<_>>().join(",");
    kinds.insert(CLUSTER_SCOPED.to_owned(), clustered);
    kinds
}
