//! The options of a request.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::Operation;

/// The options of a request without query parameters.
pub(super) fn request_options(operation: Operation) -> &'static Value {
    static CREATE: LazyLock<Value> = LazyLock::new(|| of_kind("CreateOptions"));
    static UPDATE: LazyLock<Value> = LazyLock::new(|| of_kind("UpdateOptions"));
    static DELETE: LazyLock<Value> = LazyLock::new(|| of_kind("DeleteOptions"));
    fn of_kind(kind: &str) -> Value {
        json!({"apiVersion": "meta.k8s.io/v1", "kind": kind})
    }
    match operation {
        Operation::Create => &CREATE,
        Operation::Update => &UPDATE,
        Operation::Delete => &DELETE,
    }
}
