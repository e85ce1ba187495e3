//! kubectl's last-applied-configuration annotation, and its interaction with managed fields.

use serde_json::{Map, Value};

use super::compare::Comparison;
use super::conflict::Conflicts;
use super::walk::field_set;
use super::{Writer, without_managed_fields};
use crate::openapi::shape::Shape;
use crate::resource::Resource;

/// The annotation in which `kubectl apply` keeps the last applied configuration.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The field manager of `kubectl apply --server-side`.
const KUBECTL: &str = "kubectl";

/// The conflicts that remain after those are removed whose values kubectl itself set by
/// client-side apply.
pub(super) fn without_last_applied(
    resource: &Resource,
    old: Option<&Value>,
    writer: &Writer<'_>,
    conflicts: Conflicts,
) -> Conflicts {
    let before = old.filter(|_| writer.manager == KUBECTL);
    let Some((live, last)) = before.and_then(|live| Some((live, read(live)?))) else {
        return conflicts;
    };
    if last["apiVersion"] != resource.api_version().as_str() {
        return conflicts;
    }
    let shape = Shape::of(resource);
    let change = Comparison::of(&last, &without_managed_fields(live), shape);
    let same = field_set(&last, shape)
        .difference(&change.set_values())
        .difference(&change.removed);
    conflicts.without(&same)
}

/// Updates the annotation if the object has it, so that returning to client-side apply stays
/// possible.
pub(super) fn update_annotation(object: &mut Value, config: &Value, writer: &Writer<'_>) {
    if writer.manager != KUBECTL || annotation(object).is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(all) = config
        .get_mut("metadata")
        .and_then(|it| it.get_mut("annotations"))
        .and_then(Value::as_object_mut)
    {
        all.shift_remove(ANNOTATION);
    }
    object["metadata"]["annotations"][ANNOTATION] =
        format!("{}\n", sorted(&config)).into();
}

fn annotation(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][ANNOTATION].as_str()
}

fn read(object: &Value) -> Option<Value> {
    serde_json::from_str(annotation(object)?).ok()
}

/// The value with its keys in the order in which Go writes them.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut all: Vec<_> = fields.iter().collect();
            all.sort_by_key(|it| it.0);
            let all: Map<_, _> = all
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect();
            Value::Object(all)
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            value.clone()
        }
    }
}
