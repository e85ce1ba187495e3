//! ControllerRevisions: the states of a StatefulSet or a DaemonSet, which their controllers store
//! to roll back to.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::field::{Errors, Field};
use super::{BuiltinKind, Write, column, rule, text};
use crate::meta;
use crate::resource::{Column, Resource};

/// `controllerrevisions` of `apps/v1`.
#[derive(Debug)]
pub(super) struct ControllerRevision;

impl BuiltinKind for ControllerRevision {
    fn resource(&self) -> Resource {
        let of = "apps.v1.ControllerRevision";
        Resource::new("apps", "v1", "ControllerRevision", "controllerrevisions")
            .without_generation()
            .with_columns(vec![
                Column::new("Controller", "string", "Controller of the object"),
                column::described("Revision", "string", of, "revision"),
                Column::age(),
            ])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        rule::non_negative(&Field::of(write.object, "revision"), &mut errors);
        let data = Field::of(write.object, "data");
        match write.old {
            Some(old) => rule::immutable(&data, &Field::of(old, "data"), &mut errors),
            None if !data.is_set() => errors.push(data.required("data is mandatory")),
            None if !data.value.is_object() => {
                errors.push(data.required("data must be a valid JSON object"));
            }
            None => {}
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            controller(object).into(),
            column::number(&object["revision"]),
            column::age(object, now),
        ]
    }
}

/// The controlling owner as `kubectl` names it: `statefulset.apps/web`.
fn controller(object: &Value) -> String {
    let owners = meta::owners(object).iter();
    let Some(owner) = owners.into_iter().find(|it| it["controller"] == true) else {
        return "<none>".to_owned();
    };
    let kind = text(owner, "kind").to_lowercase();
    let group = match text(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!(".{group}"),
        None => String::new(),
    };
    format!("{kind}{group}/{}", text(owner, "name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_controller_is_shown_with_its_group() {
        let owner = |version: &str| {
            json!({"metadata": {"ownerReferences": [{"name": "a", "kind": "Other"},
                {"name": "web", "kind": "StatefulSet", "apiVersion": version,
                    "controller": true}]}})
        };
        assert_eq!(controller(&owner("apps/v1")), "statefulset.apps/web");
        assert_eq!(controller(&owner("v1")), "statefulset/web");
        assert_eq!(controller(&json!({})), "<none>");
    }
}
