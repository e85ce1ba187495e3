//! Updates of a service (pkg/registry/core/service, `ValidateServiceUpdate` in
//! pkg/apis/core/validation).

use serde_json::Value;

use super::{has_health_check, has_node_ports, is_external_name, is_headless};
use crate::kind::field::{Errors, Field};
use crate::kind::pod_spec::default::each;
use crate::kind::{column, items, text};
use crate::meta;

/// Restores allocated values that an update leaves out.
pub(super) fn keep_allocated(object: &mut Value, old: &Value) {
    let before = &old["spec"];
    let has_addresses = !is_external_name(object) && !is_external_name(old);
    let keep = |object: &mut Value, fields: &[&str]| {
        let spec = meta::field(meta::fields(object), "spec");
        for field in fields {
            let is_set = spec.get(*field).is_some_and(|it| {
                it.as_str().is_some_and(|it| !it.is_empty()) || column::count(it) > 0
            });
            if !is_set && !before[*field].is_null() {
                spec.insert((*field).to_owned(), before[*field].clone());
            }
        }
    };
    if has_addresses {
        keep(object, &["clusterIP", "clusterIPs"]);
    }
    follow_address(object, before);
    if has_addresses && object["spec"]["clusterIP"] == before["clusterIP"] {
        keep(object, &["ipFamilies", "ipFamilyPolicy"]);
    }
    if has_node_ports(object) && has_node_ports(old) {
        let spec = meta::field(meta::fields(object), "spec");
        for port in each(spec, "ports") {
            let number = port.get("nodePort").and_then(Value::as_i64);
            let name = port.get("name").cloned().unwrap_or(Value::Null);
            let previous = items(before, "ports").find(|(_, it)| it["name"] == name);
            if let Some((_, previous)) = previous
                && number.unwrap_or_default() == 0
                && !previous["nodePort"].is_null()
            {
                port.insert("nodePort".to_owned(), previous["nodePort"].clone());
            }
        }
    }
    let field = "healthCheckNodePort";
    if has_health_check(object)
        && has_health_check(old)
        && object["spec"][field].is_null()
    {
        let spec = meta::field(meta::fields(object), "spec");
        spec.insert(field.to_owned(), before[field].clone());
    }
}

/// Sets `clusterIPs` from `clusterIP` if only the latter has changed.
fn follow_address(object: &mut Value, before: &Value) {
    let spec = meta::field(meta::fields(object), "spec");
    let same = |spec: &serde_json::Map<String, Value>, name: &str| {
        let now = spec.get(name).unwrap_or(&Value::Null);
        *now == before[name]
    };
    if same(spec, "clusterIP") || !same(spec, "clusterIPs") {
        return;
    }
    let value = spec.get("clusterIP").and_then(Value::as_str);
    match value.filter(|it| !it.is_empty()) {
        Some(value) => {
            let all = serde_json::json!([value]);
            spec.insert("clusterIPs".to_owned(), all);
        }
        None => {
            spec.shift_remove("clusterIPs");
        }
    }
}

/// Removes unchanged fields that do not apply to the new type.
pub(super) fn drop_unused(object: &mut Value, old: &Value) {
    let before = &old["spec"];
    let by_name = is_external_name(object) && !is_external_name(old);
    let node_ports = |object: &Value| -> Vec<Value> {
        let ports = items(&object["spec"], "ports");
        ports.map(|(_, it)| it["nodePort"].clone()).collect()
    };
    let same_ports = node_ports(object) == node_ports(old);
    let no_node_ports = has_node_ports(old) && !has_node_ports(object) && same_ports;
    let no_check = has_health_check(old) && !has_health_check(object);
    let is_balanced = |object: &Value| text(&object["spec"], "type") == "LoadBalancer";
    let not_balanced = is_balanced(old) && !is_balanced(object);
    let is_outside = super::is_externally_reachable;
    let inside = is_outside(old) && !is_outside(object);
    let clear_status = !is_balanced(object);
    let fields = meta::fields(object);
    if clear_status && let Some(status) = fields.get_mut("status") {
        status["loadBalancer"] = serde_json::json!({});
    }
    let spec = meta::field(fields, "spec");
    let mut drop = |when: bool, names: &[&str]| {
        for name in names.iter().filter(|_| when) {
            if spec.get(*name) == before.get(*name) {
                spec.shift_remove(*name);
            }
        }
    };
    drop(
        by_name,
        &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"],
    );
    drop(by_name, &["internalTrafficPolicy"]);
    drop(no_check, &["healthCheckNodePort"]);
    drop(
        not_balanced,
        &["allocateLoadBalancerNodePorts", "loadBalancerClass"],
    );
    drop(inside, &["externalTrafficPolicy"]);
    if no_node_ports {
        for port in each(spec, "ports") {
            port.shift_remove("nodePort");
        }
    }
}

/// The validation errors of an update.
pub(super) fn errors(object: &Value, old: &Value, errors: &mut Errors) {
    let spec = Field::of(object, "spec");
    let by_name = is_external_name(object) || is_external_name(old);
    let headless = is_headless(object) && is_headless(old);
    if !by_name && !headless {
        let addresses = spec.child("clusterIPs");
        let first = |it: &Value| it["spec"]["clusterIPs"].get(0).cloned();
        let at_first = addresses.at(format!("{}[0]", addresses.path));
        match (first(object), first(old)) {
            (None, Some(_)) => {
                errors.push(at_first.invalid("primary clusterIP can not be unset"));
            }
            (now, before @ Some(_)) if now != before => {
                errors.push(at_first.invalid("may not change once set"));
            }
            _ => {}
        }
    }
    let both = |is: fn(&Value) -> bool| is(object) && is(old);
    let is_balanced = |object: &Value| text(&object["spec"], "type") == "LoadBalancer";
    let class = spec.child("loadBalancerClass");
    if both(is_balanced) && *class.value != old["spec"]["loadBalancerClass"] {
        errors.push(class.invalid("may not change once set"));
    }
    let port = spec.child("healthCheckNodePort");
    if both(has_health_check) && *port.value != old["spec"]["healthCheckNodePort"] {
        errors.push(port.forbidden("field is immutable"));
    }
}
