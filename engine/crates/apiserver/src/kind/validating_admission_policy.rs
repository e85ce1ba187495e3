//! ValidatingAdmissionPolicies. The plugin of that name evaluates them.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::policy::Policy;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{
    BuiltinKind, FinalizerRule, StatusMetadata, Write, column, match_rules, rule,
};
use crate::meta;
use crate::resource::{Column, Resource, Subresource};

/// `validatingadmissionpolicies` of `admissionregistration.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct ValidatingAdmissionPolicy;

impl BuiltinKind for ValidatingAdmissionPolicy {
    fn resource(&self) -> Resource {
        let (kind, plural) = ("ValidatingAdmissionPolicy", "validatingadmissionpolicies");
        Resource::new("admissionregistration.k8s.io", "v1", kind, plural)
            .cluster_scoped()
            .with_category("api-extensions")
            .require_resource_version()
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![
                Column::new("Validations", "integer", ""),
                Column::new("ParamKind", "string", ""),
                Column::age(),
            ])
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn is_created_by_status_apply(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        spec.entry("failurePolicy").or_insert_with(|| "Fail".into());
        if let Some(found) = spec.get_mut("matchConstraints") {
            match_rules::default(meta::fields(found));
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        meta::fields(object).insert("status".to_owned(), json!({}));
    }

    fn status_metadata(&self) -> StatusMetadata {
        StatusMetadata::RESET
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        if write.subresource == "status" {
            let status = Field::of(write.object, "status");
            let mut errors = Errors::new();
            let warnings = status.child("typeChecking.expressionWarnings");
            for warning in warnings.items() {
                for name in ["fieldRef", "warning"] {
                    let field = warning.child(name);
                    errors.extend(field.text().is_empty().then(|| field.required("")));
                }
            }
            rule::conditions(&status.child("conditions"), &mut errors);
            return errors;
        }
        if write.is_spec_unchanged() {
            return Vec::new();
        }
        let compiled = Policy::compile(write.object, write.kube);
        compiled.err().unwrap_or_default()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        vec![
            column::name(object),
            column::count(&spec["validations"]).into(),
            match_rules::param_kind(&spec["paramKind"]),
            column::age(object, now),
        ]
    }
}
