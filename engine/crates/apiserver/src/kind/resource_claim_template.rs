//! ResourceClaimTemplates: what the claims of pods look like.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::field::{Errors, Field};
use super::go_struct;
use super::{BuiltinKind, Write, column, device, rule};
use crate::meta;
use crate::resource::{Column, Resource};

/// `resourceclaimtemplates` of `resource.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct ResourceClaimTemplate;

impl BuiltinKind for ResourceClaimTemplate {
    fn resource(&self) -> Resource {
        Resource::new(
            "resource.k8s.io",
            "v1",
            "ResourceClaimTemplate",
            "resourceclaimtemplates",
        )
        .returned_when_deleted()
        .without_generation()
        .with_columns(vec![Column::age()])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        device::default_claim(meta::field(spec, "spec"));
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        let mut errors = Errors::new();
        let spec = Field::of(write.object, "spec");
        rule::labels(&spec.child("metadata").child("labels"), &mut errors);
        device::claim(&spec.child("spec"), write.kube, &mut errors);
        if write.old.is_some_and(|it| it["spec"] != *spec.value) {
            let shown =
                go_struct::text(spec.value, "resource.v1.ResourceClaimTemplateSpec");
            errors.push(go_struct::invalid(&spec, &shown, "field is immutable"));
        }
        errors
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![column::name(object), column::age(object, now)]
    }
}
