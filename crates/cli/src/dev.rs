//! `5spot dev`: an API server, admission, a simulated Cluster API and the operator in one
//! process.

mod audit;
mod connect;
mod dashboard;
mod example;
mod goal;
mod load;
mod operator;
mod printer;
mod run;
mod until;

use std::io::Write;
use std::path::PathBuf;

use kubemu::server_flag::ServerFlags;

use crate::time::{self, InstantOrDate};
use crate::{Failure, Outcome};
use goal::Goals;

/// Run everything locally, without a cluster: an API server for kubectl, admission, a simulated
/// Cluster API, and the operator.
///
/// For evaluation, development and tests; for production use Kubernetes. Ends when --until is
/// reached (exit code 0), when --timeout passes first (exit code 1), or on Ctrl-C or SIGTERM (exit
/// code 0; with --until 1, because it was not reached).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  5spot dev
  5spot dev --start 2026-03-06T21:30:00Z --speed 600 --apply examples/business-hours.yaml
  5spot dev --apply machines/ --until ScheduledMachine/worker=Active --timeout 60s")]
pub(crate) struct Args {
    #[command(flatten)]
    server: ServerFlags,
    /// Path of the kubeconfig to write; readable only by its owner
    #[arg(long, value_name = "PATH", default_value = ".5spot/kubeconfig")]
    kubeconfig: PathBuf,
    /// Manifest or directory of manifests to apply (repeatable) [default: the examples]
    #[arg(long, value_name = "FILE|DIR")]
    apply: Vec<PathBuf>,
    /// Start a virtual clock at this time: RFC 3339, or a date
    #[arg(long, value_name = "TIME")]
    start: Option<InstantOrDate>,
    /// Virtual seconds per real second
    #[arg(long, value_name = "1..100000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    speed: Option<u32>,
    /// Do not run the operator
    #[arg(long)]
    no_controller: bool,
    /// Do not simulate Cluster API, nodes and pods
    #[arg(long)]
    no_simulator: bool,
    /// Write one line of JSON per request to this file
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// A file of rates for the savings that the dashboard shows; `5spot report --help` shows one
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// Exit with code 0 as soon as all of these objects are in these phases
    #[arg(long, value_name = "KIND/NAME=PHASE[,...]")]
    until: Option<Goals>,
    /// With --until, how long to wait in real time, such as 120s
    #[arg(long, value_name = "DURATION", requires = "until", value_parser = time::duration)]
    timeout: Option<fivespot_schedule::Duration>,
}

pub(crate) fn run(args: Args, _: &mut dyn Write) -> Result<Outcome, Failure> {
    // One thread: a virtual clock needs a single scheduler to detect that the process is idle.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::at_start)?;
    runtime.block_on(run::run(args))
}
