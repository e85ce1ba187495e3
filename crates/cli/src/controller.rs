//! `5spot controller`: the operator, against a real cluster.

mod flag;

use std::io::{self, Write as _};
use std::time::Duration;

use fivespot_controller::Options;
use kube::Config;
use tokio::sync::oneshot;

use crate::signals::Signals;
use crate::{Failure, Outcome, cluster, log};
pub(crate) use flag::Args;
use flag::{Pod, Settings};

/// How long passes that are under way may take to end, and the Lease to be released: less than
/// the 30 s that Kubernetes gives a pod.
const GRACE: Duration = Duration::from_secs(20);

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let settings = args.settings(Pod::of_environment())?;
    log::start(args.log);
    // The operator is one task; a second thread would have nothing to do.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::at_start)?;
    runtime.block_on(operate(args, settings))
}

async fn operate(args: &Args, settings: Settings) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let config: Config = args.source.config_or_in_cluster().await?;
    let client = fivespot_controller::client(config).map_err(cluster::no_client)?;
    let ports = settings.ports().listen().await?;
    let options = settings.options(client);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        identity = options.identity,
        coordination = ?options.coordination,
        "operator started"
    );
    let (metrics, health) = (options.instruments.clone(), options.instruments.clone());
    ports.serve(
        move |path| metrics.on_metrics_port(path),
        move |path, detail| health.on_health_port(path, detail),
    );
    let outcome = until_told(options, &mut signals).await;
    tracing::info!(
        in_order = matches!(outcome, Outcome::Yes),
        "operator stopped"
    );
    let _ = io::stderr().flush();
    Ok(outcome)
}

/// Runs until a signal; then to the end of what is under way, but not for ever.
async fn until_told(options: Options, signals: &mut Signals) -> Outcome {
    let (stop, stopped) = oneshot::channel::<()>();
    let mut running = Box::pin(fivespot_controller::run_until(options, stopped));
    tokio::select! {
        () = signals.heard() => {}
        // Nobody has told it to.
        _ = &mut running => return Outcome::No,
    }
    tracing::info!("operator is told to stop");
    drop(stop);
    tokio::select! {
        _ = &mut running => Outcome::Yes,
        () = signals.heard() => Outcome::No,
        () = tokio::time::sleep(GRACE) => Outcome::No,
    }
}
