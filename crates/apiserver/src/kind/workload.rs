//! What the kinds have in common that make pods of a template.

use serde_json::Value;

/// How many replicas are ready of those that are wanted.
pub(super) fn ready(object: &Value) -> Value {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let ready = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
    format!("{ready}/{wanted}").into()
}

/// A field of each container of the template.
pub(super) fn containers(object: &Value, field: &str) -> Value {
    let all = object["spec"]["template"]["spec"]["containers"].as_array();
    let all = all.into_iter().flatten();
    let all: Vec<&str> = all.filter_map(|it| it[field].as_str()).collect();
    all.join(",").into()
}
