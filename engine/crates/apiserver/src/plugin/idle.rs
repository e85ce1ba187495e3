//! Plugins of kube-apiserver that can be named here but never act: their kinds are not served, so
//! that no request matches them, or no kubelet declares what they read.

use kubemu_admission::KubeVersion;

use super::Plugin;

/// A plugin that matches no request.
#[derive(Debug)]
pub(super) struct Idle {
    name: &'static str,
    description: &'static str,
    /// The minor release since which it is enabled by default.
    since: u32,
}

pub(super) const POD_GROUP_PROTECTION: Idle = Idle {
    name: "PodGroupProtection",
    description: "No effect: it adds a finalizer to PodGroups, which are not served, as \
                  in a kube-apiserver without the feature gate `GenericWorkload`.",
    since: 36,
};

pub(super) const CLUSTER_TRUST_BUNDLE_ATTEST: Idle = Idle {
    name: "ClusterTrustBundleAttest",
    description: "No effect: it checks ClusterTrustBundles, which are not served, as in \
                  a kube-apiserver without the feature gate `ClusterTrustBundle`.",
    since: 27,
};

pub(super) const POD_GROUP_WORKLOAD_EXISTS: Idle = Idle {
    name: "PodGroupWorkloadExists",
    description: "No effect: it checks PodGroups, which are not served, as in a \
                  kube-apiserver without the feature gate `GenericWorkload`.",
    since: 36,
};

pub(super) const NODE_DECLARED_FEATURE_VALIDATOR: Idle = Idle {
    name: "NodeDeclaredFeatureValidator",
    description: "No effect: it checks a resize of a pod against the features that the \
                  kubelet of its node declares, and no kubelet runs here.",
    since: 35,
};

pub(super) const JOB_VALIDATION: Idle = Idle {
    name: "JobValidation",
    description: "No effect: it checks Jobs that belong to a PodGroup, and PodGroups are \
                  not served, as in a kube-apiserver without the feature gate \
                  `GenericWorkload`.",
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
