//! The rights of the users of requests.

use serde_json::json;

use crate::document::Document;

/// The rights of every user to write what is validated: who may do so is not.
pub(super) fn rights() -> [Document; 2] {
    let api_version = "rbac.authorization.k8s.io/v1";
    let metadata = json!({"name": "kubemu:write"});
    let role = json!({
        "apiVersion": api_version, "kind": "ClusterRole", "metadata": metadata,
        "rules": [{
            "apiGroups": ["*"], "resources": ["*"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        }],
    });
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "kubemu:write"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:authenticated"}],
    });
    [role, binding].map(|object| Document {
        origin: "the rights of users".to_owned(),
        object,
        location: None,
    })
}
