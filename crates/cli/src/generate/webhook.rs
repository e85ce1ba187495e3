//! `5spot generate webhook`: the admission policy as a webhook, ready to be applied.

use std::num::NonZeroU32;

use clap::ValueEnum;
use fivespot_admission::KubeVersion;
use fivespot_api::manifest::GeneratedFile;
use fivespot_install::file;
use fivespot_install::webhook::{Keeper, MATCH_CONDITIONS_SINCE, Settings};

use super::rbac::check_namespace;
use super::{Output, failed};
use crate::Failure;

/// The webhook, for clusters without admission policies
///
/// Kubernetes has policies by default since 1.30. The webhook refuses what the policy refuses,
/// in the same words; a cluster with the policy needs no webhook.
///
/// With --certificates cert-manager the webhook has no right in the cluster, which is the safer
/// way where cert-manager is there. Otherwise it may change its own webhook configuration; from
/// Kubernetes 1.30 on a policy keeps it to the bundle in it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  5spot generate webhook --image registry.example/5spot:0.1.0 | \
                      kubectl apply -f -"
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    /// The image of the webhook, with 5spot as its entry point
    #[arg(long, value_name = "IMAGE", default_value_t = Settings::default().image)]
    image: String,

    /// How many instances there are; all of them answer
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    replicas: NonZeroU32,

    /// The namespace in which it runs
    #[arg(long, value_name = "NAME", default_value_t = Settings::default().home)]
    operator_namespace: String,

    /// The oldest Kubernetes that has to accept the manifests; below 1.28, changes of labels and
    /// finalizers wait for the webhook as well
    #[arg(long, value_name = "VERSION", default_value_t = oldest())]
    kube_version: KubeVersion,

    /// Who makes and renews the certificate
    #[arg(long, value_enum, default_value_t)]
    certificates: Certificates,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Certificates {
    /// The webhook itself
    #[default]
    Own,
    /// cert-manager, which has to be installed
    CertManager,
}

/// The oldest version whose webhooks have match conditions.
fn oldest() -> KubeVersion {
    let parsed = format!("1.{MATCH_CONDITIONS_SINCE}").parse();
    parsed.unwrap_or_default()
}

impl Args {
    /// The file that the words ask for.
    ///
    /// # Errors
    /// A namespace whose name none can have.
    pub(super) fn file(&self) -> Result<GeneratedFile, Failure> {
        check_namespace(&self.operator_namespace)?;
        file::webhook(&Settings {
            home: self.operator_namespace.clone(),
            image: self.image.clone(),
            replicas: self.replicas.get(),
            kube_minor: self.kube_version.minor(),
            keeper: match self.certificates {
                Certificates::Own => Keeper::Webhook,
                Certificates::CertManager => Keeper::CertManager,
            },
        })
        .map_err(failed)
    }
}
