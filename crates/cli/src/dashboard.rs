//! `5spot dashboard`: a read-only page for a browser.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fivespot_controller::NodeAccess;
use fivespot_dashboard::{Audience, Dashboard, LeaseLocation, Options, Reader};
use futures::FutureExt as _;
use kube::Client;
use tokio::net::TcpListener;

use crate::check::LeaseFlags;
use crate::cluster::{self, Access};
use crate::signals::Signals;
use crate::{Failure, Outcome, explain, output, report, server_flag};

/// Serve a read-only page about the machines of a cluster, for a browser on this machine
///
/// Shows the week of all machines (planned and actual), a list with filters, for each machine why it
/// is in its phase, what comes next and how it was shut down last, and the savings of a month. Reads
/// with your permissions and changes nothing. The printed URL works once, in one browser. Ends on Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  5spot dashboard -A
  5spot dashboard -A --rates rates.yaml
  5spot dashboard -n team-a --listen 127.0.0.1:8080")]
pub(crate) struct Args {
    /// Show all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Address to listen on; loopback only, port 0 selects a free port
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0",
        value_parser = server_flag::loopback
    )]
    listen: SocketAddr,
    /// Serve whoever connects, without a token: for a proxy in the same pod that authenticates users.
    /// They see everything that this command may read
    #[arg(long)]
    behind_proxy: bool,
    /// A file of rates, for the savings in money, energy and CO2; `5spot report --help` shows one
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// How to reach the nodes of a cluster; use the operator's setting
    #[arg(long, value_enum, default_value_t)]
    node_access: NodeAccess,
    #[command(flatten)]
    lease: LeaseFlags,
    #[command(flatten)]
    access: Access,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    cluster::block_on(serve(args, out))
}

async fn serve(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let config = args.access.config_or_in_cluster().await?;
    let namespace = (!args.all_namespaces).then(|| config.default_namespace.clone());
    let scope = namespace.as_ref().map_or_else(
        || "all namespaces".to_owned(),
        |namespace| format!("namespace {namespace}"),
    );
    let title = format!("{}, {scope}", config.cluster_url);
    let address = args.access.address(&config);
    let inspect_options = explain::options(config, args.node_access)?;
    let client: Client = inspect_options.client.clone();
    cluster::require_reachable(&client, &address).await?;
    let lease = LeaseLocation {
        namespace: args.lease.operator_namespace.clone(),
        name: args.lease.lease_name.clone(),
    };
    let rates = args.rates.as_deref().map(report::read_rates).transpose()?;
    let dashboard = open(Options {
        rates,
        listener: listen(args.listen).await?,
        reader: Reader::new(inspect_options, namespace).with_lease(lease),
        now: Arc::new(move || {
            let client = client.clone();
            async move { cluster::now(&client).await }.boxed()
        }),
        title,
        audience: if args.behind_proxy {
            Audience::Proxy
        } else {
            Audience::UrlHolder
        },
    })?
    .follow_immediately();
    writeln!(out, "dashboard at {}", dashboard.url())?;
    out.flush()?;
    tokio::select! {
        () = signals.received() => Ok(Outcome::Yes),
        () = output::closed() => Ok(Outcome::Yes),
        never = dashboard.serve() => match never {},
    }
}

/// Opens a listener for a dashboard.
///
/// # Errors
/// The address is in use, or is not an address of this machine.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::new(format!("listening on {address}"), error)
            .remedy("choose another address, or port 0 for a free one")
    })
}

/// Creates the dashboard.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn open(options: Options) -> Result<Dashboard, Failure> {
    Dashboard::new(options).map_err(|error| Failure::new("starting the dashboard", error))
}
