//! Nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::pod_spec::default::part;
use super::{
    BuiltinKind, FieldSelector, Write, column, go_struct, items, resource_name, rule,
    text,
};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// The taint of a node that is not ready.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";

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
            .cluster_scoped()
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
        const { &[FieldSelector::new("spec.unschedulable").with_default("false")] }
    }

    fn default(&self, object: &mut Value) {
        default(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        without_configuration(object);
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        if old["spec"]["configSource"].is_null() {
            meta::field(meta::fields(object), "spec").shift_remove("configSource");
        }
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.subresource != "status" {
            new_errors(write.object, &mut errors);
        }
        if let Some(old) = write.old {
            change_errors(write.object, old, &mut errors);
        }
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        warnings(write.object)
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

/// Defaults `podCIDR` and `podCIDRs` from each other, and `allocatable` from the capacity.
fn default(object: &mut Value) {
    if let Some(Value::Object(status)) = meta::fields(object).get_mut("status") {
        if let Some(capacity) = status.get("capacity").cloned() {
            status.entry("allocatable").or_insert(capacity);
        }
        for list in ["capacity", "allocatable"] {
            if let Some(amounts) = part(status, list) {
                resource_name::canonical(amounts);
            }
        }
    }
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

/// Removes the fields of dynamic kubelet configuration, which Kubernetes has removed.
fn without_configuration(object: &mut Value) {
    for (part, field) in [("spec", "configSource"), ("status", "config")] {
        if let Some(Value::Object(part)) = meta::fields(object).get_mut(part) {
            part.shift_remove(field);
        }
    }
}

/// The validation errors of a node (`ValidateNode`).
fn new_errors(object: &Value, errors: &mut Errors) {
    errors.extend(taint_errors(&object["spec"]));
    resources(object, errors);
    let list = Field::of(object, "spec").child("podCIDRs");
    let mut networks = Vec::new();
    for network in list.items() {
        networks.push(rule::network(&network, errors));
    }
    if list.len() < 2 {
        return;
    }
    let broken = networks.iter().position(Option::is_none);
    if let Some((at, broken)) = list.items().enumerate().find(|it| Some(it.0) == broken) {
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid \
             CIDR[{at}]: <nil> (invalid CIDR address: {})",
            broken.text()
        );
        errors.push(FieldError::internal(list.path.clone(), why));
    }
    let is_there = |four: bool| {
        let mut all = networks.iter().flatten();
        all.any(|it| it.address.is_ipv4() == four)
    };
    let all_read = networks.iter().all(Option::is_some);
    if !all_read || !is_there(true) || !is_there(false) || list.len() > 2 {
        let why = "may specify no more than one CIDR for each IP family";
        errors.push(list.invalid(why));
    }
}

fn resources(object: &Value, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        for (resource, amount) in resource_name::amounts(&object["status"][list]) {
            let path = format!("status.{list}.{resource}");
            errors.extend(resource_name::amount_errors(resource, &amount, &path));
        }
    }
}

/// The validation errors of an update of a node or its status (`ValidateNodeUpdate`).
fn change_errors(object: &Value, old: &Value, errors: &mut Errors) {
    resources(object, errors);
    let addresses = Field::of(object, "status").child("addresses");
    for (index, address) in addresses.items().enumerate() {
        let mut earlier = addresses.items().take(index);
        if earlier.any(|it| it.value == address.value) {
            let shown = go_struct::text(address.value, "core.v1.NodeAddress");
            let twice = FieldError::duplicate(address.path, Value::Null);
            errors.push(twice.without_value().because(shown));
        }
    }
    let (spec, previous) = (&object["spec"], &old["spec"]);
    let (networks, before) = (list_of(spec, "podCIDRs"), list_of(previous, "podCIDRs"));
    let changes = if networks.len() == before.len() {
        let both = networks.iter().zip(&before);
        both.filter(|(one, other)| one != other).count()
    } else {
        usize::from(!before.is_empty())
    };
    for _ in 0..changes {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.podCIDRs", why));
    }
    let provider = text(previous, "providerID");
    if !provider.is_empty() && provider != text(spec, "providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.providerID", why));
    }
    errors.extend(taint_errors(spec));
    if text(spec, "externalID") != text(previous, "externalID") {
        let why = "may not be updated";
        errors.push(FieldError::forbidden("spec.externalID", why));
    }
}

fn list_of<'a>(object: &'a Value, name: &str) -> Vec<&'a Value> {
    items(object, name).map(|(_, it)| it).collect()
}

/// The warnings for a node (pkg/registry/core/node).
fn warnings(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let spec = Field::of(object, "spec");
    if spec.child("configSource").is_set() {
        found.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.child("externalID").text().is_empty() {
        found.push(
            "spec.externalID: this field is deprecated, and is unused by Kubernetes"
                .to_owned(),
        );
    }
    found
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
        let wrong = name::label_value(value);
        if !wrong.is_empty() {
            let (at, why) = (format!("{path}.value"), wrong.join(";"));
            errors.push(FieldError::invalid(at, value.into(), why));
        }
        let at = format!("{path}.effect");
        if effect.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if !effects.contains(&effect) {
            errors.push(FieldError::not_supported(at, effect.into(), effects));
        }
        if !seen.insert((key, effect)) {
            // In the order of the fields of the Go type.
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
