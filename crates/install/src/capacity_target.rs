//! The kinds whose objects ScheduledCapacities may change.

use std::str::FromStr;

use fivespot_api::name;
use thiserror::Error;

/// A kind of targets, and how its objects are written.
///
/// # Example
/// ```
/// use fivespot_install::capacity_target::CapacityTarget;
/// let scaled: CapacityTarget = "deployments.apps/scale".parse()?;
/// assert_eq!((scaled.group.as_str(), scaled.plural.as_str()), ("apps", "deployments"));
/// let of_core: CapacityTarget = "resourcequotas".parse()?;
/// assert_eq!((of_core.group.as_str(), of_core.kind.as_str()), ("", "ResourceQuota"));
/// let other: CapacityTarget = "Lane:Cluster=lanes.example.com".parse()?;
/// assert_eq!((other.kind.as_str(), other.is_cluster_scoped), ("Lane", true));
/// # Ok::<(), fivespot_install::capacity_target::InvalidTarget>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapacityTarget {
    /// The API group; empty for the core.
    pub group: String,
    /// The plural of the kind, as in URLs.
    pub plural: String,
    /// The kind.
    pub kind: String,
    /// Whether its objects have no namespace.
    pub is_cluster_scoped: bool,
    /// How its objects are written.
    pub access: Access,
}

/// The groups with what would let a tenant give rights to itself.
pub(crate) const REFUSED_GROUPS: [&str; 3] =
    [name::GROUP, name::SPOT_GROUP, "rbac.authorization.k8s.io"];

/// Kinds that need not be named: plural, group, kind, and whether its objects have no namespace.
const KNOWN: &[(&str, &str, &str, bool)] = &[
    ("clusterqueues", "kueue.x-k8s.io", "ClusterQueue", true),
    ("clusters", "cluster.x-k8s.io", "Cluster", false),
    ("cronjobs", "batch", "CronJob", false),
    ("daemonsets", "apps", "DaemonSet", false),
    ("deployments", "apps", "Deployment", false),
    (
        "horizontalpodautoscalers",
        "autoscaling",
        "HorizontalPodAutoscaler",
        false,
    ),
    ("jobs", "batch", "Job", false),
    (
        "machinedeployments",
        "cluster.x-k8s.io",
        "MachineDeployment",
        false,
    ),
    ("machinepools", "cluster.x-k8s.io", "MachinePool", false),
    ("machinesets", "cluster.x-k8s.io", "MachineSet", false),
    ("nodepools", "karpenter.sh", "NodePool", true),
    ("replicasets", "apps", "ReplicaSet", false),
    ("replicationcontrollers", "", "ReplicationController", false),
    ("resourcequotas", "", "ResourceQuota", false),
    ("scaledobjects", "keda.sh", "ScaledObject", false),
    (name::SET_PLURAL, name::GROUP, name::SET_KIND, false),
    ("statefulsets", "apps", "StatefulSet", false),
];

/// How the objects of a kind are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// By patches of the objects.
    Patch,
    /// By patches of the subresource `scale` alone.
    Scale,
    /// They are created from a template, and patched.
    Template,
}

/// A text is not a kind of targets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a kind of targets: write PLURAL.GROUP, PLURAL.GROUP/scale or \
     PLURAL.GROUP/template, such as deployments.apps/scale; for other kinds than those of \
     Kubernetes, Cluster API, Karpenter, Kueue and KEDA begin with KIND=, or with KIND:Cluster= if \
     its objects have no namespace; not one of 5-Spot itself but \
     scheduledmachinesets.5spot.finos.org/scale, of roles or of Secrets"
)]
pub struct InvalidTarget {
    text: String,
}

impl FromStr for CapacityTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, InvalidTarget> {
        let (named, rest) = match text.split_once('=') {
            Some((named, rest)) => (Some(named), rest),
            None => (None, text),
        };
        let (kind, access) = match rest.split_once('/') {
            None => (rest, Some(Access::Patch)),
            Some((kind, "scale")) => (kind, Some(Access::Scale)),
            Some((kind, "template")) => (kind, Some(Access::Template)),
            Some((kind, _)) => (kind, None),
        };
        let (plural, group) = kind.split_once('.').unwrap_or((kind, ""));
        let is_label = |it: &str| {
            let plain =
                |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            !it.is_empty() && it.chars().all(plain)
        };
        let is_kind =
            is_label(plural) && (group.is_empty() || group.split('.').all(is_label));
        // The scale of a set gives no rights: its author may use the class of its machines.
        let is_scaled_set = (group, plural) == (name::GROUP, name::SET_PLURAL)
            && access == Some(Access::Scale);
        let is_refused = REFUSED_GROUPS.contains(&group) && !is_scaled_set
            || (group, plural) == ("", "secrets");
        let is_this = |it: &&(&str, &str, &str, bool)| (it.0, it.1) == (plural, group);
        let known = KNOWN.iter().find(is_this).map(|it| (it.2, it.3));
        let named = named.map(|it| match it.split_once(':') {
            None => (it, Some(false)),
            Some((kind, scope)) => (kind, (scope == "Cluster").then_some(true)),
        });
        let named = match named {
            None => known,
            // A wrong kind or scope of a known one would ask for another right than is used.
            Some((kind, scope)) => scope.map(|scope| (kind, scope)).filter(|it| {
                is_kind_name(it.0) && known.is_none_or(|known| known == *it)
            }),
        };
        match (access, named) {
            (Some(access), Some((kind, is_cluster_scoped))) if is_kind && !is_refused => {
                Ok(Self {
                    group: group.to_owned(),
                    plural: plural.to_owned(),
                    kind: kind.to_owned(),
                    is_cluster_scoped,
                    access,
                })
            }
            _ => Err(InvalidTarget {
                text: text.to_owned(),
            }),
        }
    }
}

impl CapacityTarget {
    /// The kind with its group: `Deployment.apps`, `ResourceQuota`.
    pub(crate) fn kind_and_group(&self) -> String {
        match self.group.as_str() {
            "" => self.kind.clone(),
            group => format!("{}.{group}", self.kind),
        }
    }
}

/// Whether a text is the name of a kind: `NodePool`.
fn is_kind_name(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_uppercase())
        && text.chars().all(|it| it.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kinds_of_others_are_targets() {
        for text in [
            "",
            "Deployments.apps",
            "deployments.apps/status",
            "deployments..apps",
            "secrets",
            "roles.rbac.authorization.k8s.io",
            "scheduledmachines.5spot.finos.org",
            "scheduledmachines.5spot.finos.org/scale",
            "scheduledmachinesets.5spot.finos.org",
            "scheduledmachinesets.5spot.finos.org/template",
            "lanes.example.com",
            "lane=lanes.example.com",
            "Lane:Namespace=lanes.example.com",
            "NodePool=nodepools.karpenter.sh",
            "Secret=secrets",
        ] {
            assert!(text.parse::<CapacityTarget>().is_err(), "{text}");
        }
        let nodes: CapacityTarget = "nodepools.karpenter.sh".parse().unwrap();
        assert_eq!(
            (nodes.group.as_str(), nodes.access),
            ("karpenter.sh", Access::Patch)
        );
        assert_eq!(nodes.kind_and_group(), "NodePool.karpenter.sh");
        assert!(nodes.is_cluster_scoped);
        let sets = "scheduledmachinesets.5spot.finos.org/scale";
        let sets: CapacityTarget = sets.parse().unwrap();
        assert_eq!(sets.kind_and_group(), "ScheduledMachineSet.5spot.finos.org");
    }
}
