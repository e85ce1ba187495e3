//! Selects the cluster of a program, as kubectl does.

use std::path::PathBuf;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
pub use kubemu_terminal::block_on;

use crate::Failure;

/// Flags that select a cluster.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Source {
    /// Path of the kubeconfig [default: $KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl Source {
    /// The client configuration of the selected cluster. Sends no request.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used.
    pub async fn config(&self) -> Result<Config, Failure> {
        self.read().await.map_err(|error| failed(&error))
    }

    /// The client configuration of the selected cluster. In a pod without these flags, the
    /// in-cluster configuration.
    ///
    /// # Errors
    /// No kubeconfig, or one that cannot be used, and no service account of a pod.
    pub async fn config_or_in_cluster(&self) -> Result<Config, Failure> {
        let is_selected = self.kubeconfig.is_some() || self.context.is_some();
        match self.read().await {
            Err(_)
                if !is_selected
                    && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() =>
            {
                Config::incluster().map_err(|error| {
                    Failure::new("loading the in-cluster configuration", error)
                        .remedy("give the pod a service account, or set --kubeconfig")
                })
            }
            read => read.map_err(|error| failed(&error)),
        }
    }

    /// The address of the selected cluster, with the name of its context if there is one.
    pub fn address(&self, config: &Config) -> String {
        let address = config.cluster_url.to_string();
        let address = address.trim_end_matches('/');
        let context = self.context.clone().or_else(|| {
            let kubeconfig = match &self.kubeconfig {
                None => Kubeconfig::read(),
                Some(path) => Kubeconfig::read_from(path),
            };
            kubeconfig.ok()?.current_context
        });
        match context {
            Some(context) => format!("{address} (context {context})"),
            None => address.to_owned(),
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

fn failed(error: &KubeconfigError) -> Failure {
    if let KubeconfigError::ReadConfig(why, path) = error {
        return Failure::new(format!("reading the kubeconfig {}", path.display()), why)
            .remedy(
                "set $KUBECONFIG or --kubeconfig; without a cluster, run `5spot dev`, which \
                 writes one",
            );
    }
    if let KubeconfigError::Parse(error) = error {
        // The error itself shows the lines beside the mistake, where tokens and keys are.
        let place = error
            .location()
            .map(|place| format!(" at line {}, column {}", place.line(), place.column()));
        let why = format!("it is malformed{}", place.unwrap_or_default());
        return Failure::new("loading the kubeconfig", why)
            .remedy("correct the file; it has secrets, so that no line of it is shown");
    }
    Failure::new("loading the kubeconfig", error)
        .remedy("set $KUBECONFIG, or --kubeconfig and --context")
}

/// The kubeconfig could be read, but no client could be created from it.
pub fn no_client(error: kube::Error) -> Failure {
    Failure::new("creating a client from the kubeconfig", error)
        .remedy("correct it, or select another with --kubeconfig and --context")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_malformed_kubeconfig_no_line_is_shown() {
        for text in [
            "users:\n- name: desk\n  user: {token: [s3cret]}\n",
            "s3cret",
        ] {
            let error = Kubeconfig::from_yaml(text).unwrap_err();
            assert!(matches!(error, KubeconfigError::Parse(_)), "{error}");
            let shown = failed(&error).to_string();
            assert!(!shown.contains("s3cret"), "{shown}");
            let begins = "loading the kubeconfig: it is malformed";
            assert!(shown.starts_with(begins), "{shown}");
        }
    }
}
