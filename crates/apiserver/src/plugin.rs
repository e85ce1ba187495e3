//! Admission plugins: one plugin, one file.
//!
//! A plugin is a [`Plugin`]. [`builtin_plugins`] lists all of them in Kubernetes' order; the
//! chain, the switches and the table of the README walk that list alone. How to add one:
//! docs/contributing/admission-plugin.md.

mod attributes;
mod chain;
mod default_toleration_seconds;
mod namespace_auto_provision;
mod namespace_lifecycle;
mod priority;
mod service_account;
mod validating_admission_policy;

use std::fmt;
use std::sync::Arc;

use fivespot_admission::KubeVersion;
use serde_json::Value;

use crate::state::State as Cluster;
use crate::status::Status;

pub use attributes::Attributes;
pub(crate) use attributes::Notes;
pub(crate) use chain::{Chain, Switches};
pub(crate) use validating_admission_policy::PolicySource;

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

    /// Whether it is on in that release unless it is disabled.
    fn is_on_by_default(&self, kube: KubeVersion) -> bool {
        let _ = kube;
        true
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

/// Every built-in plugin in the order in which they are asked (`AllOrderedPlugins` in
/// pkg/kubeapiserver/options/plugins.go).
pub fn builtin_plugins() -> Vec<Arc<dyn Plugin>> {
    vec![
        Arc::new(namespace_auto_provision::NamespaceAutoProvision),
        Arc::new(namespace_lifecycle::NamespaceLifecycle),
        Arc::new(service_account::ServiceAccount),
        Arc::new(priority::Priority),
        Arc::new(default_toleration_seconds::DefaultTolerationSeconds),
        Arc::new(validating_admission_policy::ValidatingAdmissionPolicy),
    ]
}
