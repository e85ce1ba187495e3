//! CSINodes: the storage drivers of a node.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::Value;

use super::field::{Errors, Field, Path};
use super::go_struct;
use super::{BuiltinKind, Write, column, rule};
use crate::meta;
use crate::resource::{Column, Resource};

/// `csinodes` of `storage.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct CsiNode;

/// The maximum length of a node's identity in characters.
const MAX_NODE_ID: usize = 256;
/// The maximum length of a driver's name in characters.
const MAX_DRIVER_NAME: usize = 63;

impl BuiltinKind for CsiNode {
    fn resource(&self) -> Resource {
        let drivers =
            "Drivers indicates the number of CSI drivers registered on the node";
        Resource::new("storage.k8s.io", "v1", "CSINode", "csinodes")
            .cluster_scoped()
            .returned_when_deleted()
            .without_generation()
            .require_resource_version()
            .with_columns(vec![
                Column::new("Drivers", "integer", drivers),
                Column::age(),
            ])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        // Go writes an empty list as null.
        if spec.get("drivers").is_none_or(|it| column::count(it) == 0) {
            spec.insert("drivers".to_owned(), Value::Null);
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let drivers = Field::of(write.object, "spec").child("drivers");
        let mut errors = Errors::new();
        let mut names = BTreeSet::new();
        for driver in drivers.items() {
            let name = driver.child("name");
            driver_name(&name, &mut errors);
            node_id(&driver.child("nodeID"), &mut errors);
            let count = driver.child("allocatable").child("count");
            rule::non_negative(&count, &mut errors);
            if !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
            topology_keys(&driver, &mut errors);
        }
        if let Some(old) = write.old {
            kept_drivers(&drivers, column::list(&old["spec"]["drivers"]), &mut errors);
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            column::count(&object["spec"]["drivers"]).into(),
            column::age(object, now),
        ]
    }
}

/// Validates the name of a driver (`ValidateCSIDriverName`).
pub(super) fn driver_name(field: &Field<'_>, errors: &mut Errors) {
    match field.text() {
        "" => errors.push(field.required("")),
        text => named_driver(&field.path, text, errors),
    }
}

/// As [`driver_name`], for a name that is a part of the text at `path`, and not empty.
pub(super) fn named_driver(path: &Path<'_>, name: &str, errors: &mut Errors) {
    if name.len() > MAX_DRIVER_NAME {
        errors.push(FieldError::too_long(path, MAX_DRIVER_NAME as u64));
    }
    let wrong = name::dns_subdomain(&name.to_lowercase()).into_iter();
    errors.extend(wrong.map(|it| FieldError::invalid(path, name.into(), it)));
}

fn node_id(field: &Field<'_>, errors: &mut Errors) {
    let text = field.text();
    if text.is_empty() {
        errors.push(field.required(""));
    }
    if text.len() > MAX_NODE_ID {
        let why = format!("must be {MAX_NODE_ID} characters or less");
        errors.push(field.invalid(why));
    }
}

/// Validates the keys; Kubernetes names the driver in errors about them.
fn topology_keys(driver: &Field<'_>, errors: &mut Errors) {
    let mut keys = BTreeSet::new();
    for key in driver.child("topologyKeys").items() {
        let key = key.at(driver.path.clone());
        if key.text().is_empty() {
            errors.push(key.required(""));
        }
        if !keys.insert(key.text()) {
            errors.push(key.duplicate());
        }
        rule::qualified_name(&key, errors);
    }
}

/// Validates that only the number of volumes of a registered driver has changed.
fn kept_drivers(drivers: &Field<'_>, before: &[Value], errors: &mut Errors) {
    let rest = |driver: &Value| {
        let mut driver = driver.clone();
        meta::fields(&mut driver).shift_remove("allocatable");
        driver
    };
    for old in before {
        let same_name = |it: &Field<'_>| it.value["name"] == old["name"];
        for new in drivers.items().filter(same_name) {
            let kept = rest(new.value);
            if kept != rest(old) {
                let shown = go_struct::text(&kept, "storage.v1.CSINodeDriver");
                errors.push(go_struct::invalid(drivers, &shown, "field is immutable"));
            }
        }
    }
}
