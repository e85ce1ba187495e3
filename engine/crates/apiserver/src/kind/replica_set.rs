//! ReplicaSets: validated and stored; no controller runs them.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::field::{Errors, Field};
use super::pod_spec::default::fill;
use super::workload::{self, ReplicaColumns};
use super::{BuiltinKind, Write, column, rule};
use crate::meta;
use crate::resource::Resource;

/// `replicasets` of `apps/v1`.
#[derive(Debug)]
pub(super) struct ReplicaSet;

impl BuiltinKind for ReplicaSet {
    fn resource(&self) -> Resource {
        let columns = ReplicaColumns {
            desired: "Replicas is the number of desired pods. This is a pointer to distinguish \
                between explicit zero and unspecified. Defaults to 1. More info: \
                https://kubernetes.io/docs/concepts/workloads/controllers/replicaset",
            current: "Replicas is the most recently observed number of non-terminating pods. More \
                info: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset",
            ready: "The number of non-terminating pods targeted by this ReplicaSet with a Ready \
                Condition.",
            selector: "Selector is a label query over pods that should match the replica \
                count. Label keys and values that must match in order to be controlled by this \
                replica set. It must match the pod template's labels. More info: \
                https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
        };
        Resource::new("apps", "v1", "ReplicaSet", "replicasets")
            .with_short_names(&["rs"])
            .with_category("all")
            .with_subresources(&workload::subresources())
            .with_columns(columns.columns())
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        workload::default_template(spec);
        fill(spec, "replicas", 1);
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, workload::no_replicas());
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.is_spec_unchanged() {
            workload::labeled_status(&Field::of(write.object, "status"), &mut errors);
            return errors;
        }
        let spec = Field::of(write.object, "spec");
        rule::non_negative(&spec.child("replicas"), &mut errors);
        rule::non_negative(&spec.child("minReadySeconds"), &mut errors);
        workload::selected_template(&spec, &mut errors);
        workload::same_selector(write, &mut errors);
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        workload::template_warnings(write, "template", workload::Name::InPods)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mut cells = workload::replica_cells(object, now);
        cells.push(column::selector(&object["spec"]["selector"]));
        cells
    }
}
