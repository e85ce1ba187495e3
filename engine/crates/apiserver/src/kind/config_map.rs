//! ConfigMaps.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::{BuiltinKind, Write, column, data};
use crate::resource::{Column, Resource};

/// `configmaps` of `v1`.
#[derive(Debug)]
pub(super) struct ConfigMap;

const DATA: &str = "Data contains the configuration data. Each key must consist of alphanumeric \
     characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData \
     field. The keys stored in Data must not overlap with the keys in the BinaryData field, this \
     is enforced during validation process.";

impl BuiltinKind for ConfigMap {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "ConfigMap", "configmaps")
            .with_short_names(&["cm"])
            .without_generation()
            .with_columns(vec![Column::new("Data", "string", DATA), Column::age()])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let object = write.object;
        let mut errors = data::errors(object, write.old, &["data", "binaryData"]);
        let plain = data::entries(object, "data");
        let plain = plain.map(|(_, it)| it.as_str().map_or(0, str::len));
        let binary = data::entries(object, "binaryData");
        let binary = binary.map(|(_, it)| data::decoded_size(it));
        // Kubernetes writes the path of the whole object as an index without a name.
        errors.extend(data::size_error("[]", plain.chain(binary).sum()));
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let entries =
            column::count(&object["data"]) + column::count(&object["binaryData"]);
        vec![
            column::name(object),
            entries.into(),
            column::age(object, now),
        ]
    }
}
