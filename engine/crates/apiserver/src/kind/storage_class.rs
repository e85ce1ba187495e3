//! StorageClasses.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{BuiltinKind, Write, column, rule, text};
use crate::meta;
use crate::resource::{Column, Resource};

/// `storageclasses` of `storage.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct StorageClass;

/// The annotations that make a class the default.
const DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// The maximum number of parameters.
const MAX_PARAMETERS: usize = 512;
/// The maximum size of the parameters in bytes.
const MAX_PARAMETERS_SIZE: usize = 256 * 1024;

/// The immutable fields.
const IMMUTABLE_FIELDS: [&str; 4] = [
    "parameters",
    "provisioner",
    "reclaimPolicy",
    "volumeBindingMode",
];

/// Whether the class is the default for claims without a class.
pub(crate) fn is_default(class: &Value) -> bool {
    let annotations = &class["metadata"]["annotations"];
    DEFAULT.iter().any(|it| annotations[it] == "true")
}

impl BuiltinKind for StorageClass {
    fn resource(&self) -> Resource {
        let binding = "volumeBindingMode indicates how PersistentVolumeClaims should be \
             provisioned and bound.  When unset, VolumeBindingImmediate is used. This field is \
             only honored by servers that enable the VolumeScheduling feature.";
        let reclaim = "reclaimPolicy controls the reclaimPolicy for dynamically provisioned \
             PersistentVolumes of this storage class. Defaults to Delete.";
        let provisioner = "provisioner indicates the type of the provisioner.";
        let expansion =
            "allowVolumeExpansion shows whether the storage class allow volume expand.";
        Resource::new("storage.k8s.io", "v1", "StorageClass", "storageclasses")
            .cluster_scoped()
            .returned_when_deleted()
            .with_short_names(&["sc"])
            .without_generation()
            .with_columns(vec![
                Column::new("Provisioner", "string", provisioner),
                Column::new("ReclaimPolicy", "string", reclaim),
                Column::new("VolumeBindingMode", "string", binding),
                Column::new("AllowVolumeExpansion", "string", expansion),
                Column::age(),
            ])
    }

    fn default(&self, object: &mut Value) {
        let fields = meta::fields(object);
        for (field, word) in [
            ("reclaimPolicy", "Delete"),
            ("volumeBindingMode", "Immediate"),
        ] {
            fields.entry(field).or_insert_with(|| json!(word));
        }
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = errors(write.object);
        for field in IMMUTABLE_FIELDS {
            let Some(old) = write.old.map(|old| Field::of(old, field)) else {
                break;
            };
            rule::immutable(&Field::of(write.object, field), &old, &mut errors);
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mark = if is_default(object) { " (default)" } else { "" };
        let expansion = object["allowVolumeExpansion"].as_bool();
        vec![
            format!("{}{mark}", meta::name(object)).into(),
            column::string(&object["provisioner"]),
            column::string(&object["reclaimPolicy"]),
            column::string(&object["volumeBindingMode"]),
            expansion.unwrap_or_default().into(),
            column::age(object, now),
        ]
    }
}

/// Validates the name of a provisioner or a driver, in which case does not matter.
pub(super) fn provisioner(field: &Field<'_>, errors: &mut Errors) {
    if field.text().is_empty() {
        errors.push(field.required(""));
        return;
    }
    let lower = field.text().to_lowercase();
    let wrong = name::label_key(&lower).into_iter();
    let each = |it| FieldError::invalid(&field.path, lower.as_str().into(), it);
    errors.extend(wrong.map(each));
}

/// Validates that parameters have keys, and are not too many.
pub(super) fn parameters(field: &Field<'_>, errors: &mut Errors) {
    if field.len() > MAX_PARAMETERS {
        let most = MAX_PARAMETERS as u64;
        errors.push(FieldError::too_long(&field.path, most));
        return;
    }
    if field.entries().any(|(key, _)| key.is_empty()) {
        let why = "field can not be empty.";
        errors.push(FieldError::invalid(&field.path, "".into(), why));
    }
    let size = |(key, value): (&str, Field<'_>)| key.len() + value.text().len();
    if field.entries().map(size).sum::<usize>() > MAX_PARAMETERS_SIZE {
        let most = MAX_PARAMETERS_SIZE as u64;
        errors.push(FieldError::too_long(&field.path, most));
    }
}

fn errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    provisioner(&Field::of(object, "provisioner"), &mut errors);
    parameters(&Field::of(object, "parameters"), &mut errors);
    let words: [(&str, &[&str]); 2] = [
        ("reclaimPolicy", &["Delete", "Retain"]),
        ("volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]),
    ];
    for (field, known) in words {
        let actual = text(object, field);
        let is_left_out = field == "reclaimPolicy" && actual.is_empty();
        if !known.contains(&actual) && !is_left_out {
            let known = known.iter().copied();
            errors.push(FieldError::not_supported(field, actual.into(), known));
        }
    }
    topologies(&Field::of(object, "allowedTopologies"), &mut errors);
    errors
}

/// Validates the allowed topologies: keys and values of labels, unique terms.
fn topologies(list: &Field<'_>, errors: &mut Errors) {
    // Kubernetes compares a term with as many empty terms as there are terms, and then with the
    // earlier ones: an empty term counts as a duplicate of each.
    let mut before = vec![BTreeMap::new(); list.len()];
    for term in list.items() {
        let requirements = requirements(&term, errors);
        let same = before.iter().filter(|it| **it == requirements).count();
        let path = term.path_of("matchLabelExpressions");
        let duplicate = || FieldError::duplicate(path.clone(), "".into());
        errors.extend((0..same).map(|_| duplicate()));
        before.push(requirements);
    }
}

/// The values of a term by their key (`ValidateTopologySelectorTerm`).
fn requirements<'a>(
    term: &Field<'a>,
    errors: &mut Errors,
) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut found = BTreeMap::new();
    for requirement in term.child("matchLabelExpressions").items() {
        let (key, values) = (requirement.child("key"), requirement.child("values"));
        if values.len() == 0 {
            errors.push(values.required(""));
        }
        let mut set = BTreeSet::new();
        for value in values.items() {
            if !set.insert(value.text()) {
                errors.push(value.duplicate());
            }
        }
        rule::qualified_name(&key, errors);
        if found.insert(key.text(), set).is_some() {
            errors.push(FieldError::duplicate(key.path.clone(), key.text().into()));
        }
    }
    found
}
