//! Bindings of ValidatingAdmissionPolicies.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::policy::Binding;
use serde_json::Value;

use super::{BuiltinKind, FinalizerRule, Write, column, match_rules};
use crate::meta;
use crate::resource::{Column, Resource};

/// `validatingadmissionpolicybindings` of `admissionregistration.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct ValidatingAdmissionPolicyBinding;

impl BuiltinKind for ValidatingAdmissionPolicyBinding {
    fn resource(&self) -> Resource {
        let kind = "ValidatingAdmissionPolicyBinding";
        let plural = "validatingadmissionpolicybindings";
        Resource::new("admissionregistration.k8s.io", "v1", kind, plural)
            .cluster_scoped()
            .with_category("api-extensions")
            .require_resource_version()
            .with_columns(vec![
                Column::new("PolicyName", "string", ""),
                Column::new("ParamRef", "string", ""),
                Column::age(),
            ])
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn default(&self, object: &mut Value) {
        if let Some(found) = object["spec"].get_mut("matchResources") {
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
        Binding::compile(write.object).err().unwrap_or_default()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        vec![
            column::name(object),
            column::string(&spec["policyName"]),
            match_rules::param_ref(&spec["paramRef"]),
            column::age(object, now),
        ]
    }
}
