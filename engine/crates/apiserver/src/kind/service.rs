//! Services: validated, allocated and stored; no proxy implements them.

mod allocation;
mod change;
mod columns;
mod default;
mod validation;

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, FieldSelector, NameRule, Stored, Write, load_balancer};
use super::{column, text, workload};
use crate::resource::{Resource, Subresource};

/// `services` of `v1`.
#[derive(Debug)]
pub(super) struct Service;

impl BuiltinKind for Service {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "Service", "services")
            .returned_when_deleted()
            .with_short_names(&["svc"])
            .with_category("all")
            .without_generation()
            .allow_create_on_update()
            .with_subresources(&[Subresource::Status])
            .with_columns(columns::columns())
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const {
            &[
                FieldSelector::new("spec.clusterIP"),
                FieldSelector::new("spec.type"),
            ]
        }
    }

    fn name_rule(&self) -> NameRule {
        NameRule::DnsLabel
    }

    fn default(&self, object: &mut Value) {
        default::fill_in(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({"loadBalancer": {}}));
    }

    fn complete(&self, object: &mut Value) {
        allocation::same_address(object);
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        change::keep_allocated(object, old);
        change::drop_unused(object, old);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.is_spec_unchanged() {
            status(write.object, &mut errors);
            return errors;
        }
        // Kubernetes validates them before it allocates one, and anything else after that.
        validation::cluster_addresses(write.object, &mut errors);
        if !errors.is_empty() {
            return errors;
        }
        if let Some(old) = write.old {
            change::errors(write.object, old, &mut errors);
        }
        validation::errors(write, &mut errors);
        errors
    }

    fn allocate(&self, object: &mut Value, stored: &mut Stored<'_>) -> Vec<FieldError> {
        allocation::allocate(object, stored)
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        validation::warnings(write.object)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        columns::cells(object, now)
    }
}

/// Whether the type is ExternalName.
fn is_external_name(object: &Value) -> bool {
    text(&object["spec"], "type") == "ExternalName"
}

/// Whether it has no cluster IP.
fn is_headless(object: &Value) -> bool {
    object["spec"]["clusterIP"] == "None"
}

/// Whether it has node ports.
fn has_node_ports(object: &Value) -> bool {
    let spec = &object["spec"];
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

/// Whether it is reachable from outside the cluster.
fn is_externally_reachable(object: &Value) -> bool {
    let spec = &object["spec"];
    match text(spec, "type") {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => column::count(&spec["externalIPs"]) > 0,
        _ => false,
    }
}

/// Whether it has a health check node port.
fn has_health_check(object: &Value) -> bool {
    let spec = &object["spec"];
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Validates the status.
fn status(object: &Value, errors: &mut Errors) {
    let status = Field::of(object, "status").child("loadBalancer");
    let ingress = status.child("ingress");
    if text(&object["spec"], "type") != "LoadBalancer" && ingress.len() > 0 {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        errors.push(ingress.forbidden(why));
    } else {
        load_balancer::addresses(&status, errors);
    }
}
