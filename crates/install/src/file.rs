//! What is made, as files.

use fivespot_api::manifest::{Error, GeneratedFile};
use serde_json::Value;

use crate::role::{Reach, Rights};
use crate::{permission, role};

/// The directory of the roles in the source tree.
pub const ROLES: &str = "deploy/rbac";

/// The user that the shipped role for workload clusters is bound to.
pub const WORKLOAD_USER: &str = fivespot_api::name::CONTROLLER;

/// The roles and bindings that `rights` ask for in the management cluster.
///
/// # Errors
/// None is known; the YAML emitter could refuse.
pub fn roles(rights: &Rights) -> Result<Vec<GeneratedFile>, Error> {
    let mut files = vec![roles_in("rbac.yaml", &rights.management())?];
    let secrets = rights.kubeconfigs();
    if !secrets.is_empty() {
        files.push(roles_in("kubeconfigs.yaml", &secrets)?);
    }
    Ok(files)
}

/// The role and its binding for a workload cluster whose kubeconfig names `user`.
///
/// # Errors
/// None is known; the YAML emitter could refuse.
pub fn workload_roles(user: &str) -> Result<Vec<GeneratedFile>, Error> {
    Ok(vec![roles_in("workload/rbac.yaml", &role::workload(user))?])
}

/// The roles in the source tree: the default rights, the right to read kubeconfigs everywhere
/// beside them for those who want it, and the role for workload clusters.
///
/// # Errors
/// None is known; the YAML emitter could refuse.
pub fn shipped_roles() -> Result<Vec<GeneratedFile>, Error> {
    let everywhere = Rights {
        kubeconfigs: Reach::Everywhere,
        ..Rights::default()
    };
    let mut files = roles(&Rights::default())?;
    files.push(roles_in(
        "cluster-wide-kubeconfigs/rbac.yaml",
        &everywhere.kubeconfigs(),
    )?);
    files.extend(workload_roles(WORKLOAD_USER)?);
    Ok(files)
}

/// The reference page of permissions.
pub fn permission_page() -> GeneratedFile {
    GeneratedFile {
        path: "permissions.md".to_owned(),
        text: permission::page(),
    }
}

fn roles_in(path: &str, documents: &[Value]) -> Result<GeneratedFile, Error> {
    GeneratedFile::manifest(path, "rbac", documents)
}
