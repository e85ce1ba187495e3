//! Objects as a list or a watch returns them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
use kube::api::{DynamicObject, ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::json;

/// An object; or why it cannot be decoded.
pub(crate) type Decoded<K> = Result<K, String>;

/// Decodes an object of a list or a watch, so that an invalid one does not fail a list of thousands,
/// with the metadata that the pages need.
pub(crate) fn decoded<K: DeserializeOwned>(object: DynamicObject) -> Decoded<K> {
    let DynamicObject {
        mut metadata,
        mut data,
        ..
    } = object;
    trim(&mut metadata);
    data["metadata"] = json!(metadata);
    serde_json::from_value(data).map_err(|error| error.to_string())
}

/// Drops what would fill the memory: annotations, and of the managed fields all but when the spec
/// changed.
fn trim(metadata: &mut ObjectMeta) {
    metadata.annotations = None;
    for entry in metadata.managed_fields.iter_mut().flatten() {
        let fields = entry.fields_v1.take();
        let has_spec = fields.is_some_and(|it| it.0.get("f:spec").is_some());
        entry.fields_v1 = has_spec.then(|| FieldsV1(json!({"f:spec": {}})));
    }
}
