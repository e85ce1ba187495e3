//! The scopes of quotas: the pods and claims that they cover.

use serde_json::{Value, json};

use crate::plugin::pod::{list, text};

/// The requirements of a quota, as one selector for each scope.
pub(super) fn selectors(quota: &Value) -> Vec<Value> {
    let spec = &quota["spec"];
    let plain = list(spec, "scopes").iter();
    let plain = plain.map(|it| json!({"scopeName": it, "operator": "Exists"}));
    let further = list(&spec["scopeSelector"], "matchExpressions").iter();
    plain.chain(further.cloned()).collect()
}

/// Whether a pod is in a scope.
pub(super) fn matches_pod(selector: &Value, pod: &Value) -> bool {
    let spec = &pod["spec"];
    match text(selector, "scopeName") {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => selects(selector, &[text(spec, "priorityClassName")]),
        "CrossNamespacePodAffinity" => crosses_namespaces(&spec["affinity"]),
        _ => false,
    }
}

/// Whether a claim is in a scope.
pub(super) fn matches_claim(selector: &Value, claim: &Value) -> bool {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let names = [
        text(spec, "volumeAttributesClassName"),
        text(status, "currentVolumeAttributesClassName"),
        text(
            &status["modifyVolumeStatus"],
            "targetVolumeAttributesClassName",
        ),
    ];
    text(selector, "scopeName") == "VolumeAttributesClass" && selects(selector, &names)
}

/// Whether a selector matches one of the names; an empty name is ignored.
fn selects(selector: &Value, names: &[&str]) -> bool {
    let names: Vec<&str> = names.iter().copied().filter(|it| !it.is_empty()).collect();
    let values = list(selector, "values");
    let is_listed = |name: &&str| values.iter().any(|it| it == name);
    match text(selector, "operator") {
        "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        "In" => names.iter().any(is_listed),
        "NotIn" => names.is_empty() || names.iter().any(|it| !is_listed(it)),
        _ => false,
    }
}

/// Whether a pod has an active deadline.
pub(super) fn is_terminating(pod: &Value) -> bool {
    let seconds = pod["spec"]["activeDeadlineSeconds"].as_i64();
    seconds.is_some_and(|it| it >= 0)
}

fn is_best_effort(pod: &Value) -> bool {
    crate::kind::pod::qos_class(pod) == "BestEffort"
}

fn crosses_namespaces(affinity: &Value) -> bool {
    let names_others = |term: &Value| {
        !list(term, "namespaces").is_empty() || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let kind = &affinity[kind];
        let required = list(kind, "requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = list(kind, "preferredDuringSchedulingIgnoredDuringExecution");
        let mut preferred = preferred.iter().map(|it| &it["podAffinityTerm"]);
        required.iter().any(names_others) || preferred.any(names_others)
    })
}
