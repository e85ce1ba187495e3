//! The dashboard of the embedded server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use fivespot_dashboard::{Audience, Options, Reader};
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

/// Starts a dashboard of the server at that address on a free port, and prints its URL. `rates` are
/// the costs of machines, for the savings.
///
/// # Errors
/// There is no free port, or the system has no random numbers.
pub(super) async fn start(
    printer: &Printer,
    server: &Server,
    clock: &Clock,
    address: SocketAddr,
    rates: Option<Rates>,
) -> Result<(), Failure> {
    let user = User::new(DASHBOARD, &["system:masters"]);
    let client = Client::new(server.in_process_as(user), "default");
    let mut inspect_options =
        fivespot_controller::Options::new(client.clone(), clock.clone());
    inspect_options.connect = Arc::new(InProcessConnect { address, client });
    inspect_options.workload_servers.local = true;
    let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let clock = clock.clone();
    let dashboard = dashboard::open(Options {
        listener: dashboard::listen(free_port).await?,
        reader: Reader::new(inspect_options, None),
        now: Arc::new(move || std::future::ready(clock.now()).boxed()),
        title: "5spot dev".to_owned(),
        rates,
        audience: Audience::UrlHolder,
    })?;
    printer.print(&format!("dashboard at {}", dashboard.url()));
    tokio::spawn(dashboard.serve());
    Ok(())
}
