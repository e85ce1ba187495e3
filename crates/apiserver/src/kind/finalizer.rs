//! Names of finalizers, of which the core kinds are stricter than others
//! (pkg/apis/core/validation).

use fivespot_admission::FieldError;
use serde_json::Value;

use crate::meta;
use crate::resource::Resource;

/// Finalizers that need no domain.
const STANDARD: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Finalizers of a new object, or of one that is checked as if it were new, that say not
/// whose they are.
pub(crate) fn errors(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let kept = &resource.storage;
    let always = match (kept.group.as_str(), kept.resource.as_str()) {
        ("", "configmaps" | "secrets" | "pods") | ("rbac.authorization.k8s.io", _) => {
            true
        }
        ("", _) => false,
        _ => return Vec::new(),
    };
    if old.is_some() && !always {
        return Vec::new();
    }
    let unqualified = meta::finalizers(object)
        .enumerate()
        .filter(|(_, it)| !it.contains('/') && !STANDARD.contains(it));
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    unqualified
        .map(|(index, it)| {
            let path = format!("metadata.finalizers[{index}]");
            FieldError::invalid(path, it.into(), why)
        })
        .collect()
}
