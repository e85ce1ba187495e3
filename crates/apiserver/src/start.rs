//! Why a server does not start.

use std::sync::Arc;

use fivespot_admission::{FieldError, KubeVersion, field};
use serde_json::Value;

use crate::meta;
use crate::plugin::Plugin;
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
        let mut known: Vec<&str> = known.iter().map(|it| it.name()).collect();
        known.sort_unstable();
        Self::UnknownPlugin {
            name: name.to_owned(),
            known: known.join(", "),
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
