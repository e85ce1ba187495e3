//! Why a server does not start.

use fivespot_admission::{FieldError, KubeVersion, field};
use serde_json::Value;

use crate::chain;
use crate::meta;
use crate::state::State;

/// Why a [`Server`](crate::Server) cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An admission plugin was named that is not known.
    #[error("admission plugin '{0}' is not known, use one of {known}", known = chain::known())]
    UnknownPlugin(String),
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
