//! What the controller and the webhook ask of the API servers: the table from which roles are made.

use std::fmt::Write as _;

use fivespot_api::manifest::PAGE_HEADER;
use fivespot_api::name;

/// Where a permission is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// In the management cluster, in each namespace with ScheduledMachines.
    Management,
    /// In the management cluster, cluster-wide.
    ManagementWide,
    /// In the management cluster, in the operator's own namespace.
    Home,
    /// In each workload cluster, cluster-wide, as whoever the kubeconfig names.
    Workload,
    /// In each workload cluster, in the namespace of the agents' configurations, as the same.
    WorkloadSystem,
    /// By the webhook, in the operator's own namespace.
    WebhookHome,
    /// By the webhook, cluster-wide.
    WebhookWide,
}

/// One rule of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// Where.
    pub scope: Scope,
    /// The API group; empty is the core group.
    pub group: &'static str,
    /// The resource, or resource and subresource. [`PROVIDER`] stands for each kind of
    /// bootstrap and infrastructure object that is in use.
    pub resource: &'static str,
    /// The only objects that may be dealt with, by name; none means all.
    pub names: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// What for.
    pub why: &'static str,
}

/// Stands for the kinds of bootstrap and infrastructure objects, which the installer chooses.
pub const PROVIDER: &str = "<provider>";

const WATCHED: &[&str] = &["get", "list", "watch"];

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
        why,
    }
}

impl Permission {
    const fn only(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }
}

/// Everything that the controller and the webhook do, and nothing else.
pub const PERMISSIONS: &[Permission] = &[
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledmachines"),
        &["get", "list", "watch", "patch"],
        "read what is asked for; put the finalizer on and take it off; switch a schedule off",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledmachines/status"),
        &["patch"],
        "say what was seen and decided",
    ),
    permission(
        Scope::Management,
        ("5spot.finos.org", "scheduledmachines/finalizers"),
        &["update"],
        "set owner references that block a deletion in the foreground",
    ),
    permission(
        Scope::Management,
        ("cluster.x-k8s.io", "clusters"),
        WATCHED,
        "know whether Machines can join, and whether the Cluster is paused",
    ),
    permission(
        Scope::Management,
        ("cluster.x-k8s.io", "machines"),
        &["get", "list", "watch", "create", "patch", "delete"],
        "create and remove the Machine, keep its timeouts, and note a reclaim on it",
    ),
    permission(
        Scope::Management,
        (PROVIDER, PROVIDER),
        &["get", "list", "watch", "create", "delete"],
        "create what the Machine is made from, and remove what is left without one",
    ),
    permission(
        Scope::Management,
        ("", "secrets"),
        WATCHED,
        "read the kubeconfig Secrets that Cluster API keeps; of a Cluster that is given by name its own alone, in a namespace that is given every Secret",
    ),
    permission(
        Scope::Management,
        ("events.k8s.io", "events"),
        &["create"],
        "publish one event per transition",
    ),
    permission(
        Scope::Home,
        ("coordination.k8s.io", "leases"),
        &["get", "list", "watch", "create", "update", "delete"],
        "agree with other instances on who acts, by leader election or by shards",
    ),
    permission(
        Scope::ManagementWide,
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        &["list", "watch"],
        "notice kinds that appear",
    ),
    permission(
        Scope::Workload,
        ("", "nodes"),
        &["get", "list", "watch", "patch"],
        "see whether the Node is ready; cordon it and let pods in again; taint it; bring the agent",
    ),
    permission(
        Scope::Workload,
        ("", "pods"),
        &["list", "watch", "delete"],
        "see which pods are still on a Node that is being drained; empty a reclaimed host at once",
    ),
    permission(
        Scope::Workload,
        ("", "pods/eviction"),
        &["create"],
        "evict them, as disruption budgets allow",
    ),
    permission(
        Scope::WorkloadSystem,
        ("", "configmaps"),
        &["get", "list", "watch", "create", "patch", "delete"],
        "configure the agent on a Node",
    ),
    permission(
        Scope::WebhookHome,
        ("", "secrets"),
        &["get", "list", "watch", "update"],
        "keep the authorities and the serving certificate in a Secret that the manifests bring",
    )
    .only(&[name::WEBHOOK]),
    permission(
        Scope::WebhookWide,
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
        ),
        &["get", "list", "watch", "patch"],
        "have the authorities trusted by the API servers",
    )
    .only(&[name::WEBHOOK_CONFIGURATION]),
];

/// The sections of the reference page.
const TITLES: &[(Scope, &str)] = &[
    (
        Scope::Management,
        "In the management cluster, in each namespace with ScheduledMachines",
    ),
    (
        Scope::ManagementWide,
        "In the management cluster, cluster-wide",
    ),
    (
        Scope::Home,
        "In the management cluster, in the operator's own namespace",
    ),
    (
        Scope::Workload,
        "In each workload cluster, cluster-wide, as whoever the kubeconfig names",
    ),
    (
        Scope::WorkloadSystem,
        "In each workload cluster, in the namespace `5spot-system`, as whoever the kubeconfig names",
    ),
    (
        Scope::WebhookHome,
        "Of the webhook, in the operator's own namespace",
    ),
    (Scope::WebhookWide, "Of the webhook, cluster-wide"),
];

/// The reference page: every row, with what it is for. Cannot fail.
pub(crate) fn page() -> String {
    let mut page = format!(
        "{PAGE_HEADER}# Permissions\n\n\
         What the operator asks of the API servers, and nothing else. `5spot generate rbac` makes \
         roles of it.\n"
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
            "\n## {title}\n\n| group | resource | verbs | what for |\n|---|---|---|---|\n"
        );
        for row in rows {
            let (group, resource) = match (row.group, row.resource) {
                (PROVIDER, PROVIDER) => {
                    ("of the provider", "each kind that a machine is made from")
                }
                ("", resource) => ("core", resource),
                names => names,
            };
            let named = match row.names {
                [] => String::new(),
                names => format!(" `{}` alone", names.join("`, `")),
            };
            let (verbs, why) = (row.verbs.join(", "), row.why);
            let _ = writeln!(page, "| {group} | {resource}{named} | {verbs} | {why} |");
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_asked_for_twice_or_by_wildcard() {
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
