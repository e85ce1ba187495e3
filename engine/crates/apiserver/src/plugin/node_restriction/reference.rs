//! The API objects that a pod references, which a mirror pod of a kubelet must not
//! (`HasAPIObjectReference` in pkg/api/pod).

use serde_json::Value;

use crate::plugin::pod::{config_map_names, list, secret_names, text};

/// The volume sources that read API objects, in the order of Kubernetes.
const OF_VOLUMES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    (
        "ephemeral",
        "persistentvolumeclaims (via ephemeral volumes)",
    ),
    ("azureFile", "secrets (via azureFile volumes)"),
];
/// The sources of projected volumes that read API objects, in the order of Kubernetes.
const OF_PROJECTIONS: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    (
        "serviceAccountToken",
        "serviceaccounts (via projected volumes)",
    ),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// The resource of the first reference in a pod's spec.
pub(super) fn find(spec: &Value) -> Option<&'static str> {
    if !text(spec, "serviceAccountName").is_empty() {
        return Some("serviceaccounts");
    }
    if secret_names(spec).next().is_some() {
        return Some("secrets");
    }
    if config_map_names(spec).next().is_some() {
        return Some("configmaps");
    }
    if !list(spec, "resourceClaims").is_empty() {
        return Some("resourceclaims");
    }
    list(spec, "volumes").iter().find_map(|volume| {
        let projections = list(&volume["projected"], "sources").iter();
        first(volume, &OF_VOLUMES).or_else(|| {
            projections
                .into_iter()
                .find_map(|it| first(it, &OF_PROJECTIONS))
        })
    })
}

/// The resource of the first source that a volume or a projection has.
fn first(value: &Value, sources: &[(&str, &'static str)]) -> Option<&'static str> {
    let found = sources.iter().find(|(source, _)| value[source].is_object());
    found.map(|it| it.1)
}
