//! Starts and runs the API server, the simulator and the operator.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use fivespot_api::{manifest, name};
use fivespot_install::controller::POLICIES_SINCE;
use fivespot_install::user::{self, Aggregation};
use jiff::SignedDuration;
use kube::Client;
use kubemu::{data_dir, kubeconfig};
use kubemu_apiserver::{Credentials, GroupAlias, Server, Storage, User};
use kubemu_clock::Clock;
use tokio::sync::oneshot;

use super::printer::{Printer, instant};
use super::until::GoalWatch;
use super::{Args, audit, dashboard, load, operator};
use crate::document::Document;
use crate::server_flag;
use crate::signals::Signals;
use crate::{Failure, Outcome, report};

/// The user name of the simulator in the audit log.
const SIMULATOR: &str = "system:serviceaccount:capi-system:capi-manager";

/// The annotation in which `kubectl apply` stores the last applied object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How the run ended, with the goals that were not reached.
enum EndReason {
    /// By a signal, before these goals were reached.
    Stopped(Vec<String>),
    Reached,
    /// By `--timeout`, before these goals were reached.
    Missed(Vec<String>),
}

/// Starts all components, prints transitions and steps, and ends on a signal, a goal or a timeout.
pub(crate) async fn run(args: Args) -> Result<Outcome, Failure> {
    // Before any output: a script that reads a line may send a signal.
    let signals = Signals::listen()?;
    let printer = Arc::new(Printer::on_stdout());
    let objects = load::read(&args.apply)?;
    let rates = args.rates.as_deref().map(report::read_rates).transpose()?;
    let clock = clock(&args);
    let directory = args.server.data_dir.as_deref();
    let (storage, credentials) = data_dir::open(directory)?;
    // Before this server listens, because it may use the port in its data directory.
    kubeconfig::check_unused(&args.kubeconfig).await?;
    let server = server(&args, clock.clone(), storage, &credentials)?;
    let listener = data_dir::listen(args.server.listen, directory).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::new("reading the server's address", error))?;
    let kubeconfig = credentials.kubeconfig(address, "5spot-dev");
    let written = kubeconfig::write(&args.kubeconfig, &kubeconfig)?;

    let client = Client::new(server.in_process(), "default");
    install(&printer, &client, args.server.kube_version.minor()).await?;
    if !args.no_simulator {
        let workload = credentials.certificate_kubeconfig(address, "5spot-dev");
        simulate(&server, clock.clone(), workload).await?;
    }
    operator::register(&client, &clock, !args.no_controller).await?;
    if !args.no_controller {
        operator::start(&server, &clock, address, &printer);
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let mut serving = {
        let (server, credentials) = (server.clone(), credentials);
        tokio::spawn(async move {
            server
                .serve(listener, &credentials, async { drop(stopped.await) })
                .await
        })
    };
    print_start(&printer, &args, &clock, &format!("https://{address}"));
    print_next(&printer, &args, &written);
    dashboard::start(&printer, &server, &clock, address, rates).await?;
    apply(&printer, &args, &server, objects).await?;

    run_clock(&clock, args.speed);
    let end = tokio::select! {
        end = wait(&server, &args, signals) => end?,
        () = printer.closed() => EndReason::Stopped(Vec::new()),
        // The listener ends without a signal only if it fails.
        served = &mut serving => return Err(failed_to_serve(served)),
    };
    // The listener may have failed meanwhile.
    let _ = stop.send(());
    if !matches!(serving.await, Ok(Ok(()))) {
        tracing::debug!("the listener did not shut down cleanly");
    }
    if directory.is_none() {
        kubeconfig::remove(&written, &kubeconfig);
    }
    Ok(print_end(&printer, &clock, end))
}

/// Runs a virtual clock. The system clock needs nothing.
fn run_clock(clock: &Clock, speed: Option<u32>) {
    if clock.is_virtual() {
        let clock = clock.clone();
        tokio::spawn(async move { clock.run(speed.unwrap_or(1)).await });
    }
}

/// Prints the next commands to type.
fn print_next(printer: &Printer, args: &Args, kubeconfig: &std::path::Path) {
    printer.print(&format!("export KUBECONFIG={}", kubeconfig.display()));
    if args.until.is_none() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        printer.print(next_step(&path));
    }
}

/// What to do in a second terminal, with the programs in the folders of `path`.
fn next_step(path: &OsStr) -> &'static str {
    if std::env::split_paths(path).any(|folder| folder.join("kubectl").is_file()) {
        "in a second terminal, run the line above and `kubectl get sm -w`; Ctrl-C ends this"
    } else {
        "there is no `kubectl` on the PATH: install it (https://kubernetes.io/docs/tasks/tools), then \
         run the line above and `kubectl get sm -w` in a second terminal; Ctrl-C ends this"
    }
}

/// Applies the given objects, or the examples whose kinds are served.
async fn apply(
    printer: &Printer,
    args: &Args,
    server: &Server,
    mut objects: Vec<Document>,
) -> Result<(), Failure> {
    if args.apply.is_empty() {
        let others = load::take_unserved(&mut objects, &server.registry());
        if !others.is_empty() {
            let titles = load::titles(&others);
            printer.print(&format!(
                "not applied, because their kinds are not served: {titles}"
            ));
        }
    }
    let client = Client::new(server.in_process(), "default");
    for object in &objects {
        load::apply(&client, object).await?;
    }
    printer.print(&format!("applied {}", load::titles(&objects)));
    Ok(())
}

fn failed_to_serve(
    served: Result<Result<(), kubemu_apiserver::serve::Error>, tokio::task::JoinError>,
) -> Failure {
    match served {
        Ok(Ok(())) => Failure::new("serving", "the listener was closed"),
        Ok(Err(error)) => Failure::new("serving", error),
        Err(error) => Failure::new("serving", error),
    }
    .remedy("start it again; --data-dir keeps all objects")
}

/// The system clock, or a virtual clock if a start or a speed is given.
#[expect(
    clippy::disallowed_methods,
    reason = "where a virtual clock starts by default"
)]
fn clock(args: &Args) -> Clock {
    match (args.start, args.speed) {
        (None, None) => Clock::system(),
        (start, _) => {
            let start = start.map(|it| it.instant_in(&jiff::tz::TimeZone::UTC));
            Clock::stopped_at(start.unwrap_or_else(jiff::Timestamp::now))
        }
    }
}

fn server(
    args: &Args,
    clock: Clock,
    storage: Option<Storage>,
    credentials: &Credentials,
) -> Result<Server, Failure> {
    let mut options = args.server.options(clock, storage, credentials)?;
    let alias = |group: &str| GroupAlias {
        group: group.to_owned(),
        of: name::GROUP.to_owned(),
    };
    options.aliases = name::OLDER_GROUPS.map(alias).to_vec();
    // The simulated kubelets report their nodes ready immediately.
    let taints = "TaintNodesByCondition";
    if !args.no_simulator && !options.enable_plugins.iter().any(|it| it == taints) {
        options.disable_plugins.push(taints.to_owned());
    }
    options.audit = args.audit_log.as_deref().map(audit::to_file).transpose()?;
    server_flag::start(options)
}

/// Installs what a production cluster of that version has: the CRDs, the policies with their
/// bindings where Kubernetes has policies, and the roles of users.
async fn install(
    printer: &Printer,
    client: &Client,
    kube_minor: u32,
) -> Result<(), Failure> {
    let objects = if kube_minor < POLICIES_SINCE {
        printer.print(&format!(
            "Kubernetes 1.{kube_minor} has no admission policies by default: only the rules of the \
             CRDs are checked here; a cluster needs the webhook (`5spot generate webhook`)"
        ));
        manifest::definitions(kube_minor)
    } else {
        manifest::installed(kube_minor)
    };
    let roles = user::roles(Aggregation::View);
    for mut object in objects.into_iter().chain(roles) {
        // So that `kubectl apply` of the same manifests finds its own annotation.
        let applied = format!("{object}\n");
        object["metadata"]["annotations"][LAST_APPLIED] = applied.into();
        let origin = "the built-in manifests".to_owned();
        load::apply(
            client,
            &Document {
                origin,
                object,
                location: None,
            },
        )
        .await
        // They are generated, so only stored objects can conflict with them.
        .map_err(|failure| failure.remedy("choose another or an empty --data-dir"))?;
    }
    Ok(())
}

/// Starts the simulated Cluster API.
async fn simulate(
    server: &Server,
    clock: Clock,
    kubeconfig: String,
) -> Result<(), Failure> {
    let simulation = fivespot_sim::Options {
        client: server.client_as(User::new(SIMULATOR, &["system:masters"])),
        clock,
        contract: fivespot_sim::Contract::V1Beta2,
        kubeconfig: Some(kubeconfig),
    };
    fivespot_sim::install(&simulation).await.map_err(|status| {
        Failure::new("installing the simulated Cluster API", status)
            .remedy("choose another --data-dir, or use --no-simulator")
    })?;
    tokio::spawn(fivespot_sim::run(simulation));
    Ok(())
}

fn print_start(printer: &Printer, args: &Args, clock: &Clock, url: &str) {
    printer.print(&format!(
        "API server at {url}, emulating Kubernetes {} (for evaluation and tests only)",
        args.server.kube_version
    ));
    if clock.is_virtual() {
        let speed = args.speed.unwrap_or(1);
        let now = instant(clock.now());
        printer.print(&format!(
            "virtual clock from {now}, {speed} seconds per second"
        ));
    }
}

async fn wait(
    server: &Server,
    args: &Args,
    mut signals: Signals,
) -> Result<EndReason, Failure> {
    let mut watch = match &args.until {
        Some(goals) => Some(GoalWatch::new(
            &server.client(),
            &server.registry(),
            goals.clone(),
        )?),
        None => None,
    };
    let reached = async {
        match &mut watch {
            Some(watch) => watch.reached().await,
            None => std::future::pending().await,
        }
    };
    let end = tokio::select! {
        () = signals.received() => EndReason::Stopped,
        () = reached => return Ok(EndReason::Reached),
        () = wait_for_timeout(args) => EndReason::Missed,
    };
    Ok(end(watch.map_or_else(Vec::new, |it| it.missed())))
}

/// Waits for `--timeout`, in real time. Waits forever without it.
async fn wait_for_timeout(args: &Args) {
    match args.timeout {
        Some(timeout) => {
            let timeout = SignedDuration::from(timeout);
            tokio::time::sleep(Duration::try_from(timeout).unwrap_or(Duration::MAX))
                .await;
        }
        None => std::future::pending().await,
    }
}

fn print_end(printer: &Printer, clock: &Clock, end: EndReason) -> Outcome {
    let now = instant(clock.now());
    match end {
        EndReason::Stopped(goals) if goals.is_empty() => {
            printer.print(&format!("{now}  stopped"));
            Outcome::Yes
        }
        EndReason::Stopped(goals) => {
            printer.print(&format!("{now}  stopped before: {}", goals.join(", ")));
            Outcome::No
        }
        EndReason::Reached => {
            printer.print(&format!("{now}  reached"));
            Outcome::Yes
        }
        EndReason::Missed(goals) => {
            printer.print(&format!("{now}  not reached in time: {}", goals.join(", ")));
            Outcome::No
        }
    }
}

#[cfg(test)]
mod tests {
    use super::next_step;

    #[test]
    fn without_kubectl_on_the_path_the_next_step_is_to_install_it() {
        let folder =
            std::env::temp_dir().join(format!("5spot-next-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let without = next_step(folder.as_os_str());
        std::fs::write(folder.join("kubectl"), "").unwrap();
        let with = next_step(folder.as_os_str());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(
            without.starts_with("there is no `kubectl` on the PATH: install it"),
            "{without}"
        );
        assert!(with.starts_with("in a second terminal"), "{with}");
    }
}
