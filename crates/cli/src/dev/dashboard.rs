//! The dashboard of the embedded server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use fivespot_dashboard::{Audience, Dashboard, Options, Reader};
use fivespot_usage::Rates;
use futures::FutureExt as _;
use kube::Client;
use kubemu_apiserver::{Server, User};
use kubemu_clock::Clock;

use super::connect::InProcessConnect;
use super::printer::Printer;
use crate::{Failure, dashboard};

/// The user name of the dashboard in the audit log.
const DASHBOARD: &str = "5spot-dashboard";

/// The settings of the dashboard.
pub(super) struct DashboardSettings<'d> {
    pub(super) server: &'d Server,
    pub(super) clock: &'d Clock,
    /// The address of the server.
    pub(super) address: SocketAddr,
    /// The costs of machines, for the savings.
    pub(super) rates: Option<Rates>,
}

/// Starts a dashboard on a free port, and prints its URL.
///
/// # Errors
/// There is no free port, or the system has no random numbers.
pub(super) async fn start(
    printer: &Printer,
    settings: DashboardSettings<'_>,
) -> Result<(), Failure> {
    let dashboard = open(settings).await?;
    printer.print(&format!("dashboard at {}", dashboard.url()));
    tokio::spawn(dashboard.serve());
    Ok(())
}

async fn open(settings: DashboardSettings<'_>) -> Result<Dashboard, Failure> {
    let DashboardSettings {
        server,
        clock,
        address,
        rates,
    } = settings;
    let user = User::new(DASHBOARD, &["system:masters"]);
    let client = Client::new(server.in_process_as(user), "default");
    let mut inspect_options =
        fivespot_controller::Options::new(client.clone(), clock.clone());
    inspect_options.connect = Arc::new(InProcessConnect { address, client });
    inspect_options.workload_servers.local = true;
    let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let clock = clock.clone();
    dashboard::open(Options {
        listener: dashboard::listen(free_port).await?,
        reader: Reader::new(inspect_options, None),
        now: Arc::new(move || std::future::ready(clock.now()).boxed()),
        title: "5spot dev".to_owned(),
        rates,
        audience: Audience::UrlHolder,
    })
}
