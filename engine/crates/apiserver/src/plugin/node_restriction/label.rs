//! The labels that a kubelet may set on its node.

use serde_json::Value;

/// The prefix of labels that only administrators set.
const RESTRICTED: &str = "node-restriction.kubernetes.io";

/// Kubernetes labels that kubelets set (pkg/kubelet/apis/well_known_labels.go).
const KUBELET_LABELS: [&str; 10] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
/// Prefixes under which kubelets set any label.
const KUBELET_PREFIXES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// The changed labels that a kubelet must not set, sorted.
pub(super) fn forbidden(object: &Value, old: &Value) -> String {
    let (labels, previous) = (&object["metadata"]["labels"], &old["metadata"]["labels"]);
    let names = |it: &Value| {
        let all = it.as_object().into_iter().flatten();
        all.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let mut changed = names(labels);
    changed.extend(names(previous));
    changed.retain(|it| labels[it] != previous[it] && is_forbidden(it));
    changed.sort_unstable();
    changed.dedup();
    changed.join(", ")
}

fn is_forbidden(label: &str) -> bool {
    let prefix = label.split_once('/').map_or("", |it| it.0);
    let is_below = |domain: &str| {
        prefix == domain
            || prefix
                .strip_suffix(domain)
                .is_some_and(|it| it.ends_with('.'))
    };
    let is_kubelets =
        KUBELET_LABELS.contains(&label) || KUBELET_PREFIXES.iter().any(|it| is_below(it));
    is_below(RESTRICTED)
        || (is_below("kubernetes.io") || is_below("k8s.io")) && !is_kubelets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_set_only_kubelet_labels() {
        let rows = [
            ("example.com/a", false),
            ("plain", false),
            ("kubernetes.io/hostname", false),
            ("node.kubernetes.io/instance-type", false),
            ("x.kubelet.kubernetes.io/a", false),
            ("node-restriction.kubernetes.io/a", true),
            ("x.node-restriction.kubernetes.io/a", true),
            ("node-role.kubernetes.io/control-plane", true),
            ("kubernetes.io/other", true),
            ("k8s.io/a", true),
        ];
        for (label, forbidden) in rows {
            assert_eq!(is_forbidden(label), forbidden, "{label}");
        }
    }
}
