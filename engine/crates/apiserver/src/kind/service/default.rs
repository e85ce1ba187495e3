//! Defaulting of services (pkg/apis/core/v1/defaults.go).

use serde_json::{Value, json};

use crate::kind::pod_spec::default::{Fields, each, fill};
use crate::meta;

/// The default timeout of the session affinity in seconds.
const DEFAULT_AFFINITY_SECONDS: i64 = 10_800;

/// Defaults the fields of a service.
pub(super) fn fill_in(object: &mut Value) {
    let spec = meta::field(meta::fields(object), "spec");
    fill(spec, "sessionAffinity", "None");
    match spec.get("sessionAffinity").and_then(Value::as_str) {
        Some("None") => {
            spec.shift_remove("sessionAffinityConfig");
        }
        Some("ClientIP") => {
            let config = spec.get("sessionAffinityConfig");
            let seconds = config.and_then(|it| it.pointer("/clientIP/timeoutSeconds"));
            if seconds.is_none() {
                let config =
                    json!({"clientIP": {"timeoutSeconds": DEFAULT_AFFINITY_SECONDS}});
                spec.insert("sessionAffinityConfig".to_owned(), config);
            }
        }
        _ => {}
    }
    fill(spec, "type", "ClusterIP");
    for port in each(spec, "ports") {
        fill(port, "protocol", "TCP");
        let target = port.get("targetPort");
        let missing =
            target.is_none_or(|it| it.as_i64() == Some(0) || it.as_str() == Some(""));
        if missing {
            let number = port.get("port").cloned().unwrap_or_else(|| 0.into());
            port.insert("targetPort".to_owned(), number);
        }
    }
    let is_outside = super::is_externally_reachable(object);
    let spec = meta::field(meta::fields(object), "spec");
    if is_outside {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    let kind = spec.get("type").and_then(Value::as_str).map(str::to_owned);
    match kind.as_deref() {
        Some("LoadBalancer") => {
            absent(spec, "internalTrafficPolicy", "Cluster");
            fill(spec, "allocateLoadBalancerNodePorts", true);
            addresses(object);
        }
        Some("NodePort" | "ClusterIP") => {
            absent(spec, "internalTrafficPolicy", "Cluster");
        }
        _ => {}
    }
}

/// Sets a field that is absent. An empty string is not absent; validation rejects it.
fn absent(fields: &mut Fields, name: &str, value: &str) {
    fields.entry(name).or_insert_with(|| value.into());
}

/// Defaults the IP mode of load balancer addresses.
fn addresses(object: &mut Value) {
    let status = object.pointer_mut("/status/loadBalancer/ingress");
    let all = status.and_then(Value::as_array_mut).into_iter().flatten();
    for ingress in all.filter_map(Value::as_object_mut) {
        if ingress.contains_key("ip") {
            fill(ingress, "ipMode", "VIP");
        }
    }
}
