//! An object as a list or a watch returns it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    FieldsV1, ManagedFieldsEntry, Time,
};
use kube::Resource;
use kube::api::ObjectMeta;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// An object whose spec and status are decoded later, so that an invalid one does not fail a list
/// of thousands.
///
/// Only the metadata that the pages need is stored, of `managedFields` only when the spec changed.
/// The rest is skipped while the response is decoded.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Undecoded<K> {
    #[serde(deserialize_with = "needed_metadata")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Value,
    #[serde(default)]
    pub(crate) status: Value,
    #[serde(skip)]
    kind: PhantomData<K>,
}

/// An object; or why it cannot be decoded.
pub(crate) type Decoded<K> = Result<K, String>;

impl<K: DeserializeOwned> Undecoded<K> {
    /// Decodes the object.
    pub(crate) fn decoded(self) -> Decoded<K> {
        let Self {
            metadata,
            spec,
            status,
            ..
        } = self;
        let object = json!({"metadata": metadata, "spec": spec, "status": status});
        serde_json::from_value(object).map_err(|error| error.to_string())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NeededMetadata {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    generation: Option<i64>,
    #[serde(default)]
    managed_fields: Vec<ManagedFields>,
}

/// Of the managed fields, what says when the spec changed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagedFields {
    time: Option<Time>,
    subresource: Option<String>,
    #[serde(default)]
    fields_v1: ManagedMembers,
}

#[derive(Default, Deserialize)]
struct ManagedMembers {
    #[serde(rename = "f:spec")]
    spec: Option<IgnoredAny>,
}

impl ManagedFields {
    /// When this client last changed the spec.
    fn of_spec(&self) -> Option<Time> {
        let is_object = self.subresource.as_deref().is_none_or(str::is_empty);
        let is_spec = is_object && self.fields_v1.spec.is_some();
        self.time.clone().filter(|_| is_spec)
    }
}

/// The newest change of the spec, as the entry of one client.
fn newest_change(all: &[ManagedFields]) -> Option<Vec<ManagedFieldsEntry>> {
    let newest = all
        .iter()
        .filter_map(ManagedFields::of_spec)
        .max_by_key(|at| at.0)?;
    Some(vec![ManagedFieldsEntry {
        time: Some(newest),
        fields_v1: Some(FieldsV1(json!({"f:spec": {}}))),
        ..ManagedFieldsEntry::default()
    }])
}

fn needed_metadata<'de, D: Deserializer<'de>>(
    metadata: D,
) -> Result<ObjectMeta, D::Error> {
    let needed = NeededMetadata::deserialize(metadata)?;
    Ok(ObjectMeta {
        managed_fields: newest_change(&needed.managed_fields),
        deletion_timestamp: needed.deletion_timestamp,
        generation: needed.generation,
        name: needed.name,
        namespace: needed.namespace,
        resource_version: needed.resource_version,
        labels: needed.labels,
        creation_timestamp: needed.creation_timestamp,
        ..ObjectMeta::default()
    })
}

impl<K: Resource<DynamicType = ()>> Resource for Undecoded<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
