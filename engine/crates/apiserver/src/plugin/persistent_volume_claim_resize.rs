//! PersistentVolumeClaimResize: claims can only be expanded if their class allows it.

use serde_json::Value;

use super::{Attributes, Plugin, pod};
use crate::kind::resource_name;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn description(&self) -> &'static str {
        "Rejects an increase of the size of a PersistentVolumeClaim that is not bound, \
         or whose StorageClass does not allow expansion."
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let (Some(claim), Some(old)) = (object, attributes.old_object()) else {
            return Ok(());
        };
        if !attributes.is_about("", "persistentvolumeclaims") {
            return Ok(());
        }
        let size = |claim: &Value| {
            resource_name::quantity(&claim["spec"]["resources"]["requests"]["storage"])
        };
        if size(claim) <= size(old) {
            return Ok(());
        }
        if old["status"]["phase"] != "Bound" {
            let why = "Only bound persistent volume claims can be expanded";
            return Err(attributes.forbidden(why));
        }
        if allows(cluster, claim, old) {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that \
             provisions the pvc must support resize";
        Err(attributes.forbidden(why))
    }
}

fn allows(cluster: &State, claim: &Value, old: &Value) -> bool {
    let class = pod::text(&claim["spec"], "storageClassName");
    if class.is_empty() || class != pod::text(&old["spec"], "storageClassName") {
        return false;
    }
    let resource = GroupResource::new("storage.k8s.io", "storageclasses");
    let class = cluster.object(&resource, "", class);
    class.is_some_and(|it| it["allowVolumeExpansion"] == true)
}
