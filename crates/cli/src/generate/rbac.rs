//! `5spot generate rbac`: roles with exactly what the operator does.

use std::collections::BTreeSet;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use fivespot_api::manifest::GeneratedFile;
use fivespot_api::name;
use fivespot_install::file;
use fivespot_install::provider::{self, PROVIDERS, Provider};
use fivespot_install::role::{Reach, Rights};

use super::{Output, failed};
use crate::Failure;

/// The roles of the operator, and their bindings
///
/// They allow what the operator does and nothing else. The objects that machines are made from
/// are named, by provider; for a provider that is not listed, label a ClusterRole with
/// 5spot.finos.org/aggregate-to-controller=true and its rules are added. Secrets can be read in
/// the namespaces that are given, and in no other.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  5spot generate rbac --provider k0smotron,kubeadm --namespace team-a,team-b | kubectl apply -f -
  5spot generate rbac --workload | kubectl --context workload apply -f -")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    #[command(flatten)]
    rights: Chosen,

    /// Print the role for a workload cluster instead: what the user of the kubeconfig needs there
    #[arg(long, conflicts_with_all = ["provider", "namespace", "cluster_wide_secrets", "node_access"])]
    workload: bool,

    /// The user whom the kubeconfig of a workload cluster names
    #[arg(long, value_name = "NAME", default_value = file::WORKLOAD_USER, requires = "workload")]
    workload_user: String,
}

/// What the operator is to be allowed.
#[derive(Debug, clap::Args)]
pub(super) struct Chosen {
    /// The providers whose objects machines are made from
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "k0smotron",
        value_parser = PossibleValuesParser::new(PROVIDERS.iter().map(|it| it.name)),
    )]
    provider: Vec<String>,

    /// The namespaces in which the Secrets that hold kubeconfigs may be read: a Role in each
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    namespace: Vec<String>,

    /// Allow everything else in those namespaces only, too, as for
    /// `5spot controller --namespaces`
    #[arg(long, requires = "namespace")]
    confine: bool,

    /// Allow Secrets to be read in every namespace
    #[arg(long, conflicts_with = "namespace")]
    cluster_wide_secrets: bool,

    /// How the operator reaches nodes; as for `5spot controller --node-access`
    #[arg(long, value_enum, default_value_t)]
    node_access: Access,

    /// The namespace that the operator runs in
    #[arg(long, value_name = "NAME", default_value = name::SYSTEM_NAMESPACE)]
    operator_namespace: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Access {
    /// By the kubeconfig Secrets
    #[default]
    Workload,
    /// The management cluster's own nodes are the ones
    Management,
}

impl Args {
    /// The files that the words ask for.
    ///
    /// # Errors
    /// A namespace whose name none can have.
    pub(super) fn files(&self) -> Result<Vec<GeneratedFile>, Failure> {
        if self.workload {
            return file::workload_roles(&self.workload_user).map_err(failed);
        }
        file::roles(&self.rights.rights()?).map_err(failed)
    }
}

impl Chosen {
    /// The rights that were chosen.
    ///
    /// # Errors
    /// A namespace whose name none can have.
    pub(super) fn rights(&self) -> Result<Rights, Failure> {
        for name in self.namespace.iter().chain([&self.operator_namespace]) {
            check_namespace(name)?;
        }
        let named: BTreeSet<String> = self.namespace.iter().cloned().collect();
        let providers: BTreeSet<&str> =
            self.provider.iter().map(String::as_str).collect();
        let providers: Vec<&'static Provider> = providers
            .iter()
            .filter_map(|name| provider::named(name))
            .collect();
        Ok(Rights {
            home: self.operator_namespace.clone(),
            providers,
            reach: if self.confine {
                Reach::Only(named.clone())
            } else {
                Reach::Everywhere
            },
            kubeconfigs: if self.cluster_wide_secrets {
                Reach::Everywhere
            } else {
                Reach::Only(named)
            },
            is_workload_cluster: self.node_access == Access::Management,
        })
    }
}

/// Whether a namespace can have that name.
///
/// # Errors
/// None can.
pub(super) fn check_namespace(name: &str) -> Result<(), Failure> {
    if is_dns_label(name) {
        return Ok(());
    }
    let what = format!("the namespace {name:?}");
    Err(Failure::new(what, "no namespace can have that name")
        .remedy("use lower-case letters, digits and hyphens, at most 63"))
}

fn is_dns_label(name: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(is_inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}
