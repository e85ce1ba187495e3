//! NamespaceAutoProvision: creates the namespace of an object if it does not exist.

use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin};
use crate::namespace;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct NamespaceAutoProvision;

impl Plugin for NamespaceAutoProvision {
    fn name(&self) -> &'static str {
        "NamespaceAutoProvision"
    }

    fn description(&self) -> &'static str {
        "Creates the namespace of a new object if it does not exist."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        _object: Option<&mut Value>,
    ) -> Result<(), Status> {
        if attributes.operation() == Operation::Create
            && !attributes.namespace().is_empty()
            && !attributes.is_dry_run()
        {
            namespace::ensure(cluster, attributes.namespace());
        }
        Ok(())
    }
}
