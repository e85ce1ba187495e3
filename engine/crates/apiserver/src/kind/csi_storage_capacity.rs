//! CSIStorageCapacities: how much storage a driver can provide where.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::field::{Errors, Field};
use super::{BuiltinKind, Write, column, go_struct, resource_name, rule};
use crate::meta;
use crate::resource::{Column, Resource};

/// `csistoragecapacities` of `storage.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct CsiStorageCapacity;

/// The fields with quantities.
const AMOUNTS: [&str; 2] = ["capacity", "maximumVolumeSize"];

impl BuiltinKind for CsiStorageCapacity {
    fn resource(&self) -> Resource {
        let plural = "csistoragecapacities";
        Resource::new("storage.k8s.io", "v1", "CSIStorageCapacity", plural)
            .without_generation()
            .require_resource_version()
            .with_columns(vec![Column::created_at()])
    }

    fn default(&self, object: &mut Value) {
        let fields = meta::fields(object);
        for field in AMOUNTS {
            if let Some(amount) = fields.get_mut(field)
                && let Some(found) = resource_name::quantity(amount)
            {
                *amount = found.rounded_up_to_milli().to_string().into();
            }
        }
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let topology = Field::of(write.object, "nodeTopology");
        let class = Field::of(write.object, "storageClassName");
        let mut errors = Errors::new();
        rule::selector(&topology, &mut errors);
        rule::dns_subdomain(&class, &mut errors);
        let capacity = Field::of(write.object, "capacity");
        if resource_name::quantity(capacity.value).is_some_and(|it| it.signum() < 0) {
            errors.push(capacity.invalid("must be greater than or equal to 0"));
        }
        if let Some(old) = write.old {
            let why = "field is immutable";
            if *topology.value != old["nodeTopology"] {
                let shown = go_struct::selector(topology.value);
                errors.push(go_struct::invalid(&topology, &shown, why));
            }
            if *class.value != old["storageClassName"] {
                errors.push(class.invalid_text(why));
            }
        }
        errors
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        let created = &object["metadata"]["creationTimestamp"];
        vec![column::name(object), column::string(created)]
    }
}
