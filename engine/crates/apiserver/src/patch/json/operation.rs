//! The operations of a patch as sent.

use serde_json::{Map, Value};

use super::{Inapplicable, missing};
use crate::json_type::go_kind;
use crate::status::Status;

/// The operations of the patch in a webhook's response.
///
/// # Errors
/// The message of Go's decoder for a value that is not a list of objects.
pub(in crate::patch) fn operations_of_webhook(patch: &Value) -> Result<&[Value], String> {
    let refused = |value: &Value, into: &str| {
        let kind = go_kind(value);
        format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.{into}")
    };
    if patch.is_null() {
        return Ok(&[]);
    }
    let list = patch.as_array().ok_or_else(|| refused(patch, "Patch"))?;
    let other = list.iter().find(|it| !it.is_object() && !it.is_null());
    other.map_or(Ok(list), |it| Err(refused(it, "Operation")))
}

/// The operations of a patch, after checking that their string fields are strings.
///
/// # Errors
/// 400 with the message of Go's decoder.
pub(super) fn checked(operations: &Value) -> Result<&Vec<Value>, Status> {
    let refused = |value: &Value, into: &str| {
        let kind = go_kind(value);
        Status::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {kind} into Go {into}"
        ))
    };
    let list = operations
        .as_array()
        .ok_or_else(|| refused(operations, "value of type []handlers.jsonPatchOp"))?;
    for operation in list {
        let Value::Object(fields) = operation else {
            if operation.is_null() {
                continue;
            }
            return Err(refused(operation, "value of type handlers.jsonPatchOp"));
        };
        for (name, value) in fields {
            let is_text = matches!(name.as_str(), "op" | "path" | "from");
            if is_text && !value.is_string() && !value.is_null() {
                let into = format!("struct field jsonPatchOp.{name} of type string");
                return Err(refused(value, &into));
            }
        }
    }
    Ok(list)
}

/// One operation as sent.
pub(super) struct Operation<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Operation<'a> {
    pub(super) fn text(&self, name: &str) -> Result<&'a str, Inapplicable> {
        let found = self.0.get(name).and_then(Value::as_str);
        found.ok_or_else(|| missing(&format!("operation missing {name} field")))
    }

    /// The `from` path.
    pub(super) fn source(&self) -> Result<&'a str, Inapplicable> {
        let found = self.0.get("from").and_then(Value::as_str);
        found.ok_or_else(|| {
            let name = self.0.get("op").and_then(Value::as_str);
            let name = name.unwrap_or_default();
            let why = "operation failed to decode from: operation, missing from field";
            missing(&format!("{name} {why}"))
        })
    }

    /// The `value`; null if it is missing.
    pub(super) fn value(&self) -> Value {
        self.0.get("value").cloned().unwrap_or_default()
    }
}
