//! Defaulting of pods (pkg/apis/core/v1/defaults.go).

use serde_json::{Value, json};

use crate::kind::pod_spec::default::{self, Fields, each, fill, part};
use crate::meta;

/// Defaults the fields of a pod.
pub(super) fn fill_in(object: &mut Value) {
    let fields = meta::fields(object);
    let spec = meta::field(fields, "spec");
    default::spec(spec);
    for list in ["initContainers", "containers"] {
        for container in each(spec, list) {
            part(container, "resources").map(request_the_limits);
        }
    }
    pod_requests(spec);
    // Not in the template of a pod, which keeps what is written.
    if let Some(grace) = spec.get_mut("terminationGracePeriodSeconds")
        && grace.as_i64().is_some_and(|it| it < 0)
    {
        *grace = 1.into();
    }
    fill(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["initContainers", "containers"] {
            for container in each(spec, list) {
                each(container, "ports").for_each(same_host_port);
            }
        }
    }
    same_address(meta::field(fields, "status"));
}

/// Defaults the requests from the limits.
fn request_the_limits(resources: &mut Fields) {
    let limits = resources.get("limits").and_then(Value::as_object).cloned();
    for (name, limit) in limits.into_iter().flatten() {
        fill(meta::field(resources, "requests"), &name, limit);
    }
}

/// Defaults the pod-level requests from the pod-level limits. Kubernetes also counts the requests
/// of containers; here nothing is defaulted if a container has requests.
fn pod_requests(spec: &mut Fields) {
    let asks = |spec: &mut Fields, list: &str| {
        each(spec, list).any(|it| {
            let resources = it.get("resources");
            resources.is_some_and(|it| it["requests"].is_object())
        })
    };
    let counted = asks(spec, "containers") || asks(spec, "initContainers");
    let Some(resources) = part(spec, "resources").filter(|_| !counted) else {
        return;
    };
    let limits = resources.get("limits").and_then(Value::as_object).cloned();
    let known =
        |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    for (name, limit) in limits.into_iter().flatten().filter(|(it, _)| known(it)) {
        fill(meta::field(resources, "requests"), &name, limit);
    }
}

/// Defaults `hostPort` to the container port, for a pod in the host network.
fn same_host_port(port: &mut Fields) {
    let value = port.get("hostPort").and_then(Value::as_i64);
    if let Some(number) = port.get("containerPort").cloned()
        && value.unwrap_or_default() == 0
    {
        port.insert("hostPort".to_owned(), number);
    }
}

/// Defaults `podIP` and `podIPs` from each other.
fn same_address(status: &mut Fields) {
    let first = status
        .get("podIPs")
        .and_then(|all| all.get(0)?.get("ip"))
        .cloned();
    match (status.get("podIP").cloned(), first) {
        (Some(one), first) if first.as_ref() != Some(&one) => {
            status.insert("podIPs".to_owned(), json!([{"ip": one}]));
        }
        (None, Some(first)) => {
            status.insert("podIP".to_owned(), first);
        }
        _ => {}
    }
}
