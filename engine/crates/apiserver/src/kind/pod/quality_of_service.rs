//! The quality of service class of pods.

use serde_json::Value;

use crate::kind::items;

/// The `qosClass` of a new pod.
pub(super) fn class(object: &Value) -> &'static str {
    let spec = &object["spec"];
    // Pod-level resources replace those of the containers.
    if counts_as_whole(&spec["resources"]) {
        let pod = &spec["resources"];
        let (limits, requests) = (&pod["limits"], &pod["requests"]);
        let is_guaranteed = ["cpu", "memory"]
            .iter()
            .all(|it| !limits[it].is_null() && limits[it] == requests[it]);
        return if is_guaranteed {
            "Guaranteed"
        } else {
            "Burstable"
        };
    }
    let all = || {
        let lists = ["initContainers", "containers"];
        lists.into_iter().flat_map(|list| items(spec, list))
    };
    let counted = |of: &Value| {
        let named = of.as_object().into_iter().flatten();
        named
            .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"))
            .count()
    };
    let asks = |it: &Value| {
        counted(&it["resources"]["requests"]) + counted(&it["resources"]["limits"]) > 0
    };
    let is_guaranteed = |it: &Value| {
        let (limits, requests) =
            (&it["resources"]["limits"], &it["resources"]["requests"]);
        counted(limits) == 2
            && ["cpu", "memory"]
                .iter()
                .all(|it| limits[it] == requests[it])
    };
    if !all().any(|(_, it)| asks(it)) {
        "BestEffort"
    } else if all().all(|(_, it)| is_guaranteed(it)) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Whether a pod has pod-level requests or limits for CPU or memory.
fn counts_as_whole(resources: &Value) -> bool {
    let lists = ["limits", "requests"];
    lists.iter().any(|list| {
        let named = resources[list].as_object().into_iter().flatten();
        named
            .into_iter()
            .any(|(name, _)| name == "cpu" || name == "memory")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_qos_class_depends_on_container_resources() {
        let ranked = |resources: Value| {
            let container = json!({"name": "c", "resources": resources});
            class(&json!({"spec": {"containers": [container]}}))
        };
        let all = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(ranked(json!({})), "BestEffort");
        assert_eq!(ranked(json!({"requests": {"cpu": "1"}})), "Burstable");
        let guaranteed = json!({"limits": all, "requests": all});
        assert_eq!(ranked(guaranteed), "Guaranteed");
    }
}
