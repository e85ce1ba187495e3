//! `5spot generate manifests`: the operator, ready to be applied.

use std::num::NonZeroU32;

use fivespot_admission::KubeVersion;
use fivespot_api::manifest::GeneratedFile;
use fivespot_install::controller::Settings;
use fivespot_install::file;

use super::rbac::Chosen;
use super::{Output, failed, shipped};
use crate::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    /// Image of the operator, with 5spot as its entry point
    #[arg(long, value_name = "IMAGE", default_value_t = Settings::default().image)]
    image: String,

    /// Number of replicas; one is the leader, the others are on standby
    #[arg(long, value_name = "NUMBER", default_value = "2")]
    replicas: NonZeroU32,

    /// Oldest Kubernetes version that must accept the manifests; below 1.30 the policy is omitted,
    /// and the webhook must be used instead
    #[arg(long, value_name = "VERSION", default_value_t = shipped())]
    kube_version: KubeVersion,

    #[command(flatten)]
    rights: Chosen,
}

impl Args {
    /// The files for the arguments: one to print, all of them for a directory.
    ///
    /// # Errors
    /// A namespace whose name none can have.
    pub(super) fn files(&self) -> Result<Vec<GeneratedFile>, Failure> {
        self.rights.warn();
        let settings = Settings {
            rights: self.rights.rights()?,
            image: self.image.clone(),
            replicas: self.replicas.get(),
            kube_minor: self.kube_version.minor(),
        };
        if self.output.is_printed() {
            return Ok(vec![file::install(&settings).map_err(failed)?]);
        }
        file::manifests(&settings).map_err(failed)
    }
}
