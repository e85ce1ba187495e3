//! The permissions of the controller and the webhook: the table from which roles are generated,
//! `permission/table.yaml`.

use std::fmt::Write as _;
use std::sync::LazyLock;

use fivespot_api::manifest::PAGE_HEADER;
use serde::Deserialize;

/// Where a permission is needed.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
pub enum Scope {
    /// In the management cluster, in each namespace with ScheduledMachines.
    #[default]
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
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Permission {
    /// Where it is needed: in the table, that of its section.
    #[serde(skip)]
    pub scope: Scope,
    /// The API group; empty is the core group.
    pub group: String,
    /// The resource, or resource and subresource. [`PROVIDER`] represents each kind of
    /// bootstrap and infrastructure object in use.
    pub resource: String,
    /// The names of the only objects that it allows; empty allows all.
    #[serde(default)]
    pub names: Vec<String>,
    /// The verbs.
    pub verbs: Vec<String>,
    /// What a policy leaves of it in clusters with admission policies.
    pub limit: Option<Limit>,
    /// What it is needed for.
    pub why: String,
}

/// What the operator may write at most, although a role can only allow the whole object, or every
/// object.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// Objects that a set owns, and of others these fields, by their paths, of existing ones.
    OfSetOrFields(Vec<String>),
    /// Objects whose name begins like this.
    NamePrefix(String),
}

/// Represents the kinds of bootstrap and infrastructure objects, which the installer chooses.
pub const PROVIDER: &str = "<provider>";

/// What the operator may write of ScheduledCapacities, unless their controller runs apart.
pub(crate) const CAPACITY_STATUS: (&str, &str) =
    ("5spot.finos.org", "scheduledcapacities/status");

/// The permissions of one scope, which are a section of the reference page.
#[derive(Deserialize)]
struct Section {
    scope: Scope,
    title: String,
    rules: Vec<Permission>,
}

/// All permissions of the controller and the webhook.
pub static PERMISSIONS: LazyLock<Vec<Permission>> = LazyLock::new(|| {
    let of_section = |Section { scope, rules, .. }: Section| {
        let rules = rules.into_iter();
        rules.map(move |rule| Permission { scope, ..rule })
    };
    sections().into_iter().flat_map(of_section).collect()
});

/// The table. Cannot fail: the tests read the same text.
fn sections() -> Vec<Section> {
    serde_saphyr::from_str(include_str!("permission/table.yaml")).unwrap_or_default()
}

/// The reference page: every row, with its reason. Cannot fail.
pub(crate) fn page() -> String {
    let mut page = format!(
        "{PAGE_HEADER}# Permissions\n\n\
         All permissions that the operator uses. `5spot generate rbac` generates roles from this table. What is in \
         brackets after the verbs is a limit that no role can express: from Kubernetes 1.30 on, an admission policy \
         enforces it.\n"
    );
    for Section { title, rules, .. } in sections() {
        let _ = write!(
            page,
            "\n## {title}\n\n| group | resource | verbs | purpose |\n|---|---|---|---|\n"
        );
        for row in rules {
            let (group, resource) = match (&*row.group, &*row.resource) {
                (PROVIDER, PROVIDER) => {
                    ("of the provider", "each bootstrap and infrastructure kind")
                }
                ("", resource) => ("core", resource),
                names => names,
            };
            let named = match row.names.as_slice() {
                [] => String::new(),
                names => format!(" `{}` only", names.join("`, `")),
            };
            let mut verbs = row.verbs.join(", ");
            match &row.limit {
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
    use fivespot_api::name;

    use super::*;

    #[test]
    fn objects_that_are_named_or_limited_have_the_names_of_the_api() {
        let all = |of: fn(&Permission) -> Option<&str>| {
            PERMISSIONS.iter().filter_map(of).collect::<Vec<_>>()
        };
        let named = all(|row| row.names.first().map(String::as_str));
        let kinds = format!("{}-capacity-targets", name::CONTROLLER);
        assert_eq!(named, [name::WEBHOOK, name::WEBHOOK_CONFIGURATION, &*kinds]);
        let prefixes = all(|row| match &row.limit {
            Some(Limit::NamePrefix(prefix)) => Some(prefix),
            _ => None,
        });
        assert_eq!(prefixes, [name::LEASE_PREFIX]);
        let (group, resource) = CAPACITY_STATUS;
        let is_status =
            |row: &&Permission| row.group == group && row.resource == resource;
        assert!(PERMISSIONS.iter().any(|row| is_status(&row)));
    }

    #[test]
    fn no_permission_is_duplicate_or_a_wildcard() {
        for (place, one) in PERMISSIONS.iter().enumerate() {
            let is_same = |other: &Permission| {
                (other.scope, &other.group, &other.resource)
                    == (one.scope, &one.group, &one.resource)
            };
            assert_eq!(PERMISSIONS.iter().position(is_same), Some(place), "{one:?}");
            assert!(!one.verbs.iter().any(|it| it == "*"), "{one:?}");
            assert_ne!(one.resource, "*", "{one:?}");
            assert!(!one.verbs.is_empty() && !one.why.is_empty(), "{one:?}");
        }
    }
}
