//! `5spot generate agent`: what a workload cluster needs for emergency reclaim.

use fivespot_api::manifest::GeneratedFile;
use fivespot_install::agent::Settings;
use fivespot_install::file;

use super::{Output, failed};
use crate::Failure;

/// The agent of emergency reclaim, for workload clusters whose machines have killIfCommands
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  5spot generate agent --image registry.example/5spot-reclaim-agent:0.1.0 \\\n    \
                      | kubectl apply -f -"
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    /// The image of the agent, with 5spot-reclaim-agent as its entry point
    #[arg(long, value_name = "IMAGE", default_value_t = Settings::default().image)]
    image: String,
}

impl Args {
    /// The file that the words ask for.
    ///
    /// # Errors
    /// It cannot be rendered, which is a mistake in the program.
    pub(super) fn file(&self) -> Result<GeneratedFile, Failure> {
        let image = self.image.clone();
        file::agent(&Settings { image }).map_err(failed)
    }
}
