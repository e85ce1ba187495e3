//! `5spot generate rbac`: roles with exactly the permissions that the operator uses.

use std::collections::BTreeSet;
use std::io::Write as _;

use clap::builder::PossibleValuesParser;
use fivespot_api::manifest::GeneratedFile;
use fivespot_api::name;
use fivespot_controller::NodeAccess;
use fivespot_install::capacity_target::CapacityTarget;
use fivespot_install::controller::POLICIES_SINCE;
use fivespot_install::file;
use fivespot_install::provider::{self, PROVIDERS, Provider};
use fivespot_install::role::{NamespaceScope, Rights};
use kubemu_admission::KubeVersion;

use super::{Output, default_version, failed};
use crate::Failure;

/// The roles of the operator, and their bindings
///
/// They grant only the permissions that the operator uses. The resources of the selected providers
/// are listed by name. For another provider, label a ClusterRole with
/// 5spot.finos.org/aggregate-to-controller=true: all of its rules are added unchecked.
/// Secrets: --kubeconfig grants read access to the kubeconfig Secrets of the given Clusters;
/// --namespace grants read access to every Secret of the given namespaces, including private keys
/// of control planes.
/// From Kubernetes 1.30 on, two admission policies limit what the operator does with its roles: of a
/// ScheduledMachine it may only change the finalizers and spec.schedule.enabled, and it may only
/// write Leases whose name begins with 5spot-.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  5spot generate rbac --provider k0smotron,kubeadm --kubeconfig team-a/prod | kubectl apply -f -
  5spot generate rbac --namespace team-a,team-b --confine | kubectl apply -f -
  5spot generate rbac --workload | kubectl --context workload apply -f -")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    #[command(flatten)]
    rights: RightsArgs,

    /// Print the role for a workload cluster instead, for the user of its kubeconfig
    #[arg(long, conflicts_with_all =
        ["provider", "kubeconfig", "namespace", "cluster_wide_secrets", "node_access",
         "capacity_target", "schedule_provider"])]
    workload: bool,

    /// Oldest Kubernetes version that must accept the manifests; below 1.30 the policies that limit
    /// the roles are omitted
    #[arg(long, value_name = "VERSION", default_value_t = default_version(), conflicts_with = "workload")]
    kube_version: KubeVersion,

    /// User in the kubeconfig of a workload cluster
    #[arg(long, value_name = "NAME", default_value = file::WORKLOAD_USER, requires = "workload")]
    workload_user: String,
}

/// The permissions of the operator.
#[derive(Debug, clap::Args)]
pub(super) struct RightsArgs {
    /// Providers of the bootstrap and infrastructure objects
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "k0smotron",
        value_parser = PossibleValuesParser::new(PROVIDERS.iter().map(|it| it.name)),
    )]
    provider: Vec<String>,

    /// Clusters whose kubeconfig Secret the operator may read: one Role for each, limited to that
    /// Secret
    #[arg(long, value_name = "NAMESPACE/CLUSTER,...", value_delimiter = ',')]
    kubeconfig: Vec<String>,

    /// Namespaces in which the operator may read every Secret, for Clusters whose names are not
    /// known in advance: one Role in each
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    namespace: Vec<String>,

    /// Grant all other permissions only in these namespaces and in those of --kubeconfig, for
    /// `5spot-controller --namespaces`
    #[arg(long)]
    confine: bool,

    /// Grant read access to every Secret of the cluster (prints a warning)
    #[arg(long, conflicts_with = "namespace")]
    cluster_wide_secrets: bool,

    /// How the operator reaches nodes; the same value as for `5spot-controller --node-access`
    #[arg(long, value_enum, default_value_t)]
    node_access: NodeAccess,

    /// Kinds whose objects ScheduledCapacities may change: PLURAL.GROUP, with /scale for the
    /// subresource alone, with /template for objects that are created; of less usual kinds
    /// KIND=PLURAL.GROUP, or KIND:Cluster=PLURAL.GROUP if the objects have no namespace. Their
    /// controller then has an identity of its own, and a policy lets only those write a
    /// ScheduledCapacity who may patch its target
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    capacity_target: Vec<CapacityTarget>,

    /// Kinds of schedules of other providers that machines and capacities may follow: each the
    /// plural of a kind of the group spotschedules.5spot.finos.org. The operator may read them
    #[arg(long, value_name = "PLURAL,...", value_delimiter = ',', value_parser = plural)]
    schedule_provider: Vec<String>,

    /// Namespace of the operator
    #[arg(long, value_name = "NAME", default_value = name::SYSTEM_NAMESPACE)]
    operator_namespace: String,
}

impl Args {
    /// The files for these arguments.
    ///
    /// # Errors
    /// A namespace has an invalid name.
    pub(super) fn files(&self) -> Result<Vec<GeneratedFile>, Failure> {
        if self.workload {
            return file::workload_roles(&self.workload_user).map_err(failed);
        }
        let minor = self.kube_version.minor();
        self.rights.warn(minor);
        file::roles(&self.rights.rights()?, minor).map_err(failed)
    }
}

impl RightsArgs {
    /// Prints warnings on standard error about permissions beyond those needed, in Kubernetes
    /// 1.`kube_minor`. Standard output is for the manifests.
    pub(super) fn warn(&self, kube_minor: u32) {
        let warnings = [self.warning(), self.unasked(kube_minor)];
        for warning in warnings.into_iter().flatten() {
            let _ = writeln!(std::io::stderr(), "{warning}");
        }
    }

    /// That nobody is asked for their own right on a target.
    fn unasked(&self, kube_minor: u32) -> Option<String> {
        let is_unasked = !self.capacity_target.is_empty() && kube_minor < POLICIES_SINCE;
        is_unasked.then(|| {
            format!(
                "warning: Kubernetes 1.{kube_minor} has no admission policies: whoever may write a \
                 ScheduledCapacity has the operator change every object of the kinds of \
                 --capacity-target, also those that the person may not change"
            )
        })
    }

    fn warning(&self) -> Option<String> {
        let secrets = if self.cluster_wide_secrets {
            "every Secret of the cluster".to_owned()
        } else if self.namespace.is_empty() {
            return None;
        } else {
            format!("every Secret of {}", self.namespace.join(", "))
        };
        Some(format!(
            "warning: the operator may read {secrets}, including private keys of Cluster API; \
             --kubeconfig NAMESPACE/CLUSTER limits it to kubeconfigs"
        ))
    }

    /// The permissions that were selected.
    ///
    /// # Errors
    /// A namespace or a Cluster has an invalid name, or there is no namespace to confine the
    /// permissions to.
    pub(super) fn rights(&self) -> Result<Rights, Failure> {
        let clusters = self
            .kubeconfig
            .iter()
            .map(|it| cluster(it))
            .collect::<Result<BTreeSet<_>, Failure>>()?;
        let opened: BTreeSet<String> = self.namespace.iter().cloned().collect();
        let named = clusters.iter().map(|(namespace, _)| namespace);
        let all: BTreeSet<String> = named.chain(&opened).cloned().collect();
        for name in all.iter().chain([&self.operator_namespace]) {
            check_namespace(name)?;
        }
        if self.confine && all.is_empty() {
            let failure = Failure::new("--confine", "it needs at least one namespace");
            return Err(failure.remedy("give --kubeconfig or --namespace"));
        }
        let providers: BTreeSet<&str> =
            self.provider.iter().map(String::as_str).collect();
        let providers: Vec<&'static Provider> = providers
            .iter()
            .filter_map(|name| provider::named(name))
            .collect();
        Ok(Rights {
            namespace: self.operator_namespace.clone(),
            providers,
            namespaces: if self.confine {
                NamespaceScope::Only(all)
            } else {
                NamespaceScope::All
            },
            kubeconfigs: if self.cluster_wide_secrets {
                NamespaceScope::All
            } else {
                NamespaceScope::Only(opened)
            },
            clusters,
            is_workload_cluster: self.node_access == NodeAccess::Management,
            capacity_targets: self.capacity_target.iter().cloned().collect(),
            schedule_providers: self.schedule_provider.iter().cloned().collect(),
        })
    }
}

/// Parses the plural of a kind of schedules.
///
/// # Errors
/// It is no plural, or has a group.
fn plural(word: &str) -> Result<String, String> {
    if is_dns_label(word) {
        return Ok(word.to_owned());
    }
    let group = name::SPOT_GROUP;
    Err(format!(
        "write the plural of a kind of {group} without the group, such as manualschedules"
    ))
}

/// Parses the namespace and name of a Cluster: `NAMESPACE/CLUSTER`.
///
/// # Errors
/// The text does not have that form, or the name is invalid.
fn cluster(word: &str) -> Result<(String, String), Failure> {
    let is_inner = |it: char| it.is_ascii_alphanumeric() || ".-_".contains(it);
    let is_cluster = |name: &str| {
        (1..=63).contains(&name.len())
            && name.chars().all(is_inner)
            && name.starts_with(|it: char| it.is_ascii_alphanumeric())
    };
    match word.split_once('/') {
        Some((namespace, name)) if is_cluster(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(Failure::new(
            "--kubeconfig",
            format!("{word:?} is not NAMESPACE/CLUSTER"),
        )
        .remedy("give a namespace and a Cluster, such as team-a/prod")),
    }
}

/// Checks the name of a namespace.
///
/// # Errors
/// The name is invalid.
pub(super) fn check_namespace(name: &str) -> Result<(), Failure> {
    if is_dns_label(name) {
        return Ok(());
    }
    let what = format!("the namespace {name:?}");
    Err(Failure::new(what, "it is not a valid name")
        .remedy("use lower-case letters, digits and hyphens, at most 63"))
}

/// Whether a name is a DNS label.
pub(super) fn is_dns_label(name: &str) -> bool {
    kubemu_admission::name::dns_label(name).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        rights_args: RightsArgs,
    }

    fn rights_args(arguments: &str) -> RightsArgs {
        let arguments = ["rbac"]
            .into_iter()
            .chain(arguments.split_ascii_whitespace());
        <Line as clap::Parser>::try_parse_from(arguments)
            .unwrap()
            .rights_args
    }

    #[test]
    fn access_to_more_secrets_than_needed_is_warned_about() {
        assert_eq!(rights_args("--kubeconfig team-a/prod").warning(), None);
        let warning =
            |arguments: &str| rights_args(arguments).warning().unwrap_or_default();
        insta::assert_snapshot!(
            [
                warning("--namespace a,b"),
                warning("--cluster-wide-secrets")
            ]
            .join("\n")
        );
    }

    #[test]
    fn targets_about_which_nobody_is_asked_are_warned_about() {
        let of_targets = rights_args("--capacity-target deployments.apps/scale");
        assert!(of_targets.unasked(29).unwrap().contains("Kubernetes 1.29"));
        assert_eq!(of_targets.unasked(30), None);
        assert_eq!(rights_args("").unasked(29), None);
    }

    #[test]
    fn schedules_of_other_providers_may_be_read_and_not_written() {
        let rights = rights_args("--schedule-provider manualschedules,tariffs").rights();
        let roles = rights.unwrap().management();
        let role = |of: &&serde_json::Value| {
            of["kind"] == "ClusterRole"
                && of["metadata"]["name"] == "5spot-controller-schedules"
        };
        let rules = &roles.iter().find(role).unwrap()["rules"];
        let expected = serde_json::json!([{
            "apiGroups": ["spotschedules.5spot.finos.org"],
            "resources": ["manualschedules", "tariffs"],
            "verbs": ["get", "list", "watch"],
        }]);
        assert_eq!(*rules, expected);
        let bound = |of: &serde_json::Value| {
            of["roleRef"]["name"] == "5spot-controller-schedules"
        };
        assert!(roles.iter().any(bound));
        let arguments = ["rbac", "--schedule-provider", "tariffs.example.com"];
        assert!(<Line as clap::Parser>::try_parse_from(arguments).is_err());
    }

    #[test]
    fn clusters_are_named_with_their_namespace() {
        let rights =
            rights_args("--kubeconfig team-a/prod,team-a/Test.1 --confine").rights();
        let rights = rights.unwrap();
        let named = [("team-a", "Test.1"), ("team-a", "prod")];
        let named = named.map(|(one, other)| (one.to_owned(), other.to_owned()));
        assert_eq!(rights.clusters, BTreeSet::from(named));
        assert_eq!(
            rights.namespaces,
            NamespaceScope::Only(["team-a".to_owned()].into())
        );
        assert_eq!(rights.kubeconfigs, NamespaceScope::Only(BTreeSet::new()));
        let refused =
            |arguments: &str| rights_args(arguments).rights().unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                refused("--kubeconfig prod"),
                refused("--kubeconfig A/prod"),
                refused("--kubeconfig a/b/c"),
                refused("--confine"),
            ]
            .join("\n")
        );
    }
}
