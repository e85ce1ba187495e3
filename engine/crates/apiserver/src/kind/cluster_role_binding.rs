//! ClusterRoleBindings.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use kubemu_admission::object_meta::NameRule;
use serde_json::Value;

use super::rbac::{self, RoleScope};
use super::{BuiltinKind, Write};
use crate::resource::Resource;

/// `clusterrolebindings` of `rbac.authorization.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct ClusterRoleBinding;

impl BuiltinKind for ClusterRoleBinding {
    fn resource(&self) -> Resource {
        rbac::binding_resource("ClusterRoleBinding", "clusterrolebindings")
            .cluster_scoped()
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn default(&self, object: &mut Value) {
        rbac::default_binding(object);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        rbac::binding_errors(write, RoleScope::Cluster)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        rbac::binding_cells(object, now)
    }
}
