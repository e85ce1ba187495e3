//! PersistentVolumeLabel: adds zone labels to volumes of a cloud provider
//! (plugin/pkg/admission/storage/persistentvolume/label in Kubernetes 1.30).

use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, Removal};
use crate::state::State;
use crate::status::Status;

/// The plugin. There is no cloud provider here that could return the zone of a volume.
#[derive(Debug)]
pub(super) struct PersistentVolumeLabel;

impl Plugin for PersistentVolumeLabel {
    fn name(&self) -> &'static str {
        "PersistentVolumeLabel"
    }

    fn description(&self) -> &'static str {
        "Rejects new GCE PersistentVolumes, as in a cluster whose cloud provider cannot \
         be queried for their zone. Admits all other PersistentVolumes."
    }

    fn removal(&self) -> Option<Removal> {
        Some(Removal {
            release: "1.31",
            instead: "the cloud controller manager",
        })
    }

    fn admit(
        &self,
        _cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let creates = attributes.operation() == Operation::Create;
        let is_volume = attributes.is_about("", "persistentvolumes");
        let Some(volume) = object.filter(|_| creates && is_volume) else {
            return Ok(());
        };
        let disk = &volume["spec"]["gcePersistentDisk"];
        if !disk.is_object() {
            return Ok(());
        }
        let name = disk["pdName"].as_str().unwrap_or_default();
        Err(attributes.forbidden(&format!(
            "error querying GCE PD volume {name}: unable to build GCE cloud provider for PD"
        )))
    }
}
