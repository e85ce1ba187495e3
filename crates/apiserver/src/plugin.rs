//! Admission plugins: one plugin, one file.
//!
//! A plugin is a [`Plugin`]. [`builtin_plugins`] lists all of them in Kubernetes' order; the
//! chain, the switches and the table of the README walk that list alone. How to add one:
//! docs/contributing/admission-plugin.md.

mod admission_request;
mod always_admit;
mod always_deny;
mod always_pull_images;
mod attributes;
mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod chain;
mod default_class;
mod default_toleration_seconds;
mod deny_escalating_exec;
mod deny_exec_on_privileged;
mod deny_service_external_ips;
mod event_rate_limit;
mod extended_resource_toleration;
mod idle;
mod image_policy_webhook;
mod limit_pod_hard_anti_affinity_topology;
mod limit_ranger;
mod mutating_admission_policy;
mod mutating_admission_webhook;
mod namespace_auto_provision;
mod namespace_exists;
mod namespace_lifecycle;
mod node_restriction;
mod owner_references_permission_enforcement;
mod persistent_volume_claim_resize;
mod persistent_volume_label;
mod pod;
mod pod_node_selector;
mod pod_preset;
mod pod_resources;
mod pod_security;
mod pod_security_policy;
mod pod_toleration_restriction;
mod pod_topology_labels;
mod priority;
pub(crate) mod resource_quota;
mod runtime_class;
mod security_context_deny;
mod service_account;
mod signer;
pub(crate) mod storage_object_in_use_protection;
pub(crate) mod taint_nodes_by_condition;
mod toleration;
mod validating_admission_policy;
mod validating_admission_webhook;
mod webhook;

use std::fmt;
use std::sync::Arc;

use fivespot_admission::KubeVersion;
use serde_json::Value;

use crate::kind::BuiltinKind;
use crate::state::State as Cluster;
use crate::status::Status;

pub use attributes::Attributes;
pub(crate) use attributes::Notes;
pub(crate) use chain::{Chain, Switches};
pub(crate) use mutating_admission_policy::MutatingPolicySource;
pub(crate) use validating_admission_policy::PolicySource;
pub(crate) use webhook::WebhookSource;

/// An admission plugin (k8s.io/apiserver/pkg/admission).
///
/// Every request that writes, and every POST to a subresource, passes the chain: first
/// [`admit`](Self::admit) of each plugin in turn, then the object is validated against its kind,
/// then [`validate`](Self::validate) of each. The first refusal is the answer.
/// [`Options::plugins`](crate::Options::plugins) takes plugins of one's own, which come after the
/// built-in ones in each phase.
pub trait Plugin: fmt::Debug + Send + Sync {
    /// The name by which it is switched on and off.
    fn name(&self) -> &str;

    /// What it does, in a sentence or two, for the list of plugins in the documentation.
    fn description(&self) -> &'static str {
        ""
    }

    /// When Kubernetes has removed it, and what has taken its place; none for one that there is.
    /// One that is removed is off, and named only where
    /// [`Options::removed_plugins`](crate::Options::removed_plugins) says so.
    fn removal(&self) -> Option<Removal> {
        None
    }

    /// Whether it does nothing without a configuration, so that it is not enabled without one.
    fn needs_configuration(&self) -> bool {
        false
    }

    /// Whether it is on in that release unless it is disabled.
    fn is_on_by_default(&self, kube: KubeVersion) -> bool {
        let _ = kube;
        true
    }

    /// The kinds that are served because it is on.
    fn kinds(&self) -> Vec<Arc<dyn BuiltinKind>> {
        Vec::new()
    }

    /// The plugin with a configuration, which is what `plugins[].configuration` of an
    /// `AdmissionConfiguration` holds.
    ///
    /// # Errors
    /// What is wrong with the configuration. A plugin that does not override this takes none.
    fn configured(&self, configuration: &Value) -> Result<Arc<dyn Plugin>, String> {
        let _ = configuration;
        Err("it takes no configuration".to_owned())
    }

    /// Changes the object, or refuses the request. There is no object for a deletion, and none
    /// for what is posted to a subresource.
    ///
    /// # Errors
    /// The refusal.
    fn admit(
        &self,
        cluster: &mut Cluster,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let _ = (cluster, attributes, object);
        Ok(())
    }

    /// Refuses the request, or lets it pass. There is no object for a deletion.
    ///
    /// # Errors
    /// The refusal.
    fn validate(
        &self,
        cluster: &Cluster,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let _ = (cluster, attributes, object);
        Ok(())
    }
}

/// A plugin that Kubernetes no longer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The release without it, such as `1.25`.
    pub release: &'static str,
    /// What does its work today.
    pub instead: &'static str,
}

/// Plugins that never left their alpha stage: what they were has no meaning any longer.
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

/// Every built-in plugin in the order in which they are asked (`AllOrderedPlugins` in
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
        Arc::new(idle::POD_RESIZE_VALIDATOR),
        Arc::new(mutating_admission_policy::MutatingAdmissionPolicy),
        Arc::new(mutating_admission_webhook::MutatingAdmissionWebhook),
        Arc::new(validating_admission_policy::ValidatingAdmissionPolicy),
        Arc::new(validating_admission_webhook::ValidatingAdmissionWebhook),
        Arc::new(resource_quota::ResourceQuota::default()),
        Arc::new(always_deny::AlwaysDeny),
    ]
}
