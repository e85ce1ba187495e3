//! Events (pkg/apis/core/validation/events.go).

use kubemu_admission::{FieldError, name};
use serde_json::Value;

use crate::kind::field::Field;
use crate::kind::go_struct;
use crate::kind::text;
use crate::meta;

/// The maximum length of some fields of an event with an `eventTime`, in characters.
const MAX_FIELD_LENGTH: usize = 128;
/// The maximum length of its message in characters.
const MAX_MESSAGE_LENGTH: usize = 1024;

/// The validation errors of an event of `v1`.
pub(super) fn core_errors(object: &Value) -> Vec<FieldError> {
    all_errors(true, object)
}

/// The validation errors of an event of `events.k8s.io`, which has stricter rules.
pub(super) fn events_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = all_errors(false, object);
    if old.is_none_or(|old| old["series"] != object["series"]) {
        series(object, &mut errors);
    }
    match old {
        None => strict(object, &mut errors),
        Some(old) => unchanged(object, old, &mut errors),
    }
    errors
}

fn all_errors(core: bool, object: &Value) -> Vec<FieldError> {
    if object["eventTime"].is_string() {
        errors_with_event_time(core, object)
    } else {
        errors_without_event_time(core, object)
    }
}

fn object_of(core: bool, event: &Value) -> &Value {
    if core {
        &event["involvedObject"]
    } else {
        &event["regarding"]
    }
}

fn namespace_error(core: bool, event: &Value) -> FieldError {
    let namespace = text(object_of(core, event), "namespace").into();
    let why = "does not match event.namespace";
    FieldError::invalid("involvedObject.namespace", namespace, why)
}

fn errors_without_event_time(core: bool, event: &Value) -> Vec<FieldError> {
    let namespace = text(object_of(core, event), "namespace");
    let own = meta::namespace(event);
    if namespace == own || (namespace.is_empty() && own == "default") {
        return Vec::new();
    }
    vec![namespace_error(core, event)]
}

fn errors_with_event_time(core: bool, event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let everywhere = matches!(meta::namespace(event), "default" | "kube-system");
    if text(object_of(core, event), "namespace").is_empty() && !everywhere {
        errors.push(namespace_error(core, event));
    }
    let controller = if core {
        "reportingComponent"
    } else {
        "reportingController"
    };
    let value = text(event, controller);
    if value.is_empty() {
        errors.push(FieldError::required(controller, ""));
    }
    let wrong = name::label_key(value).into_iter();
    errors.extend(wrong.map(|it| FieldError::invalid(controller, value.into(), it)));
    for field in ["reportingInstance", "action", "reason"] {
        let value = text(event, field);
        if value.is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        errors.extend(too_long(value, field, MAX_FIELD_LENGTH));
    }
    let message = text(event, if core { "message" } else { "note" });
    errors.extend(too_long(message, "message", MAX_MESSAGE_LENGTH));
    errors
}

fn too_long(value: &str, field: &str, most: usize) -> Option<FieldError> {
    let why = format!("can have at most {most} characters");
    (value.len() > most).then(|| FieldError::invalid(field, "".into(), why))
}

/// Validates the series of an event.
fn series(event: &Value, errors: &mut Vec<FieldError>) {
    let series = &event["series"];
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or_default() < 2 {
        let why = "should be at least 2";
        errors.push(FieldError::invalid("series.count", "".into(), why));
    }
    if series["lastObservedTime"].is_null() {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
}

/// Validates the fields that `events.k8s.io` requires, and the deprecated fields that it forbids.
fn strict(event: &Value, errors: &mut Vec<FieldError>) {
    if !event["eventTime"].is_string() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = text(event, "type");
    if !matches!(kind, "Normal" | "Warning") {
        let why = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid("type", "".into(), why));
    }
    let left_behind = [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ];
    for (field, named) in left_behind {
        let unset = match &event[field] {
            Value::Null => true,
            Value::Object(parts) => parts.is_empty(),
            _ => false,
        };
        if !unset {
            let why = "needs to be unset";
            errors.push(FieldError::invalid(named, "".into(), why));
        }
    }
}

/// The errors of an update: in `events.k8s.io` only the series may change.
fn unchanged(event: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let fields = [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (field, named) in fields {
        if event[field] != old[field] {
            let why = "field is immutable";
            let at = Field::of(event, field).at(named);
            let of = (event, "events.v1.Event", field);
            errors.push(go_struct::invalid_field(&at, of, why));
        }
    }
}
