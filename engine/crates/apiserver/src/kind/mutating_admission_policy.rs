//! MutatingAdmissionPolicies. The admission plugin of that name applies them.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::policy::MutatingPolicy;
use serde_json::Value;

use super::{BuiltinKind, FinalizerRule, Write, column, match_rules};
use crate::meta;
use crate::resource::{Column, Resource};

/// `mutatingadmissionpolicies` of `admissionregistration.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct MutatingAdmissionPolicy;

impl BuiltinKind for MutatingAdmissionPolicy {
    fn resource(&self) -> Resource {
        let (kind, plural) = ("MutatingAdmissionPolicy", "mutatingadmissionpolicies");
        Resource::new("admissionregistration.k8s.io", "v1", kind, plural)
            .cluster_scoped()
            .with_category("api-extensions")
            .require_resource_version()
            .with_columns(vec![
                Column::new("Mutations", "integer", ""),
                Column::new("ParamKind", "string", ""),
                Column::age(),
            ])
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn default(&self, object: &mut Value) {
        let spec = meta::field(meta::fields(object), "spec");
        spec.entry("failurePolicy").or_insert_with(|| "Fail".into());
        if let Some(found) = spec.get_mut("matchConstraints") {
            match_rules::default(meta::fields(found));
        }
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        if write.is_spec_unchanged() {
            return Vec::new();
        }
        let compiled = MutatingPolicy::compile(write.object, write.kube);
        compiled.err().unwrap_or_default()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        vec![
            column::name(object),
            column::count(&spec["mutations"]).into(),
            match_rules::param_kind(&spec["paramKind"]),
            column::age(object, now),
        ]
    }
}
