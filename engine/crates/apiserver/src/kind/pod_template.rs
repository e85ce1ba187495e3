//! PodTemplates: stored for controllers outside of Kubernetes.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::field::Field;
use super::pod_spec::{self, default, warning};
use super::{BuiltinKind, Write, column, workload};
use crate::meta;
use crate::resource::{Column, Resource};

/// `podtemplates` of `v1`.
#[derive(Debug)]
pub(super) struct PodTemplate;

impl BuiltinKind for PodTemplate {
    fn resource(&self) -> Resource {
        let labels = "The labels for the pod template.";
        let mut columns: Vec<Column> = workload::container_columns()
            .into_iter()
            .map(|it| Column { priority: 0, ..it })
            .collect();
        columns.push(Column::new("Pod Labels", "string", labels));
        Resource::new("", "v1", "PodTemplate", "podtemplates")
            .returned_when_deleted()
            .with_columns(columns)
    }

    fn default(&self, object: &mut Value) {
        default::template(meta::field(meta::fields(object), "template"));
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        pod_spec::template_errors(&Field::of(write.object, "template"))
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        let template = Field::of(write.object, "template");
        if write
            .old
            .is_some_and(|it| it["template"] == *template.value)
        {
            return Vec::new();
        }
        let mut warnings = Vec::new();
        let annotations = template.child("metadata.annotations");
        warning::annotations(&annotations, &mut warnings);
        warnings.extend(warning::warnings(&template.child("spec")));
        warnings
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        let template = &object["template"];
        let mut cells = vec![column::name(object)];
        cells.extend(workload::container_cells(template));
        cells.push(column::labels(&template["metadata"]["labels"]));
        cells
    }
}
