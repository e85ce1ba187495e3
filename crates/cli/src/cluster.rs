//! Which cluster a command talks to, chosen as kubectl chooses it.

use std::path::PathBuf;

use fivespot_clock::Clock;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::Failure;

/// Words that choose a cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Source {
    /// The kubeconfig to use; otherwise $KUBECONFIG, otherwise ~/.kube/config
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use; otherwise its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Source {
    /// How to reach the cluster that was asked for. The cluster itself is not asked anything.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used.
    pub(crate) async fn config(&self) -> Result<Config, Failure> {
        self.read().await.map_err(|error| failed(&error))
    }

    /// The same; a pod that is given no words finds its own cluster.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used, and no pod's service account either.
    pub(crate) async fn config_or_in_cluster(&self) -> Result<Config, Failure> {
        let asked_for = self.kubeconfig.is_some() || self.context.is_some();
        match self.read().await {
            Err(_)
                if !asked_for
                    && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() =>
            {
                Config::incluster().map_err(|error| {
                    Failure::new("finding the cluster of this pod", error)
                        .remedy("give the pod a service account, or --kubeconfig")
                })
            }
            read => read.map_err(|error| failed(&error)),
        }
    }

    async fn read(&self) -> Result<Config, KubeconfigError> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        match &self.kubeconfig {
            None => Config::from_kubeconfig(&options).await,
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await
            }
        }
    }
}

/// How the nodes of a cluster are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum NodeAccess {
    /// By the kubeconfig Secret that Cluster API keeps for each Cluster.
    #[default]
    Workload,
    /// The management cluster's own nodes are the ones.
    Management,
}

impl From<NodeAccess> for fivespot_controller::NodeAccess {
    fn from(access: NodeAccess) -> Self {
        match access {
            NodeAccess::Workload => Self::Workload,
            NodeAccess::Management => Self::Management,
        }
    }
}

/// The API server's own words where there are any.
pub(crate) fn words(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// By how much a server's clock has to differ from this machine's for its time to count: more
/// than clocks that are kept differ, and a request takes.
const APART: SignedDuration = SignedDuration::from_secs(30);

/// The present instant for what is read from this cluster: the time of this machine, unless the
/// server's `Date` is another, as that of `5spot dev --start` is.
pub(crate) async fn now(client: &Client) -> Timestamp {
    let here = Clock::system().now();
    match date(client).await {
        Some(there) if there.duration_since(here).abs() > APART => there,
        _ => here,
    }
}

/// The `Date` of an answer of the server; none where it does not answer, or says none.
async fn date(client: &Client) -> Option<Timestamp> {
    let request = http::Request::get("/version").body(Body::empty()).ok()?;
    let answer = client.send(request).await.ok()?;
    let date = answer.headers().get(http::header::DATE)?.to_str().ok()?;
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    parser.parse_timestamp(date).ok()
}

/// Runs what talks to a cluster, on this thread.
///
/// # Errors
/// The operating system has no more file descriptors, or what `future` says.
pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::at_start)?
        .block_on(future)
}

fn failed(error: &KubeconfigError) -> Failure {
    Failure::new("finding a cluster", error)
        .remedy("name one with --kubeconfig and --context")
}

/// A kubeconfig that can be read, and that nothing can be reached with.
pub(crate) fn no_client(error: kube::Error) -> Failure {
    Failure::new("making a client of the kubeconfig", error)
        .remedy("correct it, or name another with --kubeconfig and --context")
}

/// Words that choose a cluster and a namespace.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Access {
    #[command(flatten)]
    source: Source,
    /// The namespace; otherwise that of the context
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl Access {
    /// A client, whose default namespace is the one that was asked for.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used. The cluster itself is not asked anything.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        Client::try_from(self.config().await?).map_err(no_client)
    }

    /// How to reach the cluster, with the namespace that was asked for as the default.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used. The cluster itself is not asked anything.
    pub(crate) async fn config(&self) -> Result<Config, Failure> {
        let mut config = self.source.config().await?;
        if let Some(namespace) = &self.namespace {
            config.default_namespace.clone_from(namespace);
        }
        Ok(config)
    }
}
