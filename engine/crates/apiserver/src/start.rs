//! Errors that prevent the start of a server.

use kubemu_admission::{FieldError, KubeVersion, field};
use serde_json::Value;

use crate::meta;

/// The reason why a [`Server`](crate::Server) cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The name of an admission plugin is unknown.
    #[error("admission plugin '{name}' is not known, use one of {known}")]
    UnknownPlugin {
        /// Its name.
        name: String,
        /// The names of the known plugins.
        known: String,
    },
    /// Two plugins have the same name.
    #[error("duplicate admission plugin '{0}'")]
    DuplicatePlugin(String),
    /// A plugin rejects its configuration.
    #[error("configuration of admission plugin '{plugin}': {why}")]
    PluginConfiguration {
        /// Its name.
        plugin: String,
        /// The error in the configuration.
        why: String,
    },
    /// A plugin is named that Kubernetes has removed.
    #[error(
        "admission plugin '{name}' was removed in Kubernetes {release}; use {instead}, or \
         set --removed-admission-plugins"
    )]
    RemovedPlugin {
        /// Its name.
        name: String,
        /// The first release without it.
        release: &'static str,
        /// Its replacement.
        instead: &'static str,
    },
    /// A plugin is named that was withdrawn in its alpha stage.
    #[error(
        "admission plugin '{name}' was withdrawn in Kubernetes {release}; use {instead}"
    )]
    WithdrawnPlugin {
        /// Its name.
        name: String,
        /// The first release without it.
        release: &'static str,
        /// Its replacement.
        instead: &'static str,
    },
    /// A plugin that is not enabled has a configuration.
    #[error("there is a configuration of admission plugin '{0}', which is not enabled")]
    UnusedConfiguration(String),
    /// A kind is served already.
    #[error("duplicate resource {0:?}")]
    DuplicateKind(String),
    /// An admission plugin is both enabled and disabled.
    #[error("admission plugin '{0}' is both enabled and disabled")]
    ContradictoryPlugin(String),
    /// A stored definition, policy or binding is invalid, for example because a newer release
    /// has stored it. Without it the server would admit requests that it must reject.
    #[error("stored {kind} {name:?} is not valid for Kubernetes {version}: {why}")]
    Stored {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// The emulated release.
        version: KubeVersion,
        /// The rules that it violates.
        why: String,
    },
}

impl StartError {
    pub(crate) fn stored(
        object: &Value,
        version: KubeVersion,
        errors: &[FieldError],
    ) -> Self {
        Self::Stored {
            kind: object["kind"].as_str().unwrap_or_default().to_owned(),
            name: meta::name(object).to_owned(),
            version,
            why: field::aggregate(errors),
        }
    }
}
