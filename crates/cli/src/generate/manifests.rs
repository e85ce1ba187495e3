//! `5spot generate manifests`: the manifests of the operator.

use std::num::NonZeroU32;

use fivespot_admission::KubeVersion;
use fivespot_api::manifest::GeneratedFile;
use fivespot_install::controller::{Network, Settings};
use fivespot_install::file;

use super::rbac::{RightsArgs, check_namespace};
use super::{Output, default_version, failed};
use crate::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    /// Image of the operator, with 5spot as its entry point, such as registry.example/5spot:0.1.0
    #[arg(long, value_name = "IMAGE", default_value_t = Settings::default().image)]
    image: String,

    /// Accept an image without a registry, for example to let kustomize replace it
    #[arg(long)]
    allow_unqualified_image: bool,

    /// Number of replicas; one is the leader, the others are on standby
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    replicas: NonZeroU32,

    /// Oldest Kubernetes version that must accept the manifests; below 1.30 the policy is omitted,
    /// and the webhook must be used instead
    #[arg(long, value_name = "VERSION", default_value_t = default_version())]
    kube_version: KubeVersion,

    /// Ports of API servers that the NetworkPolicy lets the operator connect to: those of this
    /// cluster and of the workload clusters
    #[arg(
        long,
        value_name = "PORT,...",
        value_delimiter = ',',
        default_values_t = Network::default().egress_ports,
    )]
    egress_port: Vec<u16>,

    /// Namespace from which the NetworkPolicy lets metrics be read
    #[arg(
        long,
        value_name = "NAME",
        default_value_t = Network::default().metrics_namespace,
    )]
    metrics_namespace: String,

    #[command(flatten)]
    rights: RightsArgs,
}

impl Args {
    /// The files for these arguments: one for standard output, all of them for a directory.
    ///
    /// # Errors
    /// A namespace has an invalid name, or the image has no registry.
    pub(super) fn files(&self) -> Result<Vec<GeneratedFile>, Failure> {
        if !self.allow_unqualified_image {
            check_image(&self.image)?;
        }
        check_namespace(&self.metrics_namespace)?;
        self.rights.warn();
        let settings = Settings {
            rights: self.rights.rights()?,
            image: self.image.clone(),
            replicas: self.replicas.get(),
            kube_minor: self.kube_version.minor(),
            network: Network {
                egress_ports: self.egress_port.iter().copied().collect(),
                metrics_namespace: self.metrics_namespace.clone(),
            },
        };
        if self.output.is_printed() {
            return Ok(vec![file::install(&settings).map_err(failed)?]);
        }
        file::manifests(&settings).map_err(failed)
    }
}

/// Checks that an image reference has a registry. The default registry of a reference without one
/// has no image of 5-Spot.
///
/// # Errors
/// The image reference has no registry.
fn check_image(image: &str) -> Result<(), Failure> {
    let is_registry = |part: &str| part == "localhost" || part.contains(['.', ':']);
    match image.split_once('/') {
        Some((registry, _)) if is_registry(registry) => Ok(()),
        _ => Err(Failure::new(
            "--image",
            format!("{image:?} has no registry, and no node could pull it"),
        )
        .remedy(
            "give the image that you have pushed, such as registry.example/5spot:0.1.0, or \
             --allow-unqualified-image",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::check_image;

    #[test]
    fn an_image_without_a_registry_is_refused() {
        for image in [
            "registry.example/5spot:0.1.0",
            "localhost/5spot",
            "127.0.0.1:5000/5spot@sha256:00",
        ] {
            assert!(check_image(image).is_ok(), "{image}");
        }
        for image in ["5spot:0.1.0", "team/5spot", ""] {
            let refused = check_image(image).unwrap_err().to_string();
            assert!(refused.contains("--allow-unqualified-image"), "{refused}");
        }
    }
}
