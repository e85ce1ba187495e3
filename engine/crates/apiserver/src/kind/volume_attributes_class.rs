//! VolumeAttributesClasses: the changeable properties of volumes.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::field::{Errors, Field};
use super::{BuiltinKind, Write, column, storage_class};
use crate::resource::{Column, Resource};

/// `volumeattributesclasses` of `storage.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct VolumeAttributesClass;

impl BuiltinKind for VolumeAttributesClass {
    fn resource(&self) -> Resource {
        let of = "storage.v1.VolumeAttributesClass";
        Resource::new(
            "storage.k8s.io",
            "v1",
            "VolumeAttributesClass",
            "volumeattributesclasses",
        )
        .cluster_scoped()
        .returned_when_deleted()
        .with_short_names(&["vac"])
        .without_generation()
        .with_columns(vec![
            column::described("DriverName", "string", of, "driverName"),
            Column::age(),
        ])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        for field in ["driverName", "parameters"] {
            if write.old.is_some_and(|it| it[field] != write.object[field]) {
                let why = format!("updates to {field} are forbidden.");
                errors.push(FieldError::forbidden(field, why));
            }
        }
        storage_class::provisioner(&Field::of(write.object, "driverName"), &mut errors);
        let parameters = Field::of(write.object, "parameters");
        storage_class::parameters(&parameters, &mut errors);
        if parameters.len() == 0 {
            let why = "must contain at least one key/value pair";
            errors.push(parameters.required(why));
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            column::string(&object["driverName"]),
            column::age(object, now),
        ]
    }
}
