//! Which cluster a command talks to, chosen as kubectl chooses it.

use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::Failure;

/// Words that choose a cluster and a namespace.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Access {
    /// The kubeconfig to use; otherwise $KUBECONFIG, otherwise ~/.kube/config
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use; otherwise its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
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
        let mut config = self.config().await.map_err(|error| {
            Failure::new("finding a cluster", error)
                .remedy("give --kubeconfig and --context, or files with -f")
        })?;
        if let Some(namespace) = &self.namespace {
            config.default_namespace.clone_from(namespace);
        }
        Client::try_from(config).map_err(|error| Failure::new("finding a cluster", error))
    }

    async fn config(&self) -> Result<Config, kube::config::KubeconfigError> {
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
