//! `5spot generate webhook`: the manifests of the admission webhook.

use std::num::NonZeroU32;

use fivespot_api::manifest::GeneratedFile;
use fivespot_install::capacity_policy::kinds_in;
use fivespot_install::file;
use fivespot_install::webhook::{CertificateManager, MATCH_CONDITIONS_SINCE, Settings};
use fivespot_webhook::program::{NAME, ValidationActions};
use kubemu_admission::KubeVersion;

use super::image::ImageArgs;
use super::network::NetworkArgs;
use super::node::NodeArgs;
use super::rbac::check_namespace;
use super::{Output, failed};
use crate::Failure;

/// The webhook, for clusters without admission policies
///
/// Since 1.30, Kubernetes has admission policies by default. The webhook rejects the same objects
/// as the policy, with the same messages; a cluster with the policy needs no webhook.
///
/// With --certificates cert-manager the webhook needs no permissions in the cluster but to ask who
/// may use classes and write targets, which is safer if cert-manager is installed. Otherwise it may
/// patch its own webhook configuration; on Kubernetes 1.30 or later a policy limits it to the
/// caBundle.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  5spot generate webhook --image registry.example/5spot-webhook:0.1.0 | \
                      kubectl apply -f -"
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    /// Image of the webhook, with 5spot-webhook as its entry point, such as
    /// registry.example/5spot-webhook:0.1.0
    #[arg(long, value_name = "IMAGE", default_value_t = Settings::default().image)]
    image: String,

    #[command(flatten)]
    images: ImageArgs,

    /// Number of replicas; all of them serve
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    replicas: NonZeroU32,

    /// Namespace of the webhook
    #[arg(long, value_name = "NAME", default_value_t = Settings::default().namespace)]
    operator_namespace: String,

    /// Oldest Kubernetes version that must accept the manifests; below 1.28, changes of labels and
    /// finalizers also call the webhook
    #[arg(long, value_name = "VERSION", default_value_t = oldest())]
    kube_version: KubeVersion,

    /// What issues and renews the certificate
    #[arg(long, value_enum, default_value_t)]
    certificates: CertificateManager,

    #[command(flatten)]
    actions: ValidationActions,

    /// Let the webhook ask the API server whether who writes a ScheduledCapacity may write its target.
    /// The kinds are those of `5spot generate manifests --capacity-target`. Without this flag, the
    /// webhook admits no ScheduledCapacity
    #[arg(long)]
    capacity_targets: bool,

    #[command(flatten)]
    network: NetworkArgs,

    #[command(flatten)]
    nodes: NodeArgs,
}

/// The oldest Kubernetes version whose webhooks have match conditions.
fn oldest() -> KubeVersion {
    let parsed = format!("1.{MATCH_CONDITIONS_SINCE}").parse();
    parsed.unwrap_or_default()
}

impl Args {
    /// The file for these arguments.
    ///
    /// # Errors
    /// A namespace has an invalid name, the image has no registry, the actions do not exist or
    /// exclude each other, or that version of Kubernetes lacks what the nodes must support.
    pub(super) fn file(&self) -> Result<GeneratedFile, Failure> {
        self.images.check("--image", NAME, &self.image)?;
        self.actions.validator()?;
        check_namespace(&self.operator_namespace)?;
        file::webhook(&Settings {
            namespace: self.operator_namespace.clone(),
            image: self.image.clone(),
            replicas: self.replicas.get(),
            kube_minor: self.kube_version.minor(),
            certificate_manager: self.certificates,
            validation_actions: self.actions.validation_actions.clone(),
            capacity_targets: self
                .capacity_targets
                .then(|| kinds_in(&self.operator_namespace)),
            network: self.network.network()?,
            node_features: self.nodes.features(self.kube_version.minor())?,
        })
        .map_err(failed)
    }
}
