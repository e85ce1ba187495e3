//! AlwaysDeny: rejects every request that passes through admission: writes and connections, not
//! reads.

use kubemu_admission::KubeVersion;
use serde_json::Value;

use super::{Attributes, Plugin};
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct AlwaysDeny;

const WHY: &str = "admission control is denying all modifications";

impl Plugin for AlwaysDeny {
    fn name(&self) -> &'static str {
        "AlwaysDeny"
    }

    fn description(&self) -> &'static str {
        "Rejects every write. Reads do not go through admission, so they are not \
         rejected."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn admit(
        &self,
        _cluster: &mut State,
        attributes: &Attributes<'_>,
        _object: Option<&mut Value>,
    ) -> Result<(), Status> {
        Err(attributes.forbidden(WHY))
    }

    fn validate(
        &self,
        _cluster: &State,
        attributes: &Attributes<'_>,
        _object: Option<&Value>,
    ) -> Result<(), Status> {
        Err(attributes.forbidden(WHY))
    }
}
