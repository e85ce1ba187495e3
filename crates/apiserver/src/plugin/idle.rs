//! Plugins of kube-apiserver that are known by name and have nothing to act on here: their kinds or
//! subresources are not served, so that no request gets to them.

use fivespot_admission::KubeVersion;

use super::Plugin;

/// A plugin that no request concerns.
#[derive(Debug)]
pub(super) struct Idle {
    name: &'static str,
    description: &'static str,
    /// The minor release since which it is on.
    since: u32,
}

pub(super) const POD_GROUP_PROTECTION: Idle = Idle {
    name: "PodGroupProtection",
    description: "Nothing: it gives PodGroups a finalizer, and they are not served, as in a \
                  kube-apiserver without the gate `GenericWorkload`.",
    since: 36,
};

pub(super) const CLUSTER_TRUST_BUNDLE_ATTEST: Idle = Idle {
    name: "ClusterTrustBundleAttest",
    description: "Nothing: it is about ClusterTrustBundles, and they are not served, as in a \
                  kube-apiserver without the gate `ClusterTrustBundle`.",
    since: 27,
};

pub(super) const POD_GROUP_WORKLOAD_EXISTS: Idle = Idle {
    name: "PodGroupWorkloadExists",
    description: "Nothing: it is about PodGroups, and they are not served, as in a \
                  kube-apiserver without the gate `GenericWorkload`.",
    since: 36,
};

pub(super) const NODE_DECLARED_FEATURE_VALIDATOR: Idle = Idle {
    name: "NodeDeclaredFeatureValidator",
    description: "Nothing: what it looks for in an update of a pod is written to `resize` alone, \
                  which is not served.",
    since: 35,
};

pub(super) const JOB_VALIDATION: Idle = Idle {
    name: "JobValidation",
    description: "Nothing: it is about Jobs that belong to a PodGroup, and PodGroups are not \
                  served, as in a kube-apiserver without the gate `GenericWorkload`.",
    since: 36,
};

pub(super) const POD_RESIZE_VALIDATOR: Idle = Idle {
    name: "PodResizeValidator",
    description: "Nothing: it is about `resize` of a pod, which is not served, because no \
                  kubelet would do it.",
    since: 36,
};

impl Plugin for Idle {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn is_on_by_default(&self, kube: KubeVersion) -> bool {
        kube.is_at_least(self.since)
    }
}
