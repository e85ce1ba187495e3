//! The fields that every object has.

use serde_json::{Map, Value, json};

use super::definitions::{self, OBJECT_META};

pub(super) const API_VERSION: &str = "APIVersion defines the versioned schema of this representation \
     of an object. Servers should convert recognized schemas to the latest internal value, \
     and may reject unrecognized values. More info: https://git.k8s.io/community/\
     contributors/devel/sig-architecture/api-conventions.md#resources";
pub(super) const KIND: &str = "Kind is a string value representing the REST resource this object \
     represents. Servers may infer this from the endpoint the client submits requests to. \
     Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/\
     devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/\
     community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Adds them to the schema of an object.
pub(crate) fn add_object_fields(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    let properties = fields
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(properties) = properties else {
        return;
    };
    let reference = definitions::reference(OBJECT_META);
    let metadata = json!({"description": METADATA, "allOf": [reference]});
    for (name, value) in [
        (
            "apiVersion",
            json!({"description": API_VERSION, "type": "string"}),
        ),
        ("kind", json!({"description": KIND, "type": "string"})),
        ("metadata", metadata),
    ] {
        properties.insert(name.to_owned(), value);
    }
}
