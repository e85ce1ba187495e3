//! Admission plugins: one plugin, one file.
//!
//! A plugin is a [`Plugin`]. [`builtin_plugins`](builtin::builtin_plugins) lists all of them in Kubernetes' order; the chain,
//! the enable and disable options and the table of the README read that list only. How to add one:
//! internals/contributing/admission-plugin.md. Why:
//! `internals/decisions/0094-one-file-for-a-kind-one-for-a-plugin.md`.

mod admission_request;
mod always_admit;
mod always_deny;
mod always_pull_images;
mod attributes;
pub(crate) mod builtin;
mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
pub(crate) mod chain;
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
pub(crate) mod mutating_admission_policy;
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
mod pod_resize_validator;
mod pod_resources;
mod pod_security;
mod pod_security_policy;
mod pod_toleration_restriction;
mod pod_topology_labels;
mod priority;
pub(crate) mod resource_quota;
mod runtime_class;
mod security_context_deny;
pub(crate) mod selection;
mod service_account;
mod signer;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;
mod toleration;
pub(crate) mod validating_admission_policy;
mod validating_admission_webhook;
pub(crate) mod webhook;

use std::fmt;
use std::sync::Arc;

use kubemu_admission::KubeVersion;
use serde_json::Value;

use crate::kind::BuiltinKind;
use crate::state::State as Cluster;
use crate::status::Status;

pub use attributes::Attributes;

/// An admission plugin (k8s.io/apiserver/pkg/admission).
///
/// Every request that writes, and every POST to a subresource, passes through the chain: first
/// [`admit`](Self::admit) of each plugin in order, then the object is validated against its kind,
/// then [`validate`](Self::validate) of each. The first rejection is the response.
/// [`Options::plugins`](crate::Options::plugins) adds custom plugins, which come after the built-in
/// ones in each phase.
pub trait Plugin: fmt::Debug + Send + Sync {
    /// The name by which it is enabled and disabled.
    fn name(&self) -> &str;

    /// A description in one or two sentences, for the list of plugins in the documentation.
    fn description(&self) -> &'static str {
        ""
    }

    /// The release in which Kubernetes removed the plugin, and its replacement; `None` for a plugin
    /// that Kubernetes has. A removed plugin is disabled, and is available only if
    /// [`Options::removed_plugins`](crate::Options::removed_plugins) is set.
    fn removal(&self) -> Option<Removal> {
        None
    }

    /// Whether it has no effect without a configuration, so that it is not enabled without one.
    fn needs_configuration(&self) -> bool {
        false
    }

    /// Whether it is enabled in that release unless disabled explicitly.
    fn is_on_by_default(&self, kube: KubeVersion) -> bool {
        let _ = kube;
        true
    }

    /// The kinds that are served because the plugin is enabled.
    fn kinds(&self) -> Vec<Arc<dyn BuiltinKind>> {
        Vec::new()
    }

    /// The plugin with a configuration: the value of `plugins[].configuration` of an
    /// `AdmissionConfiguration`.
    ///
    /// # Errors
    /// The configuration is invalid. A plugin that does not override this accepts none.
    fn configured(&self, configuration: &Value) -> Result<Arc<dyn Plugin>, String> {
        let _ = configuration;
        Err("the plugin does not accept a configuration".to_owned())
    }

    /// Mutates the object, or rejects the request. There is no object on delete, and none for a
    /// POST to a subresource.
    ///
    /// # Errors
    /// The rejection.
    fn admit(
        &self,
        cluster: &mut Cluster,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let _ = (cluster, attributes, object);
        Ok(())
    }

    /// Rejects the request, or admits it. There is no object on delete.
    ///
    /// # Errors
    /// The rejection.
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

/// A plugin that Kubernetes has removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The first release without it, such as `1.25`.
    pub release: &'static str,
    /// Its replacement.
    pub instead: &'static str,
}
