//! DeviceClasses: kinds of devices that claims ask for.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::field::{Errors, Field};
use super::{BuiltinKind, NameRule, Write, column, device, resource_name};
use crate::resource::{Column, Resource};

/// `deviceclasses` of `resource.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct DeviceClass;

impl BuiltinKind for DeviceClass {
    fn resource(&self) -> Resource {
        Resource::new("resource.k8s.io", "v1", "DeviceClass", "deviceclasses")
            .cluster_scoped()
            .returned_when_deleted()
            .with_columns(vec![Column::age()])
    }

    fn name_rule(&self) -> NameRule {
        NameRule::DnsSubdomainOnceGenerated
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let spec = Field::of(write.object, "spec");
        let mut errors = Errors::new();
        device::selectors(&spec.child("selectors"), write.kube, &mut errors);
        let config = spec.child("config");
        device::list(
            &config,
            device::MAX_PARTS,
            &mut errors,
            device::configuration,
        );
        let resource = spec.child("extendedResourceName");
        if resource.is_set() && !resource_name::is_extended(resource.text()) {
            let why = "must be a valid extended resource name";
            errors.push(resource.invalid(why));
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![column::name(object), column::age(object, now)]
    }
}
