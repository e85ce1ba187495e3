//! The paths of objects.

use serde_json::Value;

/// The path of the ScheduledMachine `name` in namespace `default`.
pub fn machine_path(name: &str) -> String {
    format!("/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines/{name}")
}

/// The path of an object of one of the kinds that tests use.
pub fn path_of(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let kind = text("/kind").to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind.ends_with('s') => format!("{kind}es"),
        None => format!("{kind}s"),
    };
    let root = match text("/apiVersion").split_once('/') {
        Some((group, version)) => format!("/apis/{group}/{version}"),
        None => format!("/api/{}", text("/apiVersion")),
    };
    let cluster_wide = matches!(
        kind.as_str(),
        "node"
            | "namespace"
            | "customresourcedefinition"
            | "validatingadmissionpolicy"
            | "validatingadmissionpolicybinding"
            | "validatingwebhookconfiguration"
            | "clusterrole"
            | "clusterrolebinding"
            | "nodepool"
            | "clusterqueue"
            | "resourceflavor"
            | "scheduledmachineclass"
    );
    let name = text("/metadata/name");
    match text("/metadata/namespace") {
        _ if cluster_wide => format!("{root}/{plural}/{name}"),
        "" => format!("{root}/namespaces/default/{plural}/{name}"),
        namespace => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
    }
}
