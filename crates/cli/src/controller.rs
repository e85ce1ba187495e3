//! `5spot controller`: the operator, against a real cluster.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::num::NonZeroUsize;

use clap::ValueEnum;
use fivespot_clock::Clock;
use fivespot_controller::{Namespaces, NodeAccess, Options};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::{Client, Config};
use tracing_subscriber::EnvFilter;

use crate::cluster::Source;
use crate::signals::Signals;
use crate::{Failure, Outcome};

/// What is logged unless RUST_LOG says otherwise.
const USUAL_LOG: &str = "info,kube=warn,hyper=warn,tower=warn";
const VERBOSE_LOG: &str = "debug,kube=info,hyper=info,tower=info";

/// Who the operator is in the audit log of an API server.
const AGENT: &str = concat!("5spot/", env!("CARGO_PKG_VERSION"));

/// Run the operator until it is told to stop.
///
/// Finds its cluster by --kubeconfig, $KUBECONFIG or ~/.kube/config, and within a pod by
/// the pod's service account. Run one instance.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  5spot controller --kubeconfig ~/.kube/config --context management
  5spot controller --namespaces team-a,team-b --node-access management")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,
    /// The namespaces to look after [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    namespaces: Vec<String>,
    /// How the nodes of a cluster are reached
    #[arg(long, value_enum, default_value_t)]
    node_access: Access,
    /// How many ScheduledMachines may be looked at at a time
    #[arg(long, value_name = "NUMBER", default_value = "32")]
    max_concurrent: NonZeroUsize,
    /// The form of the log on standard error
    #[arg(long, value_enum, env = "RUST_LOG_FORMAT", default_value_t)]
    log_format: LogFormat,
    /// Log more
    #[arg(short, long)]
    verbose: bool,
}

/// How nodes are reached.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Access {
    /// By the kubeconfig Secret that Cluster API keeps for each Cluster.
    #[default]
    Workload,
    /// The management cluster's own nodes are the ones.
    Management,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LogFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// For people.
    Text,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    start_log(args);
    // The operator is one task; a second thread would have nothing to do.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("starting", error))?;
    runtime.block_on(operate(args))
}

fn start_log(args: &Args) {
    let usual = if args.verbose { VERBOSE_LOG } else { USUAL_LOG };
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let colours = io::stderr().is_terminal();
    match args.log_format {
        LogFormat::Json => log.json().init(),
        LogFormat::Text => log.with_ansi(colours).init(),
    }
}

async fn operate(args: &Args) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let mut config: Config = args.source.config_or_in_cluster().await?;
    // The operator decides itself when to ask again: a retried eviction would hide what a
    // disruption budget answered.
    config.default_retry = false;
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(AGENT)));
    let client = Client::try_from(config)
        .map_err(|error| Failure::new("making a client of the kubeconfig", error))?;
    let mut options = Options::new(client, Clock::system());
    options.max_concurrent = args.max_concurrent;
    options.node_access = match args.node_access {
        Access::Workload => NodeAccess::Workload,
        Access::Management => NodeAccess::Management,
    };
    if !args.namespaces.is_empty() {
        let names: BTreeSet<String> = args.namespaces.iter().cloned().collect();
        options.namespaces = Namespaces::Only(names);
    }
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "operator started");
    tokio::select! {
        () = signals.heard() => {}
        never = fivespot_controller::run(options) => match never {},
    }
    tracing::info!("operator stopped");
    let _ = io::stderr().flush();
    Ok(Outcome::Yes)
}
