//! The list of the built-in plugins.

use std::sync::Arc;

use super::{
    Plugin, Removal, always_admit, always_deny, always_pull_images, certificate_approval,
    certificate_signing, certificate_subject_restriction, default_class,
    default_toleration_seconds, deny_escalating_exec, deny_exec_on_privileged,
    deny_service_external_ips, event_rate_limit, extended_resource_toleration, idle,
    image_policy_webhook, limit_pod_hard_anti_affinity_topology, limit_ranger,
    mutating_admission_policy, mutating_admission_webhook, namespace_auto_provision,
    namespace_exists, namespace_lifecycle, node_restriction,
    owner_references_permission_enforcement, persistent_volume_claim_resize,
    persistent_volume_label, pod_node_selector, pod_preset, pod_resize_validator,
    pod_security, pod_security_policy, pod_toleration_restriction, pod_topology_labels,
    priority, resource_quota, runtime_class, security_context_deny, service_account,
    storage_object_in_use_protection, taint_nodes_by_condition,
    validating_admission_policy, validating_admission_webhook,
};

/// Plugins that Kubernetes withdrew in their alpha stage; enabling or configuring one is an error.
pub(crate) const WITHDRAWN: [(&str, Removal); 2] = [
    (
        "Initializers",
        Removal {
            release: "1.14",
            instead: "MutatingAdmissionWebhook",
        },
    ),
    (
        "InitialResources",
        Removal {
            release: "1.10",
            instead: "LimitRanger or the Vertical Pod Autoscaler",
        },
    ),
];

/// Every built-in plugin in the order in which they are called (`AllOrderedPlugins` in
/// pkg/kubeapiserver/options/plugins.go).
pub fn builtin_plugins() -> Vec<Arc<dyn Plugin>> {
    vec![
        Arc::new(always_admit::AlwaysAdmit),
        Arc::new(namespace_auto_provision::NamespaceAutoProvision),
        Arc::new(namespace_lifecycle::NamespaceLifecycle),
        Arc::new(namespace_exists::NamespaceExists),
        Arc::new(security_context_deny::SecurityContextDeny),
        Arc::new(limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology),
        Arc::new(pod_preset::PodPreset),
        Arc::new(limit_ranger::LimitRanger),
        Arc::new(service_account::ServiceAccount),
        Arc::new(node_restriction::NodeRestriction),
        Arc::new(taint_nodes_by_condition::TaintNodesByCondition),
        Arc::new(always_pull_images::AlwaysPullImages),
        Arc::new(image_policy_webhook::ImagePolicyWebhook::default()),
        Arc::new(pod_security_policy::PodSecurityPolicy),
        Arc::new(pod_security::PodSecurity::default()),
        Arc::new(pod_node_selector::PodNodeSelector::default()),
        Arc::new(priority::Priority),
        Arc::new(default_toleration_seconds::DefaultTolerationSeconds),
        Arc::new(pod_toleration_restriction::PodTolerationRestriction::default()),
        Arc::new(deny_escalating_exec::DenyEscalatingExec),
        Arc::new(deny_exec_on_privileged::DenyExecOnPrivileged),
        Arc::new(event_rate_limit::EventRateLimit::default()),
        Arc::new(extended_resource_toleration::ExtendedResourceToleration),
        Arc::new(persistent_volume_label::PersistentVolumeLabel),
        Arc::new(default_class::STORAGE),
        Arc::new(storage_object_in_use_protection::StorageObjectInUseProtection),
        Arc::new(idle::POD_GROUP_PROTECTION),
        Arc::new(
            owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement,
        ),
        Arc::new(persistent_volume_claim_resize::PersistentVolumeClaimResize),
        Arc::new(runtime_class::RuntimeClass),
        Arc::new(certificate_approval::CertificateApproval),
        Arc::new(certificate_signing::CertificateSigning),
        Arc::new(idle::CLUSTER_TRUST_BUNDLE_ATTEST),
        Arc::new(certificate_subject_restriction::CertificateSubjectRestriction),
        Arc::new(default_class::INGRESS),
        Arc::new(deny_service_external_ips::DenyServiceExternalIps),
        Arc::new(pod_topology_labels::PodTopologyLabels),
        Arc::new(idle::POD_GROUP_WORKLOAD_EXISTS),
        Arc::new(idle::NODE_DECLARED_FEATURE_VALIDATOR),
        Arc::new(idle::JOB_VALIDATION),
        Arc::new(pod_resize_validator::PodResizeValidator),
        Arc::new(mutating_admission_policy::MutatingAdmissionPolicy),
        Arc::new(mutating_admission_webhook::MutatingAdmissionWebhook),
        Arc::new(validating_admission_policy::ValidatingAdmissionPolicy),
        Arc::new(validating_admission_webhook::ValidatingAdmissionWebhook),
        Arc::new(resource_quota::ResourceQuota::default()),
        Arc::new(always_deny::AlwaysDeny),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `AllOrderedPlugins` of k8s.io/kubernetes v1.36, with the removed plugins of v1.13.
    const ORDER: [&str; 47] = [
        "AlwaysAdmit",
        "NamespaceAutoProvision",
        "NamespaceLifecycle",
        "NamespaceExists",
        "SecurityContextDeny",
        "LimitPodHardAntiAffinityTopology",
        "PodPreset",
        "LimitRanger",
        "ServiceAccount",
        "NodeRestriction",
        "TaintNodesByCondition",
        "AlwaysPullImages",
        "ImagePolicyWebhook",
        "PodSecurityPolicy",
        "PodSecurity",
        "PodNodeSelector",
        "Priority",
        "DefaultTolerationSeconds",
        "PodTolerationRestriction",
        "DenyEscalatingExec",
        "DenyExecOnPrivileged",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "PersistentVolumeLabel",
        "DefaultStorageClass",
        "StorageObjectInUseProtection",
        "PodGroupProtection",
        "OwnerReferencesPermissionEnforcement",
        "PersistentVolumeClaimResize",
        "RuntimeClass",
        "CertificateApproval",
        "CertificateSigning",
        "ClusterTrustBundleAttest",
        "CertificateSubjectRestriction",
        "DefaultIngressClass",
        "DenyServiceExternalIPs",
        "PodTopologyLabels",
        "PodGroupWorkloadExists",
        "NodeDeclaredFeatureValidator",
        "JobValidation",
        "PodResizeValidator",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
        "ResourceQuota",
        "AlwaysDeny",
    ];

    #[test]
    fn plugins_are_called_in_the_order_of_kubernetes() {
        let all = builtin_plugins();
        let found: Vec<_> = all.iter().map(|it| it.name()).collect();
        let expected: Vec<_> =
            ORDER.into_iter().filter(|it| found.contains(it)).collect();
        assert_eq!(found, expected);
    }
}
