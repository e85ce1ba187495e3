//! The permissions of the controller and the webhook: the table from which roles are generated.

use std::fmt::Write as _;

use fivespot_api::manifest::PAGE_HEADER;
use fivespot_api::name;

/// Where a permission is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// In the management cluster, in each namespace with ScheduledMachines.
    Management,
    /// In the management cluster, in each namespace with ScheduledCapacities, for the controller
    /// of capacities where it runs apart.
    Capacity,
    /// In the management cluster, cluster-wide.
    ManagementClusterWide,
    /// In the management cluster, cluster-wide, for machines only.
    Classes,
    /// In the management cluster, in the operator's own namespace.
    OperatorNamespace,
    /// In each workload cluster, cluster-wide, for the user of the kubeconfig.
    Workload,
    /// In each workload cluster, in the namespace of the agents' configurations, for the same
    /// user.
    WorkloadSystem,
    /// For the webhook, in the operator's own namespace.
    WebhookNamespace,
    /// For the webhook, cluster-wide.
    WebhookClusterWide,
    /// For a webhook that asks who may write targets of capacities, in its own namespace.
    WebhookTargetKinds,
    /// For the webhook, cluster-wide, also if it does not manage its certificate.
    WebhookQuestions,
}

/// One rule of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// Where it is needed.
    pub scope: Scope,
    /// The API group; empty is the core group.
    pub group: &'static str,
    /// The resource, or resource and subresource. [`PROVIDER`] represents each kind of
    /// bootstrap and infrastructure object in use.
    pub resource: &'static str,
    /// The names of the only objects that it allows; empty allows all.
    pub names: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// What a policy leaves of it in clusters with admission policies.
    pub limit: Option<Limit>,
    /// What it is needed for.
    pub why: &'static str,
}

/// What the operator may write at most, although a role can only allow the whole object, or every
/// object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Objects that a set owns, and of others these fields, by their paths, of existing ones.
    OfSetOrFields(&'static [&'static str]),
    /// Objects whose name begins like this.
    NamePrefix(&'static str),
}

/// Represents the kinds of bootstrap and infrastructure objects, which the installer chooses.
pub const PROVIDER: &str = "<provider>";

/// What the operator may write of ScheduledCapacities, unless their controller runs apart.
pub(crate) const CAPACITY_STATUS: (&str, &str) =
    ("5spot.finos.org", "scheduledcapacities/status");

const READ_VERBS: &[&str] = &["get", "list", "watch"];

const fn permission(
    scope: Scope,
    (group, resource): (&'static str, &'static str),
    verbs: &'static [&'static str],
    why: &'static str,
) -> Permission {
    Permission {
        scope,
        group,
        resource,
        names: &[],
        verbs,
        limit: None,
        why,
    }
}

impl Permission {
    const fn with_names(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    const fn limited_to(self, limit: Limit) -> Self {
        Self {
            limit: Some(limit),
            ..self
        }
    }
}

/// All permissions of the controller and the webhook.
pub const PERMISSIONS: &[Permission] = &[
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledmachines"),
        &["get", "list", "watch", "create", "patch", "delete"],
        "read the spec; add and remove the finalizer; disable the schedule after a reclaim; create, \
         update and delete the machines of sets",
    )
    .limited_to(Limit::OfSetOrFields(&[
        "metadata.finalizers",
        "spec.enabled",
        "spec.schedule.enabled",
    ])),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledmachines/status"),
        &["patch"],
        "update the status",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledmachines/finalizers"),
        &["update"],
        "set owner references with blockOwnerDeletion",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledmachinesets"),
        READ_VERBS,
        "read how many machines a set has, and what they are like",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledmachinesets/status"),
        &["patch"],
        "update the status of sets",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledmachinesets/finalizers"),
        &["update"],
        "set owner references with blockOwnerDeletion",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduleoverrides"),
        &["get", "list", "watch", "create", "delete"],
        "apply overrides of schedules; stop a machine whose host is reclaimed until it returns; \
         delete overrides that ended an hour ago",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduleoverrides/status"),
        &["patch"],
        "update the status of overrides",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledcapacities"),
        READ_VERBS,
        "report which overrides are of a capacity; report that no kind of targets is permitted",
    ),
    permission(
        Scope::Management,
        CAPACITY_STATUS,
        &["patch"],
        "update the status of capacities; not with --capacity-target, where their controller does",
    ),
    permission(
        Scope::Capacity,
        ("5spot.finos.org", "scheduledcapacities"),
        READ_VERBS,
        "read which values of other objects follow a schedule",
    ),
    permission(
        Scope::Capacity,
        ("5spot.finos.org", "scheduledcapacities/status"),
        &["patch"],
        "update the status of capacities",
    ),
    permission(
        Scope::Capacity,
        ("5spot.finos.org", "scheduledmachines"),
        READ_VERBS,
        "read whether the Node that a capacity names is that of a machine",
    ),
    permission(
        Scope::Capacity,
        ("5spot.finos.org", "scheduleoverrides"),
        READ_VERBS,
        "apply overrides of capacities",
    ),
    permission(
        Scope::Capacity,
        ("5spot.finos.org", "schedulecalendars"),
        READ_VERBS,
        "read the dates of exceptions",
    ),
    permission(
        Scope::Capacity,
        ("spotschedules.5spot.finos.org", "timebasedspotschedules"),
        READ_VERBS,
        "evaluate the schedules that capacities follow",
    ),
    permission(
        Scope::Capacity,
        ("spotschedules.5spot.finos.org", "capitalmarketsschedules"),
        READ_VERBS,
        "evaluate the schedules that capacities follow",
    ),
    permission(
        Scope::Capacity,
        ("events.k8s.io", "events"),
        &["create"],
        "create events",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "schedulecalendars"),
        READ_VERBS,
        "read the dates of exceptions",
    ),
    permission(
        Scope::Management,
        ("spotschedules.5spot.finos.org", "timebasedspotschedules"),
        READ_VERBS,
        "evaluate the schedules that machines follow",
    ),
    permission(
        Scope::Management,
        ("spotschedules.5spot.finos.org", "capitalmarketsschedules"),
        READ_VERBS,
        "evaluate the schedules that machines follow",
    ),
    permission(
        Scope::Management,
        ("spotschedules.5spot.finos.org", "timebasedspotschedules/status"),
        &["patch"],
        "publish whether a schedule is active",
    ),
    permission(
        Scope::Management,
        ("spotschedules.5spot.finos.org", "capitalmarketsschedules/status"),
        &["patch"],
        "publish whether a schedule is active",
    ),
    permission(
        Scope::Management,
        ("cluster.x-k8s.io", "clusters"),
        READ_VERBS,
        "read whether the Cluster is ready, and whether it is paused",
    ),
    permission(
        Scope::Management,
        ("cluster.x-k8s.io", "machines"),
        &["get", "list", "watch", "create", "patch", "delete"],
        "create, update and delete the Machine, and record a reclaim on it",
    ),
    permission(
        Scope::Management,
        (PROVIDER, PROVIDER),
        &["get", "list", "watch", "create", "delete"],
        "create the bootstrap and infrastructure objects, and delete those without a Machine",
    ),
    permission(
        Scope::Management,
        ("", "secrets"),
        READ_VERBS,
        "read the kubeconfig Secrets of Cluster API: only the one Secret for each Cluster of \
         --kubeconfig, every Secret in the namespaces of --namespace",
    ),
    permission(
        Scope::Management,
        ("events.k8s.io", "events"),
        &["create"],
        "create events",
    ),
    permission(
        Scope::OperatorNamespace,
        ("coordination.k8s.io", "leases"),
        &["get", "list", "watch", "create", "update", "delete"],
        "leader election, or sharding; claim hosts of classes for machines",
    )
    // The Leases of replicas are named after their pods, which no role could list.
    .limited_to(Limit::NamePrefix(name::LEASE_PREFIX)),
    permission(
        Scope::ManagementClusterWide,
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        &["list", "watch"],
        "detect newly installed kinds",
    ),
    permission(
        Scope::Classes,
        ("5spot.finos.org", "scheduledmachineclasses"),
        &["get", "list", "watch", "use"],
        "read what machines with a class are made from; create the machines of a set, whose class \
         its author may use",
    ),
    permission(
        Scope::Classes,
        ("", "namespaces"),
        READ_VERBS,
        "read the labels by which a class selects namespaces",
    ),
    permission(
        Scope::Workload,
        ("", "nodes"),
        &["get", "list", "watch", "patch"],
        "read whether the Node is ready; cordon, uncordon and taint it; label it for the agent",
    ),
    permission(
        Scope::Workload,
        ("", "pods"),
        &["list", "watch", "delete"],
        "list the pods of a Node that is drained; delete the pods of a reclaimed host",
    ),
    permission(
        Scope::Workload,
        ("", "pods/eviction"),
        &["create"],
        "evict pods, within their disruption budgets",
    ),
    permission(
        Scope::WorkloadSystem,
        ("", "configmaps"),
        &["get", "list", "watch", "create", "patch", "delete"],
        "configure the agent of a Node",
    ),
    permission(
        Scope::WebhookNamespace,
        ("", "secrets"),
        &["get", "list", "watch", "update"],
        "store the CAs and the serving certificate in the Secret that the manifests create",
    )
    .with_names(&[name::WEBHOOK]),
    permission(
        Scope::WebhookClusterWide,
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
        ),
        &["get", "list", "watch", "patch"],
        "set the caBundle, so that API servers trust the CAs",
    )
    .with_names(&[name::WEBHOOK_CONFIGURATION]),
    permission(
        Scope::WebhookTargetKinds,
        ("", "configmaps"),
        &["get"],
        "read the kinds that a ScheduledCapacity may name as its target",
    )
    .with_names(&["5spot-controller-capacity-targets"]),
    permission(
        Scope::WebhookQuestions,
        ("authorization.k8s.io", "subjectaccessreviews"),
        &["create"],
        "ask whether who writes a machine or a set may use its class, and who writes a \
         ScheduledCapacity may write its target",
    ),
];

/// The sections of the reference page.
const TITLES: &[(Scope, &str)] = &[
    (
        Scope::Management,
        "In the management cluster, in each namespace with ScheduledMachines",
    ),
    (
        Scope::Capacity,
        "With `--capacity-target`, for the controller of capacities, in each namespace with ScheduledCapacities",
    ),
    (
        Scope::ManagementClusterWide,
        "In the management cluster, cluster-wide, also for the controller of capacities",
    ),
    (
        Scope::Classes,
        "In the management cluster, cluster-wide, for the classes of machines",
    ),
    (
        Scope::OperatorNamespace,
        "In the management cluster, in the operator's own namespace, also for the controller of capacities",
    ),
    (
        Scope::Workload,
        "In each workload cluster, cluster-wide, for the user of the kubeconfig",
    ),
    (
        Scope::WorkloadSystem,
        "In each workload cluster, in the namespace `5spot-system`, for the user of the kubeconfig",
    ),
    (
        Scope::WebhookNamespace,
        "For the webhook, in its own namespace",
    ),
    (Scope::WebhookClusterWide, "For the webhook, cluster-wide"),
    (
        Scope::WebhookTargetKinds,
        "For a webhook with `--capacity-targets`, in its own namespace",
    ),
    (
        Scope::WebhookQuestions,
        "For the webhook, cluster-wide, also with cert-manager",
    ),
];

/// The reference page: every row, with its reason. Cannot fail.
pub(crate) fn page() -> String {
    let mut page = format!(
        "{PAGE_HEADER}# Permissions\n\n\
         All permissions that the operator uses. `5spot generate rbac` generates roles from this table. What is in \
         brackets after the verbs is a limit that no role can express: from Kubernetes 1.30 on, an admission policy \
         enforces it.\n"
    );
    for (scope, title) in TITLES {
        let mut rows = PERMISSIONS
            .iter()
            .filter(|row| row.scope == *scope)
            .peekable();
        if rows.peek().is_none() {
            continue;
        }
        let _ = write!(
            page,
            "\n## {title}\n\n| group | resource | verbs | purpose |\n|---|---|---|---|\n"
        );
        for row in rows {
            let (group, resource) = match (row.group, row.resource) {
                (PROVIDER, PROVIDER) => {
                    ("of the provider", "each bootstrap and infrastructure kind")
                }
                ("", resource) => ("core", resource),
                names => names,
            };
            let named = match row.names {
                [] => String::new(),
                names => format!(" `{}` only", names.join("`, `")),
            };
            let mut verbs = row.verbs.join(", ");
            match row.limit {
                Some(Limit::OfSetOrFields(fields)) => {
                    let _ = write!(
                        verbs,
                        " (only `{}`, except of machines of sets)",
                        fields.join("`, `")
                    );
                }
                Some(Limit::NamePrefix(prefix)) => {
                    let _ =
                        write!(verbs, " (writes only names that begin with `{prefix}`)");
                }
                None => {}
            }
            let why = row.why;
            let _ = writeln!(page, "| {group} | {resource}{named} | {verbs} | {why} |");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_permission_is_duplicate_or_a_wildcard() {
        for (place, one) in PERMISSIONS.iter().enumerate() {
            let is_same = |other: &Permission| {
                (other.scope, other.group, other.resource)
                    == (one.scope, one.group, one.resource)
            };
            assert_eq!(PERMISSIONS.iter().position(is_same), Some(place), "{one:?}");
            assert!(!one.verbs.contains(&"*") && one.resource != "*", "{one:?}");
            assert!(!one.verbs.is_empty() && !one.why.is_empty(), "{one:?}");
        }
    }
}
