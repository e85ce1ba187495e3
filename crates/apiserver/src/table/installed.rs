//! The cells of what an operator is installed from.

use serde_json::Value;

const NONE: &str = "<none>";

/// A Deployment's.
pub(super) fn deployment(object: &Value, age: Value) -> Vec<Value> {
    let status = &object["status"];
    let count = |value: &Value| value.as_i64().unwrap_or(0);
    vec![
        object["metadata"]["name"].clone(),
        ready(object),
        count(&status["updatedReplicas"]).to_string().into(),
        count(&status["availableReplicas"]).to_string().into(),
        age,
        containers(object, "name"),
        containers(object, "image"),
        selector(&object["spec"]["selector"]),
    ]
}

/// A StatefulSet's.
pub(super) fn stateful_set(object: &Value, age: Value) -> Vec<Value> {
    vec![
        object["metadata"]["name"].clone(),
        ready(object),
        age,
        containers(object, "name"),
        containers(object, "image"),
    ]
}

/// How many replicas are ready of those that are wanted.
fn ready(object: &Value) -> Value {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let ready = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
    format!("{ready}/{wanted}").into()
}

/// A field of each container of the template.
fn containers(object: &Value, field: &str) -> Value {
    let all = object["spec"]["template"]["spec"]["containers"].as_array();
    let all = all.into_iter().flatten();
    let all: Vec<&str> = all.filter_map(|it| it[field].as_str()).collect();
    all.join(",").into()
}

/// A Service's.
pub(super) fn service(object: &Value, age: Value) -> Vec<Value> {
    let spec = &object["spec"];
    let text = |value: &Value, absent: &str| {
        Value::from(value.as_str().unwrap_or(absent).to_owned())
    };
    let ports = spec["ports"].as_array().into_iter().flatten().map(|port| {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        format!("{}/{protocol}", port["port"])
    });
    let ports: Vec<String> = ports.collect();
    vec![
        object["metadata"]["name"].clone(),
        text(&spec["type"], "ClusterIP"),
        text(&spec["clusterIP"], NONE),
        NONE.into(),
        if ports.is_empty() {
            NONE.into()
        } else {
            ports.join(",").into()
        },
        age,
        labels(&spec["selector"]),
    ]
}

/// A selector by labels, as `kubectl` prints it; one by expressions shows its labels alone.
pub(super) fn selector(selector: &Value) -> Value {
    labels(&selector["matchLabels"])
}

fn labels(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten();
    let mut pairs: Vec<String> = pairs
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    pairs.sort();
    if pairs.is_empty() {
        return NONE.into();
    }
    pairs.join(",").into()
}
