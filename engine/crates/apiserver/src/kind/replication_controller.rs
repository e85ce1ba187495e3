//! ReplicationControllers: validated and stored; no controller runs them.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::field::{Errors, Field};
use super::pod_spec::default::{self, fill};
use super::workload::{self, ReplicaColumns};
use super::{BuiltinKind, FieldSelector, NameRule, Write, column, rule};
use crate::meta;
use crate::resource::Resource;

/// `replicationcontrollers` of `v1`.
#[derive(Debug)]
pub(super) struct ReplicationController;

impl BuiltinKind for ReplicationController {
    fn resource(&self) -> Resource {
        let columns = ReplicaColumns {
            desired: "Replicas is the number of desired replicas. This is a pointer to \
                distinguish between explicit zero and unspecified. Defaults to 1. More \
                info: https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-replicationcontroller",
            current: "Replicas is the most recently observed number of replicas. More info: \
                https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-replicationcontroller",
            ready: "The number of ready replicas for this replication controller.",
            selector: "Selector is a label query over pods that should match the Replicas \
                count. If Selector is empty, it is defaulted to the labels present on the Pod \
                template. Label keys and values that must match in order to be controlled by this \
                replication controller, if empty defaulted to labels on Pod template. More info: \
                https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
        };
        let resource =
            Resource::new("", "v1", "ReplicationController", "replicationcontrollers");
        resource
            .with_short_names(&["rc"])
            .with_category("all")
            .with_subresources(&workload::subresources())
            .with_columns(columns.columns())
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const { &[FieldSelector::new("status.replicas").with_default("0")] }
    }

    /// Defaults selector and labels to the labels of the template.
    fn default(&self, object: &mut Value) {
        let fields = meta::fields(object);
        let spec = meta::field(fields, "spec");
        if let Some(template) = default::part(spec, "template") {
            default::template(template);
        }
        fill(spec, "replicas", 1);
        let labels = spec
            .get("template")
            .and_then(|it| it.pointer("/metadata/labels"))
            .filter(|it| it.is_object())
            .cloned();
        let Some(labels) = labels else {
            return;
        };
        let is_empty =
            |value: Option<&Value>| value.is_none_or(|it| column::count(it) == 0);
        if is_empty(spec.get("selector")) {
            spec.insert("selector".to_owned(), labels.clone());
        }
        let metadata = meta::field(fields, "metadata");
        if is_empty(metadata.get("labels")) {
            metadata.insert("labels".to_owned(), labels);
        }
    }

    fn orphans_dependents(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::begin(object, workload::no_replicas());
    }

    fn name_rule(&self) -> NameRule {
        NameRule::DnsSubdomainOnceGenerated
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        if write.is_spec_unchanged() {
            workload::labeled_status(&Field::of(write.object, "status"), &mut errors);
            return errors;
        }
        let spec = Field::of(write.object, "spec");
        rule::non_negative(&spec.child("minReadySeconds"), &mut errors);
        let selector = spec.child("selector");
        if selector.len() == 0 {
            errors.push(selector.required(""));
        }
        rule::non_negative(&spec.child("replicas"), &mut errors);
        let template = spec.child("template");
        if !template.is_set() {
            errors.push(template.required(""));
            return errors;
        }
        let labels = template.child("metadata.labels");
        let selected =
            |(key, value): (&str, Field<'_>)| labels.value.get(key) == Some(value.value);
        if !selector.entries().all(selected) {
            errors.push(rule::mismatch(&labels));
        }
        workload::running_template(&template, "ReplicationController", &mut errors);
        errors
    }

    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        workload::template_warnings(write, "template", workload::Name::InPods)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mut cells = workload::replica_cells(object, now);
        cells.push(column::labels(&object["spec"]["selector"]));
        cells
    }
}
