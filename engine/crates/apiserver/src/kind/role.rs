//! Roles.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::object_meta::NameRule;
use serde_json::Value;

use super::rbac::{self, RoleScope};
use super::{BuiltinKind, Write};
use crate::resource::Resource;

/// `roles` of `rbac.authorization.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct Role;

impl BuiltinKind for Role {
    fn resource(&self) -> Resource {
        rbac::role_resource("Role", "roles")
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn prepare_create(&self, object: &mut Value) {
        rbac::without_empty_rules(object);
    }

    fn prepare_update(&self, object: &mut Value, _old: &Value) {
        rbac::without_empty_rules(object);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        rbac::role_errors(write.object, RoleScope::Namespace)
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        rbac::role_cells(object)
    }
}
