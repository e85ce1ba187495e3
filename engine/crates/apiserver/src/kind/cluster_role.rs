//! ClusterRoles.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::object_meta::NameRule;
use serde_json::Value;

use super::rbac::{self, RoleScope};
use super::{BuiltinKind, Write};
use crate::resource::Resource;

/// `clusterroles` of `rbac.authorization.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct ClusterRole;

impl BuiltinKind for ClusterRole {
    fn resource(&self) -> Resource {
        rbac::role_resource("ClusterRole", "clusterroles").cluster_scoped()
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
        let mut errors = rbac::role_errors(write.object, RoleScope::Cluster);
        errors.extend(rbac::aggregation_errors(write.object));
        errors
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        rbac::role_cells(object)
    }
}
