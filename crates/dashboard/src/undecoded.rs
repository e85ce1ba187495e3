//! A ScheduledMachine as a list or a watch returns it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fivespot_api::ScheduledMachine;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use kube::api::ObjectMeta;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An object whose spec and status are decoded later, so that an invalid one does not fail a list
/// of thousands.
///
/// Only the metadata that the pages need is stored. The rest, `managedFields` above all, is skipped
/// while the response is decoded.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct UndecodedMachine {
    #[serde(deserialize_with = "needed_metadata")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Value,
    #[serde(default)]
    pub(crate) status: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NeededMetadata {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
}

fn needed_metadata<'de, D: Deserializer<'de>>(
    metadata: D,
) -> Result<ObjectMeta, D::Error> {
    let needed = NeededMetadata::deserialize(metadata)?;
    Ok(ObjectMeta {
        name: needed.name,
        namespace: needed.namespace,
        resource_version: needed.resource_version,
        labels: needed.labels,
        creation_timestamp: needed.creation_timestamp,
        ..ObjectMeta::default()
    })
}

impl Resource for UndecodedMachine {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        ScheduledMachine::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        ScheduledMachine::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        ScheduledMachine::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        ScheduledMachine::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
