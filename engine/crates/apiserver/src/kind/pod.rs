//! Pods.

pub(crate) mod annotation;
mod change;
mod columns;
mod default;
mod ephemeral;
mod quality_of_service;
mod resize;
mod status;
mod validation;
mod version_skew;

use jiff::Timestamp;
use kubemu_admission::{FieldError, name};
use serde_json::{Value, json};

use super::field::Field;
use super::pod_spec::warning;
use super::{BuiltinKind, FieldSelector, StatusMetadata, Write, text};
use crate::meta;
use crate::resource::{Resource, Subresource};

/// `pods` of `v1`.
#[derive(Debug)]
pub(super) struct Pod;

/// The quality of service class of a pod: `Guaranteed`, `Burstable` or `BestEffort`.
pub(crate) fn qos_class(pod: &Value) -> &'static str {
    quality_of_service::class(pod)
}

/// The old spec of a pod with what a write to `ephemeralcontainers` or `resize` may change.
pub(crate) fn merged_containers(subresource: &str, spec: &Value, old: &Value) -> Value {
    if subresource == "resize" {
        return resize::merged(spec, old);
    }
    let mut merged = old.clone();
    meta::copy_field(spec, &mut merged, ephemeral::LIST);
    merged
}

impl BuiltinKind for Pod {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "Pod", "pods")
            .returned_when_deleted()
            .with_short_names(&["po"])
            .with_category("all")
            .with_subresources(&[
                Subresource::Attach,
                Subresource::Binding,
                Subresource::EphemeralContainers,
                Subresource::Eviction,
                Subresource::Exec,
                Subresource::PortForward,
                Subresource::Resize,
                Subresource::Status,
            ])
            .with_columns(columns::columns())
    }

    fn field_selectors(&self) -> &'static [FieldSelector] {
        const {
            &[
                FieldSelector::new("spec.nodeName"),
                FieldSelector::new("spec.restartPolicy"),
                FieldSelector::new("spec.schedulerName"),
                FieldSelector::new("spec.serviceAccountName"),
                FieldSelector::new("spec.hostNetwork").with_default("false"),
                FieldSelector::new("status.phase"),
                FieldSelector::new("status.podIP"),
                FieldSelector::new("status.nominatedNodeName"),
            ]
        }
    }

    fn default(&self, object: &mut Value) {
        default::fill_in(object);
    }

    fn preparation_warnings(&self, object: &Value) -> Vec<String> {
        version_skew::warnings(object)
    }

    fn prepare_create(&self, object: &mut Value) {
        version_skew::fill_in(object);
        let class = quality_of_service::class(object);
        let status = json!({"phase": "Pending", "qosClass": class});
        meta::fields(object).insert("status".to_owned(), status);
    }

    fn status_metadata(&self) -> StatusMetadata {
        // Old kubelets could otherwise break garbage collection.
        StatusMetadata::Fixed(&["deletionTimestamp", "ownerReferences"])
    }

    fn prepare_subresource(
        &self,
        _subresource: &str,
        object: &mut Value,
        old: &Value,
        _now: &str,
    ) {
        status::prepare(object, old);
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        match write.old {
            Some(old) if write.subresource == "status" => {
                status::errors(write.object, old)
            }
            Some(old)
                if matches!(write.subresource, "ephemeralcontainers" | "resize") =>
            {
                validation::part_errors(write.object, old, write.subresource)
            }
            old => validation::errors(write.object, old),
        }
    }

    /// Updates have no warnings, because they are not made by users.
    fn warnings(&self, write: &Write<'_>) -> Vec<String> {
        if write.old.is_some() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let wrong = name::dns_label(meta::name(write.object));
        if !wrong.is_empty() {
            let why = wrong.join(" ");
            found.push(format!(
                "metadata.name: this is used in the Pod's hostname, which can result in \
                 surprising behavior; a DNS label is recommended: [{why}]"
            ));
        }
        let annotations = Field::of(write.object, "metadata").child("annotations");
        warning::annotations(&annotations, &mut found);
        found.extend(warning::warnings(&Field::of(write.object, "spec")));
        found
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        columns::cells(object, now)
    }

    fn row_conditions(&self, object: &Value) -> Value {
        columns::row_conditions(object)
    }

    /// Only pods that are scheduled and not finished get a grace period: the requested one, or
    /// their own.
    fn grace_period_seconds(&self, object: &Value, requested: Option<i64>) -> i64 {
        let spec = &object["spec"];
        let ended = matches!(text(&object["status"], "phase"), "Succeeded" | "Failed");
        if text(spec, "nodeName").is_empty() || ended {
            return 0;
        }
        let own = spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
        // A negative period is replaced by one second (pkg/registry/core/pod/strategy.go).
        let wished = requested.unwrap_or(own);
        if wished < 0 { 1 } else { wished }
    }
}
