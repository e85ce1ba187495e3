//! The operator's permissions: the shipped roles and the policies that limit them, and nothing else.

use std::collections::BTreeSet;

use fivespot_api::name;
use fivespot_install::capacity_target::CapacityTarget;
use fivespot_install::role::{NamespaceScope, Rights};
use serde_json::{Value, json};

use crate::Providers;

/// The operator's user name.
pub(crate) const OPERATOR: &str = "system:serviceaccount:5spot-system:5spot-controller";
/// The groups of its token.
pub(crate) const GROUPS: [&str; 3] = [
    "system:serviceaccounts",
    "system:serviceaccounts:5spot-system",
    "system:authenticated",
];

/// Its namespace and its ServiceAccount, to which its roles are bound.
pub(crate) fn account() -> [Value; 2] {
    let home = Rights::default().namespace;
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {
                "name": fivespot_api::name::CONTROLLER,
                "namespace": fivespot_api::name::SYSTEM_NAMESPACE,
            },
        }),
    ]
}

/// For an operator that handles every namespace of a cluster, which is also its workload
/// cluster.
pub(crate) fn cluster_wide() -> Vec<Value> {
    all(&Rights {
        kubeconfigs: NamespaceScope::All,
        is_workload_cluster: true,
        capacity_targets: capacity_targets(),
        ..Rights::default()
    })
}

/// For an operator that handles these namespaces, and accesses Nodes by kubeconfigs.
pub(crate) fn in_namespaces(namespaces: &[String], providers: Providers) -> Vec<Value> {
    let reach = NamespaceScope::Only(namespaces.iter().cloned().collect::<BTreeSet<_>>());
    all(&Rights {
        providers: providers.of_roles(),
        namespaces: reach.clone(),
        capacity_targets: capacity_targets(),
        kubeconfigs: reach,
        ..Rights::default()
    })
}

/// The kinds of the targets of ScheduledCapacities in tests.
fn capacity_targets() -> BTreeSet<CapacityTarget> {
    let kinds = [
        "clusterqueues.kueue.x-k8s.io",
        "clusters.cluster.x-k8s.io",
        "cronjobs.batch",
        "deployments.apps/scale",
        "horizontalpodautoscalers.autoscaling",
        "machinedeployments.cluster.x-k8s.io/scale",
        "nodepools.karpenter.sh",
        "resourcequotas/template",
        "scaledobjects.keda.sh",
        "scheduledmachinesets.5spot.finos.org/scale",
        "statefulsets.apps/scale",
    ];
    kinds.iter().filter_map(|kind| kind.parse().ok()).collect()
}

/// The rights of both controllers, for one account: the operator of a test runs both.
fn all(rights: &Rights) -> Vec<Value> {
    let mut all = rights.limits();
    all.extend(rights.management());
    all.extend(rights.kubeconfigs());
    for binding in &mut all {
        let subjects = binding.get_mut("subjects");
        for subject in subjects.and_then(Value::as_array_mut).into_iter().flatten() {
            if subject["name"] == name::CAPACITY_CONTROLLER {
                subject["name"] = name::CONTROLLER.into();
            }
        }
    }
    all
}
