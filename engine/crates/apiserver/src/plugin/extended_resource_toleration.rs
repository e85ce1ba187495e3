//! ExtendedResourceToleration: pods that request an extended resource tolerate the taint of its
//! nodes.

use std::collections::BTreeSet;

use kubemu_admission::KubeVersion;
use serde_json::Value;

use super::{Attributes, Plugin, pod, toleration};
use crate::kind::resource_name;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct ExtendedResourceToleration;

impl Plugin for ExtendedResourceToleration {
    fn name(&self) -> &'static str {
        "ExtendedResourceToleration"
    }

    fn description(&self) -> &'static str {
        "Adds a toleration to pods that request an extended resource such as \
         `example.com/gpu`, for the taint of that name."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn admit(
        &self,
        _cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| attributes.is_about("", "pods")) else {
            return Ok(());
        };
        let mut devices = BTreeSet::new();
        for list in ["containers", "initContainers"] {
            for container in pod::list(&pod["spec"], list) {
                let requested = container["resources"]["requests"].as_object();
                let requested = requested.into_iter().flatten().map(|(name, _)| name);
                devices.extend(
                    requested
                        .filter(|it| resource_name::is_extended(it))
                        .cloned(),
                );
            }
        }
        for device in devices {
            toleration::tolerate(pod::spec(pod), &device, "NoSchedule");
        }
        Ok(())
    }
}
