//! `cargo judge bootstrap`: the roles and bindings that a real server has from its start, as data of the
//! embedded one.

use std::error::Error;
use std::fs;
use std::path::Path;

use kubemu_judge::record::BoxError;
use serde_json::{Value, json};

use crate::played_kubelet::get;
use crate::{client, wait};

const FILE: &str = "crates/apiserver/src/authorization/bootstrap.jsonl";

/// Writes the file: an object on each line, without what the server adds when it is created.
///
/// # Errors
/// The server does not respond, or the file cannot be written.
pub(crate) fn write(root: &Path) -> Result<(), Box<dyn Error>> {
    let lines = wait(read())?;
    Ok(fs::write(root.join(FILE), lines)?)
}

async fn read() -> Result<String, BoxError> {
    let client = client().await?;
    let mut lines = String::new();
    for (plural, kind) in [
        ("clusterroles", "ClusterRole"),
        ("clusterrolebindings", "ClusterRoleBinding"),
        ("roles", "Role"),
        ("rolebindings", "RoleBinding"),
    ] {
        let selector = "labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults";
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}?{selector}");
        let list = get(&client, &path).await?;
        for object in list["items"].as_array().into_iter().flatten() {
            lines.push_str(&line(kind, object.clone()).to_string());
            lines.push('\n');
        }
    }
    Ok(lines)
}

/// An object as it is created. What a controller aggregates into a role is not part of that.
fn line(kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
    object["kind"] = kind.into();
    if object["aggregationRule"].is_object() {
        object["rules"] = Value::Null;
    }
    let mut metadata = json!({});
    for member in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = object["metadata"].get(member) {
            metadata[member] = value.clone();
        }
    }
    object["metadata"] = metadata;
    object
}
