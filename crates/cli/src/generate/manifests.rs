//! `5spot generate manifests`: the manifests of the operator.

use std::num::NonZeroU32;

use fivespot_api::manifest::GeneratedFile;
use fivespot_controller::program::{NAME, reclaim_override};
use fivespot_install::controller::{POLICIES_SINCE, Settings};
use fivespot_install::file;
use fivespot_schedule::Duration;
use kubemu_admission::KubeVersion;
use serde_json::{Map, Value};

use super::image::{AGENT, ImageArgs};
use super::network::NetworkArgs;
use super::node::NodeArgs;
use super::rbac::RightsArgs;
use super::{Output, default_version, failed};
use crate::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    /// Image of the operator, with 5spot-controller as its entry point, such as
    /// registry.example/5spot-controller:0.1.0
    #[arg(long, value_name = "IMAGE", default_value_t = Settings::default().image)]
    image: String,

    /// Image of the agent in the files of --output-dir, with 5spot-reclaim-agent as its entry point
    #[arg(long, value_name = "IMAGE", default_value_t = Settings::default().agent_image)]
    agent_image: String,

    /// Image of the webhook in the files of --output-dir, with 5spot-webhook as its entry point
    #[arg(long, value_name = "IMAGE", default_value_t = Settings::default().webhook_image)]
    webhook_image: String,

    #[command(flatten)]
    images: ImageArgs,

    /// Number of replicas; one is the leader, the others are on standby
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    replicas: NonZeroU32,

    /// Oldest Kubernetes version that must accept the manifests; below 1.30 the policy is omitted,
    /// and the webhook must be used instead
    #[arg(long, value_name = "VERSION", default_value_t = default_version())]
    kube_version: KubeVersion,

    #[command(flatten)]
    network: NetworkArgs,

    /// Source of a volume with compiled time zones for the operator, as YAML or JSON: an entry of
    /// the volumes of a pod without its name, such as
    /// 'persistentVolumeClaim: {claimName: zoneinfo}'
    #[arg(long, value_name = "SOURCE")]
    zoneinfo_volume: Option<String>,

    #[command(flatten)]
    nodes: NodeArgs,

    #[command(flatten)]
    rights: RightsArgs,

    /// The same value as for `5spot-controller --reclaim-by-override`
    #[arg(long, value_name = "DURATION", value_parser = reclaim_override)]
    reclaim_by_override: Option<Duration>,
}

impl Args {
    /// The files for these arguments: one for standard output, all of them for a directory.
    ///
    /// # Errors
    /// A namespace has an invalid name, an image has no registry, the volume is none, or that
    /// version of Kubernetes lacks what the nodes must support.
    pub(super) fn files(&self) -> Result<Vec<GeneratedFile>, Failure> {
        self.images.check("--image", NAME, &self.image)?;
        let has_agent = self.kube_version.minor() >= POLICIES_SINCE;
        if !self.output.is_printed() {
            if has_agent {
                self.images
                    .check("--agent-image", AGENT, &self.agent_image)?;
            }
            self.images.check(
                "--webhook-image",
                fivespot_webhook::program::NAME,
                &self.webhook_image,
            )?;
        }
        self.rights.warn(self.kube_version.minor());
        let settings = Settings {
            rights: self.rights.rights()?,
            reclaim_override: self.reclaim_by_override.map(|span| span.to_string()),
            image: self.image.clone(),
            agent_image: self.agent_image.clone(),
            webhook_image: self.webhook_image.clone(),
            replicas: self.replicas.get(),
            kube_minor: self.kube_version.minor(),
            network: self.network.network()?,
            node_features: self.nodes.features(self.kube_version.minor())?,
            zoneinfo: self.zoneinfo_volume.as_deref().map(volume).transpose()?,
        };
        if self.output.is_printed() {
            return Ok(vec![file::install(&settings).map_err(failed)?]);
        }
        file::manifests(&settings).map_err(failed)
    }
}

/// Parses the source of a volume.
///
/// # Errors
/// It is not an object with one field.
fn volume(source: &str) -> Result<Map<String, Value>, Failure> {
    let parsed: Option<Map<String, Value>> = serde_saphyr::from_str(source).ok();
    parsed.filter(|it| it.len() == 1).ok_or_else(|| {
        Failure::new("--zoneinfo-volume", "it is not the source of a volume")
            .remedy("give one, such as 'persistentVolumeClaim: {claimName: zoneinfo}'")
    })
}
