//! RuntimeClasses. The plugin RuntimeClass gives pods the overhead and the scheduling of theirs.

use fivespot_admission::{FieldError, name};
use jiff::Timestamp;
use serde_json::Value;

use super::{BuiltinKind, Write, column, resource_name, text};
use crate::resource::{Column, Resource};

/// `runtimeclasses` of `node.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct RuntimeClass;

impl BuiltinKind for RuntimeClass {
    fn resource(&self) -> Resource {
        Resource::new("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
            .in_the_cluster()
            .without_generation()
            .created_on_update()
            .replaced_at_a_version()
            .with_columns(vec![Column::new("Handler", "string", ""), Column::age()])
    }

    fn default(&self, object: &mut Value) {
        let overhead = object.pointer_mut("/overhead/podFixed");
        if let Some(overhead) = overhead.and_then(Value::as_object_mut) {
            resource_name::canonical(overhead);
        }
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let handler = text(write.object, "handler");
        if let Some(old) = write.old {
            let changed = text(old, "handler") != handler;
            let why = "field is immutable";
            let error = || FieldError::invalid("handler", handler.into(), why);
            return changed.then(error).into_iter().collect();
        }
        let mut errors = Vec::new();
        if handler.is_empty() {
            errors.push(FieldError::required("handler", ""));
        } else {
            let wrong = name::dns_label(handler).into_iter();
            let each = |it| FieldError::invalid("handler", handler.into(), it);
            errors.extend(wrong.map(each));
        }
        for (resource, amount) in
            resource_name::amounts(&write.object["overhead"]["podFixed"])
        {
            let at = format!("overhead.limits[{resource}]");
            errors.extend(resource_name::container_name_errors(resource, &at));
            errors.extend(resource_name::amount_errors(resource, &amount, &at));
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            column::string(&object["handler"]),
            column::age(object, now),
        ]
    }
}
