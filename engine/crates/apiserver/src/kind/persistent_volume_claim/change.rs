//! The validation of updates of a persistent volume claim (`ValidatePersistentVolumeClaimUpdate`).

use kubemu_admission::{FieldError, Quantity};
use serde_json::{Map, Value};

use super::CLASS;
use crate::kind::field::Errors;
use crate::kind::{resource_name, text};

/// The errors of changes that an update must not make.
pub(super) fn errors(object: &Value, old: &Value) -> Errors {
    let mut errors = Vec::new();
    class_annotation(object, old, &mut errors);
    immutable_spec(object, old, &mut errors);
    requested_storage(object, old, &mut errors);
    let field = "volumeMode";
    if object["spec"][field] != old["spec"][field] {
        let value = object["spec"][field].clone();
        errors.push(FieldError::invalid(field, value, "field is immutable"));
    }
    attributes_class(object, old, &mut errors);
    errors
}

/// Whether the class is set for the first time, which is allowed once.
fn sets_class(object: &Value, old: &Value) -> bool {
    let class_was = &old["metadata"]["annotations"][CLASS];
    let class_is = &object["spec"]["storageClassName"];
    old["spec"]["storageClassName"].is_null()
        && !class_is.is_null()
        && (class_was.is_null() || class_was == class_is)
}

/// The class annotation is immutable, unless the class moves to its field.
fn class_annotation(object: &Value, old: &Value, errors: &mut Errors) {
    let class_was = &old["metadata"]["annotations"][CLASS];
    let keeps_annotation = object["metadata"]["annotations"][CLASS] == *class_was;
    let moves_to_field = sets_class(object, old) && !class_was.is_null();
    let may_drop = moves_to_field && object["metadata"]["annotations"][CLASS].is_null();
    if !keeps_annotation && !may_drop {
        let path = format!("metadata.annotations[{CLASS}]");
        let value = object["metadata"]["annotations"][CLASS].clone();
        let value = value.as_str().unwrap_or_default().into();
        errors.push(FieldError::invalid(path, value, "field is immutable"));
    }
}

/// The errors of changes to the immutable parts of the spec. Kubernetes appends the difference to
/// the first sentence.
fn immutable_spec(object: &Value, old: &Value, errors: &mut Errors) {
    let is_bound = text(&object["status"], "phase") == "Bound";
    let has_volume = !text(&old["spec"], "volumeName").is_empty();
    let sets_class = sets_class(object, old);
    let fixed = |object: &Value| -> Map<String, Value> {
        let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
        if !has_volume {
            spec.shift_remove("volumeName");
        }
        if sets_class {
            spec.shift_remove("storageClassName");
        }
        if is_bound {
            spec.shift_remove("volumeAttributesClassName");
            let requests = spec
                .get_mut("resources")
                .and_then(|it| it.get_mut("requests")?.as_object_mut());
            requests.map(|it| it.shift_remove("storage"));
        }
        spec
    };
    if fixed(object) != fixed(old) {
        let why = "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden("spec", why));
    }
}

/// The error if less storage is requested than before, unless it is still more than the capacity.
fn requested_storage(object: &Value, old: &Value, errors: &mut Errors) {
    let requested = |object: &Value| {
        resource_name::quantity(&object["spec"]["resources"]["requests"]["storage"])
    };
    let capacity = resource_name::quantity(&old["status"]["capacity"]["storage"]);
    let capacity = capacity.unwrap_or_else(|| Quantity::count(0));
    if let (Some(now), Some(before)) = (requested(object), requested(old))
        && now < before
        && now <= capacity
    {
        let path = "spec.resources.requests.storage";
        let why = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden(path, why));
    }
}

/// The error if the attributes class is removed from a volume that has one.
fn attributes_class(object: &Value, old: &Value, errors: &mut Errors) {
    let field = "volumeAttributesClassName";
    if !old["status"]["currentVolumeAttributesClassName"].is_null()
        && object["spec"][field] != old["spec"][field]
        && text(&object["spec"], field).is_empty()
    {
        let to = if object["spec"][field].is_null() {
            "nil"
        } else {
            "empty string"
        };
        let why = format!(
            "update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
        );
        errors.push(FieldError::forbidden(format!("spec.{field}"), why));
    }
}
