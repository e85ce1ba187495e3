//! RoleBindings.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::object_meta::NameRule;
use serde_json::Value;

use super::rbac::{self, RoleScope};
use super::{BuiltinKind, Write};
use crate::resource::Resource;

/// `rolebindings` of `rbac.authorization.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct RoleBinding;

impl BuiltinKind for RoleBinding {
    fn resource(&self) -> Resource {
        rbac::binding_resource("RoleBinding", "rolebindings")
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn default(&self, object: &mut Value) {
        rbac::default_binding(object);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        rbac::binding_errors(write, RoleScope::Namespace)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        rbac::binding_cells(object, now)
    }
}
