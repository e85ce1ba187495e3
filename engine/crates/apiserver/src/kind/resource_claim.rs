//! ResourceClaims: requests for devices. The scheduler allocates them.

mod device_status;

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::csi_node::driver_name;
use super::field::{Errors, Field};
use super::go_struct;
use super::pod_spec::default::{each, part};
use super::{
    BuiltinKind, StatusMetadata, Write, column, device, pod_spec, rule, workload,
};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `resourceclaims` of `resource.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct ResourceClaim;

/// The maximum number of consumers of a claim.
const MAX_CONSUMERS: u64 = 256;

const IMMUTABLE: &str = "field is immutable";

impl BuiltinKind for ResourceClaim {
    fn resource(&self) -> Resource {
        let state =
            "A summary of the current state (allocated, pending, reserved, etc.).";
        Resource::new("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
            .returned_when_deleted()
            .without_generation()
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![Column::new("State", "string", state), Column::age()])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        let fields = meta::fields(object);
        device::default_claim(meta::field(fields, "spec"));
        let status = part(fields, "status");
        let allocation = status.and_then(|it| part(it, "allocation"));
        if let Some(devices) = allocation.and_then(|it| part(it, "devices")) {
            each(devices, "results").for_each(device::default_tolerations);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, json!({}));
    }

    fn prepare_subresource(&self, _: &str, object: &mut Value, old: &Value, _: &str) {
        device_status::drop_deallocated(object, old);
    }

    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::RESET
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let spec = Field::of(write.object, "spec");
        match write.old {
            Some(old) if write.subresource == "status" => {
                status(write.object, old, &mut errors);
            }
            Some(old) if old["spec"] != *spec.value => {
                let shown = go_struct::text(spec.value, "resource.v1.ResourceClaimSpec");
                errors.push(go_struct::invalid(&spec, &shown, IMMUTABLE));
            }
            Some(_) => {}
            None => device::claim(&spec, write.kube, &mut errors),
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            state(object).into(),
            column::age(object, now),
        ]
    }
}

fn state(object: &Value) -> String {
    let status = &object["status"];
    let is_deleting = meta::is_deleting(object);
    let is_allocated = !status["allocation"].is_null();
    let states = [
        ("deleted", is_deleting),
        ("pending", !is_deleting && !is_allocated),
        ("allocated", is_allocated),
        (
            "reserved",
            is_allocated && column::count(&status["reservedFor"]) > 0,
        ),
    ];
    let states = states.iter().filter(|it| it.1);
    states.map(|it| it.0).collect::<Vec<_>>().join(",")
}

/// Validates allocation, consumers and devices (`validateResourceClaimStatusUpdate`).
fn status(object: &Value, old: &Value, errors: &mut Errors) {
    let status = Field::of(object, "status");
    let names = device::RequestNames::of(&Field::of(object, "spec").child("devices"));
    let consumers = status.child("reservedFor");
    device::set(&consumers, (MAX_CONSUMERS, "uid"), errors, |it, errors| {
        for field in ["resource", "name", "uid"] {
            let field = it.child(field);
            if field.text().is_empty() {
                errors.push(field.required(""));
            }
        }
    });
    let allocation = status.child("allocation");
    device_status::devices(&status.child("devices"), allocation.value, errors);
    if consumers.len() > 0 && !allocation.is_set() {
        let why = "may not be specified when `allocated` is not set";
        errors.push(consumers.forbidden(why));
    }
    let before = column::list(&old["status"]["reservedFor"]);
    let is_new = |it: Field<'_>| !before.contains(it.value);
    if allocation.is_set() && meta::is_deleting(object) && consumers.items().any(is_new) {
        let why = "new entries may not be added while `deallocationRequested` or \
                   `deletionTimestamp` are set";
        errors.push(consumers.forbidden(why));
    }
    let old = &old["status"]["allocation"];
    if !allocation.is_set() {
        return;
    }
    if old.is_null() {
        self::allocation(&allocation, &names, errors);
    } else if *old != *allocation.value {
        let shown = go_struct::text(allocation.value, "resource.v1.AllocationResult");
        errors.push(go_struct::invalid(&allocation, &shown, IMMUTABLE));
    }
}

fn allocation(allocation: &Field<'_>, names: &device::RequestNames, errors: &mut Errors) {
    let devices = allocation.child("devices");
    let results = devices.child("results");
    device::list(&results, device::MAX_REQUESTS, errors, |it, errors| {
        names.check_one(&it.child("request"), errors);
        place(it, errors);
    });
    let config = devices.child("config");
    device::list(&config, 2 * device::MAX_PARTS, errors, |it, errors| {
        let sources = ["FromClaim", "FromClass"];
        rule::one_of(&it.child("source"), &sources, errors);
        names.check(&it.child("requests"), errors);
        device::configuration(it, errors);
    });
    let nodes = allocation.child("nodeSelector");
    if nodes.is_set() {
        pod_spec::node_selector(&nodes, errors);
    }
}

/// Validates driver, pool and name of a device.
fn place(device: &Field<'_>, errors: &mut Errors) {
    driver_name(&device.child("driver"), errors);
    device::pool_name(&device.child("pool"), errors);
    rule::dns_label(&device.child("device"), errors);
}
