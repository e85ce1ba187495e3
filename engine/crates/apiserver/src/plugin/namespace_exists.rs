//! NamespaceExists: rejects writes into a namespace that does not exist.

use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, namespace_lifecycle};
use crate::state::State;
use crate::status::Status;
use crate::store::Key;

/// The plugin.
#[derive(Debug)]
pub(super) struct NamespaceExists;

impl Plugin for NamespaceExists {
    fn name(&self) -> &'static str {
        "NamespaceExists"
    }

    fn description(&self) -> &'static str {
        "Rejects writes to a namespace that does not exist. NamespaceLifecycle does this \
         and more."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        _object: Option<&Value>,
    ) -> Result<(), Status> {
        let name = attributes.namespace();
        if name.is_empty() || attributes.operation() == Operation::Connect {
            return Ok(());
        }
        match cluster.get(cluster.buckets.namespaces, &Key::new("", name)) {
            Some(_) => Ok(()),
            None => Err(namespace_lifecycle::missing(name)),
        }
    }
}
