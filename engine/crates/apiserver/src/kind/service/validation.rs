//! The validation of services (`validateService` in pkg/apis/core/validation).

use std::collections::BTreeSet;

use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use crate::kind::field::{Errors, Field};
use crate::kind::{Write, rule};

/// The maximum timeout of the session affinity in seconds.
const MAX_AFFINITY_SECONDS: i64 = 86_400;

/// The validation errors of a service.
pub(super) fn errors(write: &Write<'_>, errors: &mut Errors) {
    let object = write.object;
    let spec = Field::of(object, "spec");
    by_type(object, &spec, errors);
    let ports = spec.child("ports");
    let mut names = BTreeSet::new();
    for each in ports.items() {
        let named = each.child("name");
        if named.text().is_empty() {
            errors.extend((ports.len() > 1).then(|| named.required("")));
        } else {
            rule::dns_label(&named, errors);
            if !names.insert(named.text()) {
                errors.push(named.duplicate());
            }
        }
        port(&each, errors);
    }
    rule::labels(&spec.child("selector"), errors);
    affinity(&spec, errors);
    external_addresses(&spec, errors);
    let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    rule::one_of(&spec.child("type"), &known, errors);
    unique_ports(&spec, errors);
    load_balancer(&spec, errors);
    traffic(object, &spec, errors);
}

fn by_type(object: &Value, spec: &Field<'_>, errors: &mut Errors) {
    let (ports, kind) = (spec.child("ports"), spec.child("type").text());
    let headless = super::is_headless(object);
    if ports.len() == 0 && !headless && kind != "ExternalName" {
        errors.push(ports.required(""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let path = spec.path_of("clusterIPs[0]");
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(path, "None".into(), why));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let field = spec.child(field);
                if field.is_set() && (field.value.is_string() || field.len() > 0) {
                    let why = "may not be set for ExternalName services";
                    errors.push(field.forbidden(why));
                }
            }
            let field = spec.child("externalName");
            let text = field.text();
            let text = text.strip_suffix('.').unwrap_or(text);
            if text.is_empty() {
                errors.push(field.required(""));
            } else {
                let wrong = name::dns_subdomain(text).into_iter();
                let path = || field.path.clone();
                errors
                    .extend(wrong.map(|it| FieldError::invalid(path(), text.into(), it)));
            }
        }
        _ => {}
    }
}

fn port(port: &Field<'_>, errors: &mut Errors) {
    rule::port(&port.child("port"), errors);
    rule::protocol(&port.child("protocol"), errors);
    rule::port_or_name(&port.child("targetPort"), errors);
    let protocol = port.child("appProtocol");
    if protocol.is_set() {
        rule::qualified_name(&protocol, errors);
    }
}

fn affinity(spec: &Field<'_>, errors: &mut Errors) {
    let affinity = spec.child("sessionAffinity");
    rule::one_of(&affinity, &["ClientIP", "None"], errors);
    if affinity.text() != "ClientIP" {
        return;
    }
    let seconds = spec.child("sessionAffinityConfig.clientIP.timeoutSeconds");
    if !(1..=MAX_AFFINITY_SECONDS).contains(&seconds.count()) {
        let why = format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}");
        errors.push(seconds.invalid(why));
    }
}

/// Validates the cluster IPs and their families (`ValidateServiceClusterIPsRelatedFields`).
pub(super) fn cluster_addresses(object: &Value, errors: &mut Errors) {
    if super::is_external_name(object) {
        return;
    }
    let spec = Field::of(object, "spec");
    let (one, all) = (spec.child("clusterIP"), spec.child("clusterIPs"));
    let first = all.items().next();
    if one.text().is_empty() {
        if all.len() > 0 {
            let why = "must be empty when `clusterIP` is not specified";
            errors.push(all.invalid(why));
        }
    } else if first.is_none() {
        errors.push(all.required(""));
    } else if first.is_some_and(|it| it.text() != one.text()) {
        errors.push(all.invalid("first value must match `clusterIP`"));
    }
    let mut seen = BTreeSet::new();
    for family in spec.child("ipFamilies").items() {
        rule::one_of_if_set(&family, &["IPv4", "IPv6"], errors);
        if !seen.insert(family.text()) {
            errors.push(family.duplicate());
        }
    }
    let known = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    rule::one_of_if_set(&spec.child("ipFamilyPolicy"), &known, errors);
    for (index, address) in all.items().enumerate() {
        if index == 0 && address.text() == "None" {
            if all.len() > 1 {
                errors.push(all.invalid("'None' must be the first and only value"));
            }
            continue;
        }
        rule::address(&address, errors);
    }
    if all.len() > 2 {
        errors.push(all.invalid("may only hold up to 2 values"));
    }
}

fn external_addresses(spec: &Field<'_>, errors: &mut Errors) {
    for address in spec.child("externalIPs").items() {
        let before = errors.len();
        let found = rule::address(&address, errors);
        if let Some(found) = found.filter(|_| errors.len() == before) {
            rule::reachable(&address, found, errors);
        }
    }
}

/// The errors for duplicate ports and node ports.
fn unique_ports(spec: &Field<'_>, errors: &mut Errors) {
    let ports = spec.child("ports");
    if spec.child("type").text() == "ClusterIP" {
        let nodes = ports.items().map(|it| it.child("nodePort"));
        let why = "may not be used when `type` is 'ClusterIP'";
        errors.extend(
            nodes
                .filter(|it| it.count() != 0)
                .map(|it| it.forbidden(why)),
        );
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let node = port.child("nodePort");
        let key = (port.child("protocol").text(), node.count());
        if node.count() != 0 && !seen.insert(key) {
            errors.push(node.invalid("provided port is already allocated"));
        }
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (port.child("protocol"), port.child("port"));
        if !seen.insert((protocol.text(), number.count())) {
            let shown = json!({"Name": "", "Protocol": protocol.text(),
                "AppProtocol": null, "Port": number.count(), "TargetPort": 0,
                "NodePort": 0});
            let error = FieldError::duplicate(port.path, Value::Null);
            errors.push(error.without_value().because(shown.to_string()));
        }
    }
}

fn load_balancer(spec: &Field<'_>, errors: &mut Errors) {
    const ALONE: &str = "may only be used when `type` is 'LoadBalancer'";
    let is_balanced = spec.child("type").text() == "LoadBalancer";
    let ranges = spec.child("loadBalancerSourceRanges");
    let ranges = ranges.at(spec.path_of("LoadBalancerSourceRanges"));
    if ranges.len() > 0 && !is_balanced {
        errors.push(ranges.forbidden(ALONE));
    }
    for range in ranges.items() {
        rule::network(&range, errors);
    }
    let allocated = spec.child("allocateLoadBalancerNodePorts");
    if allocated.is_set() && !is_balanced {
        errors.push(allocated.forbidden(ALONE));
    }
    let class = spec.child("loadBalancerClass");
    if class.is_set() && is_balanced {
        rule::qualified_name(&class, errors);
    } else if class.is_set() {
        errors.push(class.forbidden(ALONE));
    }
}

fn traffic(object: &Value, spec: &Field<'_>, errors: &mut Errors) {
    let external = spec.child("externalTrafficPolicy");
    if super::is_externally_reachable(object) {
        rule::one_of(&external, &["Cluster", "Local"], errors);
    } else if !external.text().is_empty() {
        let why = "may only be set for externally-accessible services";
        errors.push(external.invalid(why));
    }
    let port = spec.child("healthCheckNodePort");
    if super::has_health_check(object) {
        if port.is_set() {
            rule::port(&port, errors);
        }
    } else if port.count() != 0 {
        let why = "may only be set when `type` is 'LoadBalancer' and \
             `externalTrafficPolicy` is 'Local'";
        errors.push(port.invalid(why));
    }
    let internal = spec.child("internalTrafficPolicy");
    rule::one_of_if_set(&internal, &["Cluster", "Local"], errors);
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    rule::one_of_if_set(&spec.child("trafficDistribution"), &known, errors);
}

/// The warnings for a service.
pub(super) fn warnings(object: &Value) -> Vec<String> {
    let spec = Field::of(object, "spec");
    let headless = super::is_headless(object);
    let by_name = super::is_external_name(object);
    let has_addresses = spec.child("externalIPs").len() > 0;
    let rows = [
        (
            headless && has_addresses,
            "spec.externalIPs is ignored for headless services",
        ),
        (
            headless && spec.child("sessionAffinity").text() == "ClientIP",
            "spec.SessionAffinity is ignored for headless services",
        ),
        (
            has_addresses && !headless && !by_name,
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        ),
        (
            by_name && has_addresses,
            "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
        ),
        (
            !by_name && !spec.child("externalName").text().is_empty(),
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
        ),
        (
            spec.child("trafficDistribution").text() == "PreferClose",
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
        ),
    ];
    let value = rows.iter().filter(|(holds, _)| *holds);
    value.map(|(_, warning)| (*warning).to_owned()).collect()
}
