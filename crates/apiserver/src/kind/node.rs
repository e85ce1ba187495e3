//! Nodes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fivespot_admission::{FieldError, name};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{BuiltinKind, FieldSelector, Write, column, items, text};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `nodes` of `v1`.
#[derive(Debug)]
pub(super) struct Node;

const OS_IMAGE: &str = "OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux \
     7 (wheezy)).";
const KERNEL: &str =
    "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64).";
const RUNTIME: &str = "ContainerRuntime Version reported by the node through runtime remote API \
     (e.g. containerd://1.4.2).";
const INTERNAL_IP: &str = "List of addresses reachable to the node. Queried from cloud provider, if \
         available. More info: \
         https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This \
         field is declared as mergeable, but the merge key is not sufficiently unique, \
         which can cause data corruption when it is merged. Callers should instead use a \
         full-replacement patch. See https://pr.k8s.io/79391 for an example. Consumers \
         should assume that addresses can change during the lifetime of a Node. However, \
         there are some exceptions where this may not be possible, such as Pods that \
         inherit a Node's address in its own status or consumers of the downward API \
         (status.hostIP).";

impl BuiltinKind for Node {
    fn resource(&self) -> Resource {
        let text =
            |name: &str, description: &str| Column::new(name, "string", description);
        Resource::new("", "v1", "Node", "nodes")
            .in_the_cluster()
            .with_short_names(&["no"])
            .without_generation()
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![
                text("Status", "The status of the node"),
                text("Roles", "The roles of the node"),
                Column::age(),
                text("Version", "Kubelet Version reported by the node."),
                text("Internal-IP", INTERNAL_IP).wide(),
                text("External-IP", INTERNAL_IP).wide(),
                text("OS-Image", OS_IMAGE).wide(),
                text("Kernel-Version", KERNEL).wide(),
                text("Container-Runtime", RUNTIME).wide(),
            ])
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const { &[FieldSelector::new("spec.unschedulable").absent_as("false")] }
    }

    fn default(&self, object: &mut Value) {
        default(object);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        errors(write.object, write.old)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let info = &object["status"]["nodeInfo"];
        let shown = |key: &str| match info[key].as_str() {
            Some("") | None => "<unknown>".into(),
            Some(text) => Value::from(text),
        };
        let address = |kind: &str| {
            let found = column::list(&object["status"]["addresses"])
                .iter()
                .find(|it| it["type"] == kind);
            found.map_or_else(|| "<none>".into(), |it| column::string(&it["address"]))
        };
        vec![
            column::name(object),
            node_status(object).into(),
            node_roles(object).into(),
            column::age(object, now),
            column::string(&info["kubeletVersion"]),
            address("InternalIP"),
            address("ExternalIP"),
            shown("osImage"),
            shown("kernelVersion"),
            shown("containerRuntimeVersion"),
        ]
    }
}

fn node_status(object: &Value) -> String {
    let ready = column::list(&object["status"]["conditions"])
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

/// The network of a node is the first of its networks.
fn default(object: &mut Value) {
    let spec = meta::field(meta::fields(object), "spec");
    let first = spec.get("podCIDRs").and_then(|all| all.get(0)).cloned();
    match (spec.get("podCIDR").cloned(), first) {
        (Some(one), first) if first.as_ref() != Some(&one) => {
            spec.insert("podCIDRs".to_owned(), json!([one]));
        }
        (None, Some(first)) => {
            spec.insert("podCIDR".to_owned(), first);
        }
        _ => {}
    }
}

/// What is wrong with a node (pkg/apis/core/validation).
fn errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = taint_errors(&object["spec"]);
    for (index, network) in items(&object["spec"], "podCIDRs") {
        let said = network.as_str().unwrap_or_default();
        if !is_network(said) {
            let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            let path = format!("spec.podCIDRs[{index}]");
            errors.push(FieldError::invalid(path, said.into(), why));
        }
    }
    let Some(old) = old else {
        return errors;
    };
    let (spec, had) = (&object["spec"], &old["spec"]);
    if had["podCIDRs"].is_array() && had["podCIDRs"] != spec["podCIDRs"] {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.podCIDRs", why));
    }
    let provider = text(had, "providerID");
    if !provider.is_empty() && provider != text(spec, "providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.providerID", why));
    }
    errors
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|it| it <= most)
}

fn taint_errors(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let mut seen = BTreeSet::new();
    for (index, taint) in items(spec, "taints") {
        let path = format!("metadata.taints[{index}]");
        let (key, value, effect) = (
            text(taint, "key"),
            text(taint, "value"),
            text(taint, "effect"),
        );
        for wrong in name::label_key(key) {
            let at = format!("{path}.key");
            errors.push(FieldError::invalid(at, key.into(), wrong));
        }
        for wrong in name::label_value(value) {
            let at = format!("{path}.value");
            errors.push(FieldError::invalid(at, value.into(), wrong));
        }
        let at = format!("{path}.effect");
        if effect.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if !effects.contains(&effect) {
            errors.push(FieldError::not_supported(at, effect.into(), effects));
        }
        if !seen.insert((key, effect)) {
            // In the order of the fields of Kubernetes' type.
            let added = taint.get("timeAdded").unwrap_or(&Value::Null);
            let (key, value, effect) = (json!(key), json!(value), json!(effect));
            let why = format!(
                "{{\"Key\":{key},\"Value\":{value},\"Effect\":{effect},\"TimeAdded\":{added}}}: \
                 taints must be unique by key and effect pair"
            );
            let twice = FieldError::duplicate(path, Value::Null);
            errors.push(twice.without_value().because(why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_with_a_number_of_bits() {
        for (text, expected) in [
            ("10.0.0.0/8", true),
            ("2001:db8::/64", true),
            ("10.0.0.0", false),
            ("10.0.0.0/33", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_network(text), expected, "{text}");
        }
    }
}
