//! The conditions in the status of an object.

use serde_json::Value;

/// Whether a pod or a node has a true `Ready` condition.
pub(crate) fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|it| it["type"] == "Ready" && it["status"] == "True")
}
