//! StorageObjectInUseProtection: adds finalizers that keep used claims and volumes.

use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin};
use crate::kind::persistent_volume::OF_VOLUME;
use crate::kind::persistent_volume_claim::OF_CLAIM;
use crate::meta;
use crate::state::State;
use crate::status::Status;

/// The plugin. The finalizers are removed by the controller `volume_protection`.
#[derive(Debug)]
pub(super) struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn description(&self) -> &'static str {
        "Adds a finalizer to new PersistentVolumeClaims and PersistentVolumes. It is \
         removed when no pod uses the claim, or no claim the volume."
    }

    fn admit(
        &self,
        _cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let creates = attributes.operation() == Operation::Create;
        if let Some(object) = object.filter(|_| creates) {
            for (plural, finalizer) in [
                ("persistentvolumeclaims", OF_CLAIM),
                ("persistentvolumes", OF_VOLUME),
            ] {
                if attributes.is_about("", plural) {
                    meta::add_finalizer(object, finalizer);
                }
            }
        }
        Ok(())
    }
}
