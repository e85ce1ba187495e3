//! Why a server does not start.

use std::sync::Arc;

use fivespot_admission::{FieldError, KubeVersion, field};
use serde_json::Value;

use crate::meta;
use crate::plugin::{Plugin, Removal};
use crate::state::State;

/// Why a [`Server`](crate::Server) cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An admission plugin was named that is not known.
    #[error("admission plugin '{name}' is not known, use one of {known}")]
    UnknownPlugin {
        /// Its name.
        name: String,
        /// The names of those that are known.
        known: String,
    },
    /// A plugin has the name of another.
    #[error("there is another admission plugin '{0}'")]
    DuplicatePlugin(String),
    /// A plugin does not take the configuration that is given for it.
    #[error("configuration of admission plugin '{plugin}': {why}")]
    PluginConfiguration {
        /// Its name.
        plugin: String,
        /// What is wrong.
        why: String,
    },
    /// A plugin was named that Kubernetes has removed.
    #[error(
        "admission plugin '{name}' was removed in Kubernetes {release}; use {instead}, or give \
         --removed-admission-plugins as well"
    )]
    RemovedPlugin {
        /// Its name.
        name: String,
        /// The release without it.
        release: &'static str,
        /// What does its work today.
        instead: &'static str,
    },
    /// A plugin was named that never left its alpha stage.
    #[error(
        "admission plugin '{name}' was withdrawn in Kubernetes {release}; use {instead}"
    )]
    WithdrawnPlugin {
        /// Its name.
        name: String,
        /// The release without it.
        release: &'static str,
        /// What does its work today.
        instead: &'static str,
    },
    /// A plugin that is off has a configuration.
    #[error("there is a configuration of admission plugin '{0}', which is not enabled")]
    UnusedConfiguration(String),
    /// A kind is served already.
    #[error("there is another resource {0:?}")]
    DuplicateKind(String),
    /// An admission plugin was named among those to enable and among those to disable.
    #[error("admission plugin '{0}' is both enabled and disabled")]
    ContradictoryPlugin(String),
    /// A definition, a policy or a binding on disk cannot be put in force, as where a newer
    /// release has stored it. Without it the server would admit what it refuses.
    #[error(
        "{kind} {name:?} that is stored is not valid for Kubernetes {version}: {why}"
    )]
    Stored {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// The release whose answers were asked for.
        version: KubeVersion,
        /// The rules that it breaks.
        why: String,
    },
}

impl StartError {
    pub(crate) fn unknown_plugin(name: &str, known: &[Arc<dyn Plugin>]) -> Self {
        let known = known.iter().filter(|it| it.removal().is_none());
        let mut known: Vec<&str> = known.map(|it| it.name()).collect();
        known.sort_unstable();
        Self::UnknownPlugin {
            name: name.to_owned(),
            known: known.join(", "),
        }
    }

    pub(crate) fn removed_plugin(name: &str, removal: Removal) -> Self {
        Self::RemovedPlugin {
            name: name.to_owned(),
            release: removal.release,
            instead: removal.instead,
        }
    }

    pub(crate) fn withdrawn_plugin(name: &str, removal: Removal) -> Self {
        Self::WithdrawnPlugin {
            name: name.to_owned(),
            release: removal.release,
            instead: removal.instead,
        }
    }

    fn stored(object: &Value, version: KubeVersion, errors: &[FieldError]) -> Self {
        Self::Stored {
            kind: object["kind"].as_str().unwrap_or_default().to_owned(),
            name: meta::name(object).to_owned(),
            version,
            why: field::aggregate(errors),
        }
    }
}

/// Notes that a write could not be put in force. Only while objects are loaded from disk this is
/// possible, and it keeps the server from starting: what a request writes was compiled before.
pub(crate) fn note_invalid(state: &mut State, object: &Value, errors: &[FieldError]) {
    let error = StartError::stored(object, state.kube, errors);
    tracing::error!(%error, "not in force");
    state.invalid.get_or_insert(error);
}
