//! `5spot-controller`: the operator as a program, in a cluster.

mod flag;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use fivespot_program::signals::Signals;
use fivespot_program::{Failure, Outcome, cluster, log, service};
use kube::Config;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::{Coordination, LeaseRuntime, Options};
pub use flag::{Args, reclaim_override};
use flag::{Pod, Settings};

/// The name of the program, which is also that of its image.
pub const NAME: &str = "5spot-controller";

/// How long reconciles in progress may take to finish, and the Lease to be released. Less than the
/// grace period of a pod, 30 s.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(20);

/// Runs the program with the arguments of this process, and returns its exit code.
pub fn main() -> ExitCode {
    service::main::<Args>(NAME, run)
}

/// The flags of the program.
pub fn command() -> clap::Command {
    service::command::<Args>(NAME)
}

/// Runs the operator until a signal.
///
/// # Errors
/// A flag, the kubeconfig or a port cannot be used.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let settings = args.settings(Pod::of_environment())?;
    log::start(args.log);
    let beside = thread_beside().map_err(Failure::at_start)?;
    // All reconciles are one task.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::at_start)?;
    runtime.block_on(operate(args, settings, beside))
}

/// Starts a thread with a runtime of its own, for what must not wait while a reconcile computes:
/// the Leases, the health and the metrics. It runs until the process ends.
fn thread_beside() -> io::Result<Handle> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("leases".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}

async fn operate(
    args: &Args,
    settings: Settings<'_>,
    beside: Handle,
) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let config: Config = args.source.config_or_in_cluster().await?;
    let client = crate::client(config.clone()).map_err(cluster::no_client)?;
    let ports = args.ports;
    let started = beside.spawn(async move {
        let client = crate::client(config).map_err(cluster::no_client)?;
        Ok::<_, Failure>((ports.listen().await?, client))
    });
    let started = started
        .await
        .map_err(|error| Failure::at_start(error.into()))?;
    let (ports, lease_client) = started?;
    let mut options = settings.options(client);
    options.lease_runtime = Some(LeaseRuntime {
        handle: beside.clone(),
        client: lease_client,
    });
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        identity = options.identity,
        coordination = coordination(&options.coordination),
        "operator started"
    );
    let (metrics, health) = (options.instruments.clone(), options.instruments.clone());
    let entered = beside.enter();
    ports.serve(
        move |path| metrics.on_metrics_port(path),
        move |path, detail| health.on_health_port(path, detail),
    );
    drop(entered);
    let outcome = run_until_signal(options, &mut signals).await;
    tracing::info!(
        graceful = matches!(outcome, Outcome::Yes),
        "operator stopped"
    );
    let _ = io::stderr().flush();
    Ok(outcome)
}

/// Runs until a signal, then until the reconciles in progress have finished, at most
/// [`SHUTDOWN_GRACE`].
async fn run_until_signal(options: Options, signals: &mut Signals) -> Outcome {
    let (stop, stopped) = oneshot::channel::<()>();
    let mut running = Box::pin(crate::run_until(options, stopped));
    tokio::select! {
        () = signals.received() => {}
        // The operator ended without a signal.
        _ = &mut running => return Outcome::No,
    }
    tracing::info!("received a signal, shutting down");
    drop(stop);
    tokio::select! {
        _ = &mut running => Outcome::Yes,
        () = signals.received() => Outcome::No,
        () = tokio::time::sleep(SHUTDOWN_GRACE) => Outcome::No,
    }
}

/// The kind of coordination of replicas, for the log.
fn coordination(coordination: &Coordination) -> &'static str {
    match coordination {
        Coordination::Alone => "none",
        Coordination::Unelected(_) => "leader election disabled",
        Coordination::Leader(_) => "leader election",
        Coordination::Shards { .. } => "sharding",
    }
}
