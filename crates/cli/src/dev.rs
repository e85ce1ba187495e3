//! `5spot dev`: an API server, admission, a simulated Cluster API and the operator in one
//! process.

mod example;
mod goal;
mod keep;
mod kubeconfig;
mod load;
mod neighbour;
mod record;
mod story;
mod until;
mod world;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use fivespot_apiserver::KubeVersion;
use jiff::Timestamp;

use crate::{Failure, Outcome};
use goal::Goals;

/// Run everything on this machine, with no cluster: an API server that kubectl can use,
/// admission, a simulated Cluster API, and the operator.
///
/// For development and tests; production is Kubernetes. Ends when --until is reached (exit code
/// 0) or --timeout has passed first (exit code 1), and on Ctrl-C or SIGTERM (exit code 0; with
/// --until 1, for it was not reached).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  5spot dev
  5spot dev --start 2026-03-06T21:30:00Z --speed 600 --apply examples/business-hours.yaml
  5spot dev --apply machines/ --until ScheduledMachine/worker=Active --timeout 60s")]
pub(crate) struct Args {
    /// The address to listen on; loopback only, port 0 for a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0",
        value_parser = loopback
    )]
    listen: SocketAddr,
    /// Where to write the kubeconfig; only its owner can read it
    #[arg(long, value_name = "PATH", default_value = ".5spot/kubeconfig")]
    kubeconfig: PathBuf,
    /// Keep everything in this directory and go on from what it holds [default: in memory]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A manifest or a directory of manifests to apply; repeatable [default: the examples]
    #[arg(long, value_name = "FILE|DIR")]
    apply: Vec<PathBuf>,
    /// Start a virtual clock at this instant, RFC 3339
    #[arg(long, value_name = "TIME")]
    start: Option<Timestamp>,
    /// How many virtual seconds pass in one second
    #[arg(long, value_name = "1..100000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    speed: Option<u32>,
    /// The Kubernetes release to answer as, such as 1.36
    #[arg(long, value_name = "VERSION", default_value_t)]
    kube_version: KubeVersion,
    /// Do not run the operator
    #[arg(long)]
    no_controller: bool,
    /// Do not simulate Cluster API, nodes and pods
    #[arg(long)]
    no_simulator: bool,
    /// Admission plugins to switch on, beside the default ones
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,
    /// Admission plugins to switch off
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
    /// Write one line of JSON for each request to this file
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// End with exit code 0 once all of these hold
    #[arg(long, value_name = "KIND/NAME=PHASE[,...]")]
    until: Option<Goals>,
    /// With --until: how long to wait on this machine's own clock, such as 120s
    #[arg(long, value_name = "DURATION", requires = "until")]
    timeout: Option<fivespot_schedule::Duration>,
}

/// Reads an address that only this machine can reach.
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| {
        "must be an address and a port, such as 127.0.0.1:6443".to_owned()
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err("only a loopback address is listened on, such as 127.0.0.1:6443".to_owned())
}

pub(crate) fn run(args: Args, _: &mut dyn Write) -> Result<Outcome, Failure> {
    // One thread: a virtual clock knows by its scheduler when the process is quiet.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::at_start)?;
    runtime.block_on(world::play(args))
}
