//! The cells of the built-in kinds, as Kubernetes' printers fill them
//! (pkg/printers/internalversion).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{human_duration, installed, pod};
use crate::resource::Resource;

/// The cells of a built-in `object`; empty for a kind without cells of its own.
pub(super) fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    if resource.custom {
        return Vec::new();
    }
    let name = string(&object["metadata"]["name"]);
    let age: Value = age(&object["metadata"]["creationTimestamp"], now).into();
    let created = object["metadata"]["creationTimestamp"].clone();
    match resource.kind.as_str() {
        "Namespace" => vec![name, string(&object["status"]["phase"]), age],
        "Node" => node(object, age),
        "Pod" => pod::cells(object, now),
        "ConfigMap" => vec![
            name,
            (count(&object["data"]) + count(&object["binaryData"])).into(),
            age,
        ],
        "Secret" => vec![
            name,
            string(&object["type"]),
            count(&object["data"]).into(),
            age,
        ],
        "ServiceAccount" => vec![name, age],
        "Event" => event(object, now),
        "Lease" => vec![name, string(&object["spec"]["holderIdentity"]), age],
        "PodDisruptionBudget" => disruption_budget(object, age),
        "Deployment" => installed::deployment(object, age),
        "StatefulSet" => installed::stateful_set(object, age),
        "Service" => installed::service(object, age),
        "NetworkPolicy" => {
            vec![
                name,
                installed::selector(&object["spec"]["podSelector"]),
                age,
            ]
        }
        "CustomResourceDefinition" | "Role" | "ClusterRole" => vec![name, created],
        "RoleBinding" | "ClusterRoleBinding" => role_binding(object, age),
        "ValidatingAdmissionPolicy" => vec![
            name,
            count(&object["spec"]["validations"]).into(),
            param_kind(&object["spec"]["paramKind"]),
            age,
        ],
        "ValidatingAdmissionPolicyBinding" => vec![
            name,
            string(&object["spec"]["policyName"]),
            param_ref(&object["spec"]["paramRef"]),
            age,
        ],
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            vec![name, count(&object["webhooks"]).into(), age]
        }
        _ => Vec::new(),
    }
}

fn disruption_budget(object: &Value, age: Value) -> Vec<Value> {
    let spec = &object["spec"];
    let allowed = object["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
    vec![
        object["metadata"]["name"].clone(),
        bound(&spec["minAvailable"]),
        bound(&spec["maxUnavailable"]),
        allowed.into(),
        age,
    ]
}

/// The conditions of a row; null for none.
pub(super) fn conditions(resource: &Resource, object: &Value) -> Value {
    if resource.custom || resource.kind != "Pod" {
        return Value::Null;
    }
    let message = match object["status"]["phase"].as_str() {
        Some("Succeeded") => "The pod has completed successfully.",
        Some("Failed") => "The pod failed.",
        _ => return Value::Null,
    };
    json!([{"type": "Completed", "status": "True", "message": message,
        "reason": object["status"]["phase"]}])
}

/// An age; `<unknown>` for no instant.
pub(super) fn age(since: &Value, now: Timestamp) -> String {
    let since = since.as_str().and_then(|it| it.parse().ok());
    since.map_or_else(|| "<unknown>".to_owned(), |it| human_duration(it, now))
}

fn string(value: &Value) -> Value {
    value.as_str().unwrap_or_default().into()
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The entries of a list; none where there is no list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn node(object: &Value, age: Value) -> Vec<Value> {
    let info = &object["status"]["nodeInfo"];
    let shown = |key: &str| match info[key].as_str() {
        Some("") | None => "<unknown>".into(),
        Some(text) => Value::from(text),
    };
    let address = |kind: &str| {
        let found = list(&object["status"]["addresses"])
            .iter()
            .find(|it| it["type"] == kind);
        found.map_or_else(|| "<none>".into(), |it| string(&it["address"]))
    };
    vec![
        object["metadata"]["name"].clone(),
        node_status(object).into(),
        node_roles(object).into(),
        age,
        string(&info["kubeletVersion"]),
        address("InternalIP"),
        address("ExternalIP"),
        shown("osImage"),
        shown("kernelVersion"),
        shown("containerRuntimeVersion"),
    ]
}

fn node_status(object: &Value) -> String {
    let ready = list(&object["status"]["conditions"])
        .iter()
        .find(|it| it["type"] == "Ready");
    let mut status = match ready.map(|it| it["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(object: &Value) -> String {
    let mut roles: Vec<&str> = Vec::new();
    if let Some(labels) = object["metadata"]["labels"].as_object() {
        for (key, value) in labels {
            match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) if !role.is_empty() => roles.push(role),
                _ if key == "kubernetes.io/role" => roles.extend(value.as_str()),
                _ => {}
            }
        }
    }
    roles.retain(|it| !it.is_empty());
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        roles.join(",")
    }
}

/// A row of either event shape. Events have no name column in front.
fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let either = |core: &str, other: &str| {
        if object[core].is_null() {
            object[other].clone()
        } else {
            object[core].clone()
        }
    };
    let first = either("firstTimestamp", "deprecatedFirstTimestamp");
    let first_seen = if first.is_null() {
        &object["eventTime"]
    } else {
        &first
    };
    let last = either("lastTimestamp", "deprecatedLastTimestamp");
    let last_seen = if last.is_null() { first_seen } else { &last };
    let series = &object["series"];
    let (last_seen, times) = if series.is_object() {
        (
            &series["lastObservedTime"],
            series["count"].as_i64().unwrap_or(0),
        )
    } else {
        let times = either("count", "deprecatedCount").as_i64().unwrap_or(0);
        (last_seen, times.max(1))
    };
    let about = either("involvedObject", "regarding");
    let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
    let mut target = kind;
    if let Some(name) = about["name"].as_str().filter(|it| !it.is_empty()) {
        target = format!("{target}/{name}");
    }
    let source = either("source", "deprecatedSource");
    let mut component = string(&source["component"]);
    if component == "" {
        component = string(&either("reportingComponent", "reportingController"));
    }
    let host = source["host"].as_str().unwrap_or_default();
    let component = [component.as_str().unwrap_or_default(), host]
        .into_iter()
        .filter(|it| !it.is_empty())
        .collect::<Vec<_>>()
        .join(", ");
    vec![
        age(last_seen, now).into(),
        string(&object["type"]),
        string(&object["reason"]),
        target.into(),
        string(&about["fieldPath"]),
        component.into(),
        string(&either("message", "note"))
            .as_str()
            .unwrap_or_default()
            .trim()
            .into(),
        age(first_seen, now).into(),
        times.into(),
        object["metadata"]["name"].clone(),
    ]
}

fn role_binding(object: &Value, age: Value) -> Vec<Value> {
    let role = &object["roleRef"];
    let kind = role["kind"].as_str().unwrap_or_default();
    let name = role["name"].as_str().unwrap_or_default();
    let subjects = |kind: &str| {
        let named: Vec<_> = list(&object["subjects"])
            .iter()
            .filter(|it| it["kind"] == kind)
            .map(|it| {
                let name = it["name"].as_str().unwrap_or_default();
                match it["namespace"].as_str() {
                    Some(namespace) if kind == "ServiceAccount" => {
                        format!("{namespace}/{name}")
                    }
                    _ => name.to_owned(),
                }
            })
            .collect();
        Value::from(named.join(", "))
    };
    vec![
        object["metadata"]["name"].clone(),
        format!("{kind}/{name}").into(),
        age,
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

/// An int-or-string bound of a budget.
fn bound(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        Value::Number(number) => number.to_string().into(),
        _ => "N/A".into(),
    }
}

fn param_kind(value: &Value) -> Value {
    match (value["apiVersion"].as_str(), value["kind"].as_str()) {
        (Some(version), Some(kind)) => format!("{version}/{kind}").into(),
        _ => "<unset>".into(),
    }
}

fn param_ref(value: &Value) -> Value {
    if !value.is_object() {
        return "<unset>".into();
    }
    match (value["namespace"].as_str(), value["name"].as_str()) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}").into(),
        // Whether the params are namespaced cannot be told from here.
        (None, Some(name)) => format!("*/{name}").into(),
        (_, None) => value["selector"].to_string().into(),
    }
}
