//! The policy about who may write a ScheduledCapacity: the operator changes its target for them,
//! with its own rights.

use std::collections::{BTreeMap, BTreeSet};

use fivespot_api::name;
use fivespot_api::vap::capacity_target::{
    CLUSTER_SCOPED, binding_spec, policy_name, spec,
};
use serde_json::{Value, json};

use crate::capacity_target::CapacityTarget;
use crate::controller::operator;
use crate::role::Rights;

/// The ConfigMap with the kinds that may be targets, of an operator in this namespace.
pub fn kinds_in(namespace: &str) -> String {
    match namespace {
        name::SYSTEM_NAMESPACE => policy_name(),
        other => format!("{}.{other}", policy_name()),
    }
}

impl Rights {
    /// The ConfigMap with the kinds that may be targets, for a cluster without policies: the webhook
    /// reads it.
    pub fn capacity_kinds(&self) -> Value {
        self.capacity_policy().pop().unwrap_or_default()
    }

    /// The policy, its binding, and the ConfigMap with the kinds that may be targets.
    ///
    /// They are for every namespace, and are there before there is a kind: the operator serves what
    /// was written before it got a kind or a namespace, and cannot tell who has written it.
    pub fn capacity_policy(&self) -> Vec<Value> {
        let kinds = kinds(&self.capacity_targets);
        self.named_after_namespace(self.policy_with(json!(kinds)))
    }

    /// The same with this data of the ConfigMap, under the names for the operator's own namespace.
    pub(crate) fn policy_with(&self, kinds: Value) -> Vec<Value> {
        let name = policy_name();
        let component = operator(&self.namespace);
        let [policy, mut binding] = component.policy(&name, spec());
        binding["spec"] = binding_spec(&name, &self.namespace);
        let kinds = component.object("ConfigMap", &name, json!({"data": kinds}));
        vec![policy, binding, kinds]
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
