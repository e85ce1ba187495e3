//! `5spot generate agent`: what a workload cluster needs for emergency reclaim.

use clap::ValueEnum;
use fivespot_api::manifest::GeneratedFile;
use fivespot_install::agent::{Detection, Kernel, Matching, Settings};
use fivespot_install::file;

use super::{Output, failed};
use crate::Failure;

/// The agent of emergency reclaim, for workload clusters whose machines have killIfCommands
///
/// Two policies come first: one keeps the agent to its own Node, without which it does nothing;
/// the other lets only the operator, the agent and cluster administrators write the annotations
/// of 5-Spot on Nodes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  5spot generate agent --image registry.example/5spot-reclaim-agent:0.1.0 | kubectl apply -f -
  5spot generate agent --kernel 6.6 --outside-containers | kubectl apply -f -")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    /// The image of the agent, with 5spot-reclaim-agent as its entry point
    #[arg(long, value_name = "IMAGE", default_value_t = Settings::default().image)]
    image: String,

    /// The oldest Linux on the nodes; from 6.6 on the agent needs neither root nor NET_ADMIN
    #[arg(long, value_name = "VERSION")]
    kernel: Option<Kernel>,

    /// How processes are seen
    #[arg(long, value_enum, default_value_t)]
    detection: By,

    /// Let no process in a container of a pod match, so that no pod can have its host reclaimed
    #[arg(long)]
    outside_containers: bool,

    /// Further users as whom the operator reaches this cluster, where they may not do everything
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    operator_user: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum By {
    /// By the kernel's events, in the host's network namespace
    #[default]
    Events,
    /// By scans of /proc, without root and outside the host's network
    Scan,
}

impl Args {
    /// The file that the words ask for.
    ///
    /// # Errors
    /// It cannot be rendered, which is a mistake in the program.
    pub(super) fn file(&self) -> Result<GeneratedFile, Failure> {
        let mut settings = Settings {
            image: self.image.clone(),
            kernel: self.kernel,
            detection: match self.detection {
                By::Events => Detection::Events,
                By::Scan => Detection::Scan,
            },
            matching: if self.outside_containers {
                Matching::OutsideContainers
            } else {
                Matching::Everywhere
            },
            ..Settings::default()
        };
        settings
            .operators
            .extend(self.operator_user.iter().cloned());
        file::agent(&settings).map_err(failed)
    }
}
