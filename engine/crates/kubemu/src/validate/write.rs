//! A write request for one object.

use serde_json::{Map, Value};

use super::Operation;

/// The new and the old object of a request.
pub(super) struct Write {
    pub(super) operation: Operation,
    pub(super) object: Value,
    pub(super) old: Option<Value>,
}

impl Write {
    pub(super) fn new(
        object: Value,
        old: Option<Value>,
        operation: Option<Operation>,
    ) -> Self {
        let operation = operation.unwrap_or(match old {
            Some(_) => Operation::Update,
            None => Operation::Create,
        });
        match operation {
            Operation::Create => Self {
                operation,
                object,
                old: None,
            },
            Operation::Update => Self {
                operation,
                object,
                old,
            },
            Operation::Delete => Self {
                operation,
                object: Value::Null,
                old: Some(old.unwrap_or(object)),
            },
        }
    }

    /// Fills in the fields that the server sets or keeps: a generated name, the status, and the
    /// metadata that the server maintains.
    pub(super) fn complete(&mut self, has_status: bool) {
        const SERVER_FIELDS: [&str; 7] = [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "managedFields",
        ];
        let Value::Object(fields) = &mut self.object else {
            return;
        };
        if has_status {
            fields.remove("status");
            if let Some(status) = self.old.as_ref().and_then(|old| old.get("status")) {
                fields.insert("status".to_owned(), status.clone());
            }
        }
        let Some(Value::Object(metadata)) = fields.get_mut("metadata") else {
            return;
        };
        let prefix = metadata.get("generateName").and_then(Value::as_str);
        if let (Some(prefix), None) = (prefix, metadata.get("name")) {
            let name = format!("{prefix}xxxxx");
            metadata.insert("name".to_owned(), name.into());
        }
        let old = self.old.as_ref().and_then(|old| old.get("metadata"));
        for field in SERVER_FIELDS {
            if let Some(value) = old.and_then(|old| old.get(field)) {
                metadata.entry(field).or_insert_with(|| value.clone());
            }
        }
    }
}

/// Sets a field of the metadata, unless the metadata is no object.
pub(super) fn set_in_metadata(object: &mut Value, field: &str, value: Value) {
    let Value::Object(fields) = object else {
        return;
    };
    let metadata = fields.entry("metadata").or_insert(Value::Null);
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    if let Value::Object(metadata) = metadata {
        metadata.insert(field.to_owned(), value);
    }
}
