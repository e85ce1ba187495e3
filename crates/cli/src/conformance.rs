//! `5spot conformance`: whether a provider keeps the promises that 5-Spot relies on.
//!
//! The operator of the cluster does the work: a check with Machines of its own would check another
//! sequence of writes than the one that users depend on. Promises run one after the other, because
//! an infrastructure object often represents one host; after one whose machine is not removed, none
//! is.

mod clusters;
mod collection;
mod observation;
mod promise;
mod report;
mod run;
mod setup;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use jiff::SignedDuration;
use kube::Client;

use crate::cluster::{self, Access};
use crate::document;
use crate::signals::Signals;
use crate::{Failure, Format, Outcome};
use clusters::{Clusters, ProviderObject, Subject};
use promise::{Need, PROMISES, Promise};
use report::{PromiseResult, Report, Subjects};
use run::Runner;
use setup::{Environment, TargetCluster};

/// Check whether bootstrap and infrastructure providers do what 5-Spot relies on
///
/// Creates ScheduledMachines in the cluster of the kubeconfig, one after the other, lets each one's
/// machine join and leave, and prints per promise whether it was kept, broken (and what was seen), or
/// not run (and why). 5-Spot must run in that cluster. It creates real machines from the given
/// objects, and removes them.
///
/// With --setup everything takes place in a namespace of its own, which is deleted afterwards. With
/// --cluster it takes place in the namespace of that Cluster. Either way, the run also creates a
/// namespace in the workload cluster for its pods, and deletes it afterwards.
///
/// Progress is printed on standard error. Ctrl-C ends it and removes what it has created.
///
/// Exit codes: 0 every promise that was run is kept, 1 one is broken or something was left behind,
/// 2 error (wrong files, no access, no promise could be run).
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("where").required(true),
    after_help = "Examples:
  5spot conformance --infrastructure host.yaml --bootstrap worker.yaml --cluster edge -n team-a
  5spot conformance --infrastructure host.yaml --bootstrap worker.yaml --setup cluster.yaml -o json
  5spot conformance --infrastructure host.yaml --bootstrap worker.yaml --cluster edge --only opens"
)]
pub(crate) struct Args {
    /// File with the infrastructure object: apiVersion, kind and spec
    #[arg(long, value_name = "FILE")]
    infrastructure: PathBuf,
    /// File with the bootstrap object: apiVersion, kind and spec
    #[arg(long, value_name = "FILE")]
    bootstrap: PathBuf,
    /// Name of the Cluster that the machines join, in the namespace of -n
    #[arg(long, value_name = "NAME", group = "where")]
    cluster: Option<String>,
    /// File with a Cluster and what it needs (control plane, Secrets), to be created in a namespace
    /// of its own
    #[arg(
        long,
        value_name = "FILE",
        group = "where",
        conflicts_with = "namespace"
    )]
    setup: Option<PathBuf>,
    /// File with an infrastructure object whose host never joins, for never-comes-up
    #[arg(long, value_name = "FILE")]
    unreachable: Option<PathBuf>,
    /// Command that restarts the provider and waits until it has restarted, for provider-restarted;
    /// run by sh
    #[arg(long, value_name = "COMMAND")]
    restart_command: Option<String>,
    /// Run only this promise (repeatable)
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(promise::names()))]
    only: Vec<String>,
    /// How long one step may take, such as provisioning a host
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10m",
        value_parser = crate::time::duration
    )]
    timeout: fivespot_schedule::Duration,
    /// Kubernetes version of the machines, for bootstrap providers that need one (kubeadm)
    #[arg(long, value_name = "VERSION")]
    machine_version: Option<String>,
    /// Image of the pods that are put on the Nodes; it must run until it is terminated
    #[arg(
        long,
        value_name = "IMAGE",
        default_value = "registry.k8s.io/pause:3.10"
    )]
    pod_image: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    access: Access,
}

impl Args {
    fn timeout(&self) -> Duration {
        SignedDuration::from(self.timeout).unsigned_abs()
    }

    /// The selected promises, in their order.
    fn promises(&self) -> impl Iterator<Item = &'static Promise> {
        PROMISES.iter().filter(|promise| {
            self.only.is_empty() || self.only.iter().any(|it| it == promise.name)
        })
    }

    /// Whether the flag that a promise needs is given.
    fn has(&self, need: Need) -> bool {
        match need {
            Need::Unreachable => self.unreachable.is_some(),
            Need::Restart => self.restart_command.is_some(),
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    cluster::block_on(async {
        let mut signals = Signals::listen()?;
        let inputs = Inputs::read(args).await?;
        let environment =
            Environment::create(inputs.client.clone(), &inputs.target).await?;
        let clusters = tokio::select! {
            clusters = inputs.connect(&environment, args) => clusters,
            () = signals.received() => Err(Failure::new("waiting for the Cluster", "interrupted")),
        };
        let clusters = match clusters {
            Ok(clusters) => clusters,
            Err(failure) => {
                // The first failure is reported; objects that cannot be deleted after it are not.
                let _ = environment.delete(args.timeout()).await;
                return Err(failure);
            }
        };
        let mut report = Report::new(inputs.subjects.clone());
        tokio::select! {
            () = run_all(&inputs, &clusters, args, &mut report.results) => {}
            () = signals.received() => report.interrupted = true,
        }
        // What was not removed within the timeout is not awaited once more.
        let is_stuck = report.results.iter().any(|one| one.leftover.is_some());
        let timeout = if is_stuck {
            Duration::ZERO
        } else {
            args.timeout()
        };
        report.leftover = clean_up(&clusters, &environment, timeout).await.err();
        report.print(args.output, out)?;
        Ok(report.outcome())
    })
}

/// The inputs of the command line, resolved in the cluster.
struct Inputs {
    client: Client,
    target: TargetCluster,
    subjects: Subjects,
    bootstrap: ProviderObject,
    infrastructure: ProviderObject,
    unreachable: Option<ProviderObject>,
    machine: kube::core::ApiResource,
}

impl Inputs {
    async fn read(args: &Args) -> Result<Self, Failure> {
        let file = |path: &Path| document::read(&[path.to_owned()]);
        let (bootstrap, infrastructure) =
            (file(&args.bootstrap)?, file(&args.infrastructure)?);
        let unreachable = args.unreachable.as_deref().map(file).transpose()?;
        let config = args.access.config().await?;
        let address = args.access.address(&config);
        let target = match (&args.setup, &args.cluster) {
            (Some(setup), _) => TargetCluster::from_manifests(file(setup)?)?,
            (None, cluster) => TargetCluster::Existing {
                namespace: config.default_namespace.clone(),
                cluster: cluster.clone().unwrap_or_default(),
            },
        };
        let client = Client::try_from(config).map_err(cluster::no_client)?;
        let version = client.apiserver_version().await;
        let version = version.map_err(|error| cluster::unreachable(&address, &error))?;
        let title = |documents: &[document::Document]| {
            let of = |it: &document::Document| {
                format!("{} {}", it.text("/apiVersion"), it.text("/kind"))
            };
            documents.first().map(of).unwrap_or_default()
        };
        Ok(Self {
            subjects: Subjects {
                kubernetes: version.git_version,
                bootstrap: title(&bootstrap),
                infrastructure: title(&infrastructure),
            },
            machine: setup::machine_resource(&client).await?,
            bootstrap: setup::provider_object(&client, &bootstrap).await?,
            infrastructure: setup::provider_object(&client, &infrastructure).await?,
            unreachable: match &unreachable {
                Some(object) => Some(setup::provider_object(&client, object).await?),
                None => None,
            },
            client,
            target,
        })
    }

    /// Waits for the workload cluster, and returns the clusters of the run.
    async fn connect(
        &self,
        environment: &Environment,
        args: &Args,
    ) -> Result<Clusters, Failure> {
        let cluster = self.target.name().to_owned();
        let workload =
            setup::workload_client(environment, &cluster, args.timeout()).await?;
        Ok(Clusters {
            management: self.client.clone(),
            workload,
            namespace: environment.namespace.clone(),
            cluster,
            id: environment.id.clone(),
            bootstrap: self.bootstrap.clone(),
            machine: self.machine.clone(),
            version: args.machine_version.clone(),
            image: args.pod_image.clone(),
        })
    }
}

/// Runs the selected promises, one after the other: the host of an infrastructure object may be the
/// only one. If the machine of a promise is not removed, the following promises are not run.
async fn run_all(
    inputs: &Inputs,
    clusters: &Clusters,
    args: &Args,
    results: &mut Vec<PromiseResult>,
) {
    let runner = Runner {
        clusters,
        timeout: args.timeout(),
        restart: args.restart_command.as_deref(),
    };
    let mut obstacle = None;
    for promise in args.promises() {
        let missing = promise.needs.filter(|need| !args.has(*need));
        let why = obstacle.clone().or(missing.map(|it| it.flag().to_owned()));
        if let Some(why) = why {
            results.push(PromiseResult::not_run(promise, why));
            continue;
        }
        let infrastructure = match (promise.needs, &inputs.unreachable) {
            (Some(Need::Unreachable), Some(unreachable)) => unreachable,
            _ => &inputs.infrastructure,
        };
        let subject = Subject::new(promise, &clusters.id, infrastructure.clone());
        let one = runner.run(promise, subject).await;
        if one.leftover.is_some() {
            let why = format!("the machine of {} still exists", promise.name);
            obstacle = Some(why);
        }
        results.push(one);
    }
}

/// Removes all objects that the run has created.
///
/// # Errors
/// A description of the objects that are left.
async fn clean_up(
    clusters: &Clusters,
    environment: &Environment,
    timeout: Duration,
) -> Result<(), String> {
    let gone = setup::poll_until(timeout, async || {
        matches!(clusters.delete_all().await, Ok(0))
    });
    let gone = gone.await.map_err(|()| {
        let namespace = &clusters.namespace;
        format!(
            "ScheduledMachines of namespace {namespace}, which are still being deleted"
        )
    });
    let pods = clusters.delete_pods().await;
    gone?;
    environment.delete(timeout).await?;
    pods
}
