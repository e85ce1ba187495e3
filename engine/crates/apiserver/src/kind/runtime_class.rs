//! RuntimeClasses. The plugin RuntimeClass sets overhead and scheduling of pods from them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{
    BuiltinKind, FinalizerRule, Write, column, pod_spec, resource_name, rule, text,
};
use crate::resource::{Column, Resource};

/// `runtimeclasses` of `node.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct RuntimeClass;

impl BuiltinKind for RuntimeClass {
    fn resource(&self) -> Resource {
        Resource::new("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
            .cluster_scoped()
            .without_generation()
            .allow_create_on_update()
            .require_resource_version()
            .with_columns(vec![Column::new("Handler", "string", ""), Column::age()])
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn default(&self, object: &mut Value) {
        let overhead = object.pointer_mut("/overhead/podFixed");
        if let Some(overhead) = overhead.and_then(Value::as_object_mut) {
            resource_name::canonical(overhead);
        }
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let handler = text(write.object, "handler");
        let mut errors = Vec::new();
        if handler.is_empty() {
            errors.push(FieldError::required("handler", ""));
        } else {
            let wrong = name::dns_label(handler).into_iter();
            let each = |it| FieldError::invalid("handler", handler.into(), it);
            errors.extend(wrong.map(each));
        }
        let object = Field::of(write.object, "overhead");
        let overhead = Field {
            path: object.path.clone(),
            value: object.child("podFixed").value,
        };
        pod_spec::overhead(&overhead, &mut errors);
        scheduling(&Field::of(write.object, "scheduling"), &mut errors);
        if write.old.is_some_and(|old| text(old, "handler") != handler) {
            let why = "field is immutable";
            errors.push(FieldError::invalid("handler", handler.into(), why));
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

/// Validates the scheduling constraints, whose tolerations must be unique.
fn scheduling(field: &Field<'_>, errors: &mut Errors) {
    rule::labels(&field.child("nodeSelector"), errors);
    let tolerations = field.child("tolerations");
    pod_spec::tolerations(&tolerations, errors);
    let mut seen = BTreeSet::new();
    for each in tolerations.items() {
        let key = ["key", "operator", "value", "effect"].map(|it| each.child(it).text());
        if !seen.insert(key) {
            let twice = FieldError::duplicate(each.path.clone(), Value::Null);
            let shown = toleration(&each).to_string();
            errors.push(twice.without_value().because(shown));
        }
    }
}

/// A toleration as a Go struct in an error message.
fn toleration(field: &Field<'_>) -> Value {
    let text = |name: &str| field.child(name).text().to_owned();
    json!({
        "Key": text("key"),
        "Operator": text("operator"),
        "Value": text("value"),
        "Effect": text("effect"),
        "TolerationSeconds": field.child("tolerationSeconds").value,
    })
}
