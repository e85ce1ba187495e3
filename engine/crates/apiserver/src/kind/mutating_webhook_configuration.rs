//! MutatingWebhookConfigurations.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::webhook_configuration as common;
use super::{BuiltinKind, FinalizerRule, Write};
use crate::resource::Resource;

/// `mutatingwebhookconfigurations` of `admissionregistration.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct MutatingWebhookConfiguration;

impl BuiltinKind for MutatingWebhookConfiguration {
    fn resource(&self) -> Resource {
        common::resource(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        )
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::Any
    }

    fn default(&self, object: &mut Value) {
        common::default(object);
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        common::errors(write)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        common::cells(object, now)
    }
}
